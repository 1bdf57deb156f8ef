// How all runs of the suite end, as data: the tests hold every run against it, and docs/conformance.md is written from
// it.

import { passed } from './differences.ts'
import { gaps } from './gaps.ts'
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

/** The scenarios of the client half, by revision, and a check that each must not lack. */
export const clientScenarios = {
  '2025-11-25': {
    initialize: 'mcp-client-initialization',
    tools_call: 'tool-add-numbers',
    'sse-retry': 'client-sse-retry-timing',
    'elicitation-sep1034-client-defaults': 'client-elicitation-sep1034-string-default',
    'auth/metadata-var2': 'valid-bearer-token',
    'auth/basic-cimd': 'valid-bearer-token',
    'auth/scope-step-up': 'scope-step-up-escalation',
    'auth/token-endpoint-auth-post': 'valid-bearer-token',
    'auth/pre-registration': 'valid-bearer-token'
  },
  '2026-07-28': {
    tools_call: 'tool-add-numbers',
    'request-metadata': 'sep-2575-client-retry-supported-version',
    'http-standard-headers': 'sep-2243-client-includes-standard-headers',
    'http-custom-headers': 'sep-2243-client-base64-unsafe',
    'http-invalid-tool-headers': 'sep-2243-client-reject-invalid-tool',
    'sep-2322-client-request-state': 'sep-2322-client-request-state-echoed',
    'json-schema-ref-no-deref': 'sep-2106-no-network-ref-deref',
    'json-schema-2020-12-preservation': 'sep-2106-client-anchor-keyword-preserved',
    'auth/scope-step-up': 'scope-step-up-escalation',
    'auth/iss-supported': 'valid-bearer-token',
    'auth/iss-wrong-issuer': 'authorization-request',
    'auth/offline-access-scope': 'valid-bearer-token',
    'auth/authorization-server-migration': 'valid-bearer-token',
    'auth/resource-mismatch': 'prm-pathbased-requested'
  },
  extension: {
    'auth/client-credentials-basic': 'valid-bearer-token',
    'auth/client-credentials-jwt': 'client-credentials-jwt-verified'
  }
}

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

*Written by \`npm run docs\` from test/conformance/figures.ts and gaps.ts, against which \`npm test\` holds every run; do not edit.*

The official suite (\`@modelcontextprotocol/conformance\`, its version is in package.json) runs against endpoints with a single upstream, an empty prefix and
authentication on. The server behind the gateway is one of two reference servers (test/conformance/server, test/conformance/modern), each of which speaks one revision
only and is pinned to its era (\`era\` in the configuration), so that nothing is found out by asking. A scenario is clean without a failure, a warning or a
skipped check; "passed" is what the suite itself counts: nothing that is scored failed.

| requirements | the server speaks | through the gateway over | passed | scored and clean | not scored and clean |
|---|---|---|---|---|---|
${rows.map(row).join('\n')}

Of what is not scored for 2026-07-28, no server passes \`tasks-status-notifications\`: the suite skips it, because its harness cannot hear it.

The client half of the suite runs against the gateway's own half of a client, with the suite's server for its upstream. In these scenarios it finds no fault; the
others are about signing in, or are the end client's own affair:

${Object.entries(clientScenarios)
  .map(([revision, scenarios]) => `- ${revision}: ${Object.keys(scenarios).join(', ')}`)
  .join('\n')}

## What a client of 2026-07-28 misses with a server of 2025-11-25

${gapRows('2026-07-28')}

## What a client of 2025-11-25 misses with a server of 2026-07-28

${gapRows('2025-11-25')}
`
}
