// What two runs of the suite do not agree on: the yardstick of "as if the gateway were not there".

import type { Check, Run, Scenario, Status } from './suite.ts'

/**
 * Checks that the suite itself reports as information where a server makes use of a freedom, and that a gateway may
 * therefore answer otherwise than the server behind it.
 */
const free: ReadonlySet<string> = new Set([
  // A JSON answer is as good as a stream of one message (basic/transports, "Sending Messages to the Server").
  'server-sse-streams-functional'
])

const bad: ReadonlySet<Status> = new Set<Status>(['FAILURE', 'WARNING', 'SKIPPED'])

/** Scored scenarios in which nothing failed. */
export const passed = ({ scored }: Pick<Run, 'scored'>): number =>
  scored.filter(({ checks }) => checks.length > 0 && !checks.some(({ status }) => status === 'FAILURE')).length

/** Failures, warnings and skipped checks of all scenarios, the unscored included, as sentences. */
export const complaints = ({ scored, unscored }: Run): string[] => [...scored, ...unscored].flatMap(complaintsOf)

/**
 * @param direct the suite against the server itself
 * @param through the suite against the gateway before it
 * @returns a sentence for each check that a scored scenario has lost on the way, and each failure, warning or skipped
 * check that the way
 *   has added to any scenario
 */
export function differences(direct: Run, through: Run): string[] {
  const known = new Set(complaints(direct))
  return [
    ...through.scored.flatMap((scenario) =>
      lost(
        direct.scored.find((before) => before.scenario === scenario.scenario),
        scenario
      )
    ),
    ...complaints(through).filter((complaint) => !known.has(complaint))
  ]
}

function lost(direct: Scenario | undefined, through: Scenario): string[] {
  const now = new Map(through.checks.map(({ id, status }) => [id, status]))
  return (direct?.checks ?? []).flatMap(({ id, status }) => {
    if (status !== 'SUCCESS' || now.get(id) === 'SUCCESS' || (free.has(id) && now.get(id) === 'INFO')) return []
    return [`${through.scenario}: ${id} is ${now.get(id) ?? 'missing'}, and was ${status}`]
  })
}

const complaintsOf = ({ scenario, checks }: Scenario): string[] =>
  checks.filter(({ status }) => bad.has(status)).map((check) => complaint(scenario, check))

function complaint(scenario: string, { id, status, errorMessage }: Check): string {
  return `${scenario}: ${id} is ${status}${errorMessage === undefined ? '' : `: ${errorMessage}`}`
}
