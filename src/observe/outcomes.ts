// How a call ended: the closed table that the log, the audit log and the metrics have in common (docs/logging.md).

import type { ErrorCode } from '../protocol/error-table.ts'

/**
 * Those that are no reason of an error of the gateway. `denied`: a rule or kill switch hides what it names; its caller
 * was told what one of an unknown name is told. `tool_error`: the upstream's tool answered that it has failed.
 * `rpc_error`: the upstream answered with an error.
 */
export const ownOutcomes = ['ok', 'tool_error', 'rpc_error', 'denied'] as const

export type Outcome = (typeof ownOutcomes)[number] | ErrorCode

/** What its caller or a person decides, or has to do first, is no failure of a service. */
export const isFailure = (outcome: string): boolean => outcome !== 'ok' && !outcomesOfPersons.has(outcome)
export const outcomesOfPersons: ReadonlySet<string> = new Set<Outcome>([
  ...(['ok', 'cancelled', 'connect_required', 'declined'] as const)
])
