// What a change of the configuration is refused for.

import type { Problem } from '../config/problems.ts'

export type ControlErrorCode =
  | 'not_found'
  | 'forbidden'
  | 'conflict'
  | 'managed_by_file'
  | 'precondition_failed'
  | 'precondition_required'
  | 'not_usable'
  | 'limit_reached'

export class ControlError extends Error {
  override readonly name = 'ControlError'
  readonly code: ControlErrorCode
  /** The remedy, a whole sentence. */
  readonly remedy: string
  /** Each fault of a document, at its path. */
  readonly problems: readonly Problem[] | undefined

  /** @param message what is wrong, a whole sentence without anything secret */
  constructor(code: ControlErrorCode, message: string, remedy: string, problems?: readonly Problem[]) {
    super(message)
    this.code = code
    this.remedy = remedy
    this.problems = problems
  }
}
