// How all runs of the suite end, as data: the tests hold every run against it, and docs/conformance.md is written from
// it.

import { passed } from './differences.ts'
import { clientGaps, gaps } from './gaps.ts'
import type { Requirements } from './reference.ts'
import type { Run, Scenario } from './suite.ts'

export type Way = 'Streamable HTTP' | 'stdio' | 'HTTP+SSE'

/** Scenarios without a failure, a warning or a check that was skipped, and how many there are. */
type Clean = readonly [clean: number, of: number]

export interface Figures {
  /** Scored scenarios that the suite calls passed: warnings do not count. */
  readonly passed: Clean
  readonly scored: Clean
  readonly unscored: Clean
}

interface Row extends Figures {
  readonly requirements: Requirements
  /** What the server behind it speaks, and nothing else. */
  readonly server: Requirements
  /** How the gateway reaches it; none: without the gateway. */
  readonly way?: Way
}

const old = '2025-11-25'
const young = '2026-07-28'
const oldFigures: Figures = { passed: [30, 30], scored: [30, 30], unscored: [3, 3] }
const youngFigures: Figures = { passed: [37, 37], scored: [37, 37], unscored: [12, 13] }
const crossedYoung: Figures = { passed: [35, 37], scored: [34, 37], unscored: [10, 13] }

export const rows: readonly Row[] = [
  { requirements: old, server: old, ...oldFigures },
  { requirements: old, server: old, way: 'Streamable HTTP', ...oldFigures },
  { requirements: old, server: old, way: 'stdio', ...oldFigures },
  { requirements: old, server: old, way: 'HTTP+SSE', ...oldFigures },
  { requirements: young, server: young, ...youngFigures },
  { requirements: young, server: young, way: 'Streamable HTTP', ...youngFigures },
  { requirements: young, server: young, way: 'stdio', ...youngFigures },
  { requirements: old, server: young, way: 'Streamable HTTP', ...oldFigures },
  { requirements: old, server: young, way: 'stdio', ...oldFigures },
  { requirements: young, server: old, way: 'Streamable HTTP', ...crossedYoung },
  { requirements: young, server: old, way: 'stdio', ...crossedYoung },
  { requirements: young, server: old, way: 'HTTP+SSE', ...crossedYoung }
]

/** How many scenarios of the client half count, by requirement set; in none of them a fault may be found. */
export const clientScored: Readonly<Record<Requirements, number>> = { [old]: 18, [young]: 32 }

/** @throws Error where docs/conformance.md would lack a run */
export function expected(requirements: Requirements, server: Requirements, way?: Way): Figures {
  const row = rows.find((row) => row.requirements === requirements && row.server === server && row.way === way)
  if (row === undefined) throw new Error(`no figures for ${requirements}, ${server}, ${way ?? 'direct'}`)
  const { passed, scored, unscored } = row
  return { passed, scored, unscored }
}

export const isClean = ({ checks }: Scenario): boolean =>
  checks.length > 0 && checks.every(({ status }) => status === 'SUCCESS' || status === 'INFO')

export const figuresOf = ({ scored, unscored }: Run): Figures => ({
  passed: [passed({ scored }), scored.length],
  scored: [scored.filter(isClean).length, scored.length],
  unscored: [unscored.filter(isClean).length, unscored.length]
})

const of = ([clean, all]: Clean): string => `${clean} of ${all}`

function row({ requirements, server, way, passed, scored, unscored }: Row): string {
  return `| ${requirements} | ${server} | ${way ?? 'the server itself'} | ${of(passed)} | ${of(scored)} | ${of(unscored)} |`
}

/** docs/conformance.md */
export function conformanceMarkdown(): string {
  const gapRows = (requirements: Requirements): string =>
    gaps[requirements].length === 0
      ? 'Nothing.'
      : `| scenario | checks | why |\n|---|---|---|\n${gaps[requirements].map(({ scenario, checks, reason }) => `| ${scenario} | ${checks.map((check) => `\`${check}\``).join(', ')} | ${reason} |`).join('\n')}`
  return `# Conformance

*Written by \`npm run docs\` from test/conformance/figures.ts and gaps.ts, against which \`npm test\` and \`npm run test:long\` hold every run; do not edit.*

The official suite (\`@modelcontextprotocol/conformance\`, its version is in package.json) runs against endpoints with a single upstream, an empty prefix and
authentication on. The server behind the gateway is one of two reference servers (test/conformance/server, test/conformance/modern), each of which speaks one revision
only and is pinned to its era (\`era\` in the configuration), so that nothing is found out by asking. A scenario is clean without a failure, a warning or a
skipped check; "passed" is what the suite itself counts: nothing that is scored failed.

| requirements | the server speaks | through the gateway over | passed | scored and clean | not scored and clean |
|---|---|---|---|---|---|
${rows.map(row).join('\n')}

Of what is not scored for 2026-07-28, no server passes \`tasks-status-notifications\`: the suite skips it, because its harness cannot hear it.

The client half of the suite runs against the gateway's own half of a client, with the suite's server for its upstream; a person who has to sign in does so on the page
of their connections. Scored and without a fault: ${Object.entries(clientScored)
    .map(([revision, count]) => `${count} of ${count} scenarios of ${revision}`)
    .join(', ')}. In *enterprise-managed-authorization*, whose identity provider signs nobody in, the
person signs in at another one, which passes on to it what the gateway asks for, with the ID token that the suite gives. Not scored, and
not supported:

| scenario | why |
|---|---|
${clientGaps.map(({ scenario, reason }) => `| ${scenario} | ${reason} |`).join('\n')}

## What a client of 2026-07-28 misses with a server of 2025-11-25

${gapRows('2026-07-28')}

## What a client of 2025-11-25 misses with a server of 2026-07-28

${gapRows('2025-11-25')}
`
}
