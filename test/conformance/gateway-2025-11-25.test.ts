// The official suite through a single-upstream endpoint with authentication on: it has to find what it finds without
// the gateway.

import t, { type Test } from 'tap'
import { jsonHeaders, send } from '../kit/client.ts'
import { gateway, key } from '../kit/gateway.ts'
import { differences } from './differences.ts'
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

for (const [way, configured] of Object.entries(ways) as Array<[Way, (typeof ways)[Way]]>) {
  t.test(`with an upstream over ${way}, the suite finds the same as without the gateway`, async (t) => {
    const { url } = await gateway(t, {
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
