// The suite of one revision through a gateway before a server that speaks only the other one.

import type { Test } from 'tap'
import { jsonHeaders, send } from '../kit/client.ts'
import { key } from '../kit/gateway.ts'
import { replicaCount, startHouse } from '../kit/replicas.ts'
import { differences } from './differences.ts'
import { expected, figuresOf, type Way } from './figures.ts'
import { gaps } from './gaps.ts'
import { startReference, stdioReference, type Requirements } from './reference.ts'
import { runSuite, type Run } from './suite.ts'

const eraOf = { '2025-11-25': 'legacy', '2026-07-28': 'modern' } as const

async function configured(t: Test, server: Requirements, way: Way): Promise<object> {
  const era = eraOf[server]
  if (way === 'stdio') return { ...stdioReference(t.testdir(), server), era }
  return way === 'HTTP+SSE'
    ? { type: 'sse', url: await startReference(t, 'sse', server), era }
    : { type: 'http', url: await startReference(t, 'http', server), era }
}

interface Through {
  readonly url: string
  readonly run: Run
}

async function throughGateway(t: Test, requirements: Requirements, server: Requirements, way: Way): Promise<Through> {
  const { url } = await startHouse(t, {
    upstreams: { reference: await configured(t, server, way) },
    endpoints: { default: { upstreams: ['reference'], prefix: '' } }
  })
  return { url: url(), run: await runSuite(url(), { requirements, token: key }) }
}

/** `scenario: check` of whatever is lost, worse or new on the way, once each. */
const missed = (direct: Run, through: Run): string[] =>
  [
    ...new Set(differences(direct, through).map((sentence) => /^[^ ]+: [^ ]+/.exec(sentence)?.[0] ?? sentence))
  ].toSorted()

/**
 * Tests that all runs miss exactly what there is no way to express.
 * @param direct the run against the server of `requirements` itself
 */
export function crossed(
  t: Test,
  direct: Run,
  requirements: Requirements,
  server: Requirements,
  ways: readonly Way[]
): void {
  // At once: they wait most of their time.
  const through = Promise.all(ways.map((way) => throughGateway(t, requirements, server, way)))
  const known = gaps[requirements]
    .flatMap(({ scenario, checks }) => checks.map((check) => `${scenario}: ${check}`))
    .toSorted()
  for (const [at, way] of ways.entries()) {
    t.test(`with a server of ${server} over ${way}, all is found but what that revision cannot express`, async (t) => {
      const { url, run } = (await through)[at] as Through
      t.equal(
        (await send(url, { headers: jsonHeaders, body: '{"jsonrpc":"2.0","id":1,"method":"ping"}' })).status,
        401,
        'authentication is on'
      )
      const lost = missed(direct, run).filter((each) => !isOfReplicas(each, way))
      if (!t.same(lost, known)) t.comment(differences(direct, run).join('\n'))
      t.same(figuresOf(run), expected(requirements, server, way))
    })
  }
}

/**
 * Each replica runs a child process of its own for callers without a session: what one of them changes in its lists, a
 * client that listens at another replica does not hear.
 */
const ofOneProcess = ['tools', 'prompts'].map(
  (list) => `server-stateless: sep-2575-server-sends-${list}-list-changed-on-subscription`
)

/** Is the difference one that several replicas make, with a server over stdio? */
export const isOfReplicas = (difference: string, way: string): boolean =>
  replicaCount > 1 && way === 'stdio' && ofOneProcess.some((check) => difference.startsWith(check))
