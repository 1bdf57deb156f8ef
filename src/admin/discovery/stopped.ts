// Where the discovery of a server ended before its end.

import type { HopName } from '../../hosts/doctor/misconfiguration.ts'

/** A hop is done. */
export type Passed = (hop: HopName, text: string) => void

export class Stopped extends Error {
  override readonly name = 'Stopped'
  readonly code: string
  readonly hop: HopName
  readonly remedy: string

  constructor(code: string, hop: HopName, problem: string, remedy: string) {
    super(problem)
    this.code = code
    this.hop = hop
    this.remedy = remedy
  }
}
