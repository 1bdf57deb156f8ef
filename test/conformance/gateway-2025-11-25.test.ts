// The official suite for 2025-11-25: against the reference server itself, which has to be without fault, and through a
// single-upstream endpoint with authentication on, where it has to find the same; and before a server that speaks
// 2026-07-28 only.

import t, { type Test } from 'tap'
import { jsonHeaders, send } from '../kit/client.ts'
import { key } from '../kit/gateway.ts'
import { startHouse } from '../kit/replicas.ts'
import { crossed } from './crossed.ts'
import { complaints, differences } from './differences.ts'
import { expected, figuresOf, type Way } from './figures.ts'
import { startReference, stdioReference } from './reference.ts'
import { runSuite } from './suite.ts'

const requirements = '2025-11-25'

/** The ways to the upstream, and how each is configured. */
const ways: Record<Way, (t: Test) => Promise<unknown>> = {
  'Streamable HTTP': async (t) => ({ type: 'http', url: await startReference(t, 'http') }),
  stdio: async (t) => stdioReference(t.testdir()),
  'HTTP+SSE': async (t) => ({ type: 'sse', url: await startReference(t, 'sse') })
}

const direct = await runSuite(await startReference(t, 'http'), { requirements })

t.test('the reference server scores 30 of 30 for 2025-11-25, without a warning', async (t) => {
  t.same(figuresOf(direct), expected(requirements, requirements))
  t.same(complaints(direct), [], 'not even in what is not scored')
  t.same(
    direct.unscored.map(({ scenario }) => scenario),
    ['server-session-lifecycle', 'json-schema-2020-12', 'server-sse-polling']
  )
  t.equal(direct.exitCode, 0)
})

for (const [way, configured] of Object.entries(ways) as Array<[Way, (typeof ways)[Way]]>) {
  t.test(`with an upstream over ${way}, the suite finds the same as without the gateway`, async (t) => {
    const { url } = await startHouse(t, {
      upstreams: { reference: await configured(t) },
      endpoints: { default: { upstreams: ['reference'], prefix: '' } }
    })
    t.equal(
      (await send(url(), { headers: jsonHeaders, body: '{"jsonrpc":"2.0","id":1,"method":"ping"}' })).status,
      401,
      'authentication is on'
    )
    const through = await runSuite(url(), { requirements, token: key })
    t.same(differences(direct, through), [])
    t.same(figuresOf(through), expected(requirements, requirements, way))
    t.equal(through.exitCode, 0)
  })
}

crossed(t, direct, requirements, '2026-07-28', ['Streamable HTTP', 'stdio'])
