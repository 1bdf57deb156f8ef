// Attack: a caller declares capabilities that a server refuses, again and again, so that the gateway takes the server
// for broken. Only that caller is held back, with an error that no other caller reads.

import t from 'tap'
import { acmeGateway, authOf, keyOf } from '../kit/acme-gateway.ts'
import { legacyClient } from '../kit/client.ts'
import { forgingIssuer } from '../kit/forging-issuer.ts'
import { gateway } from '../kit/gateway.ts'
import type { Json } from '../kit/mcp-server.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { httpTaskServer, stdioTaskServer } from '../kit/task-server.ts'
import { isMethod } from '../kit/upstream.ts'

// eslint-disable-next-line typescript/no-explicit-any
const call = async (url: string, token: string, tool: string, capabilities: Json, conversation: string): Promise<any> =>
  (
    await modernRequest(
      url,
      'tools/call',
      { name: tool, arguments: {} },
      { token, capabilities, meta: { 'io.gatehouse/conversation': conversation } }
    )
  ).json
const fine = { result: { resultType: 'complete' } }
const refused = { error: { data: { reason: /^upstream_(protocol|unavailable)$/ } } }

t.test('capabilities that a server finds too large lock no other caller out', async (t) => {
  const acme = await acmeGateway(t)
  const large = ({ message }: { message: Json | undefined }): boolean => JSON.stringify(message ?? {}).length > 2_048
  acme.upstream.override(
    large,
    (response) => {
      response.writeHead(413).end('too large')
    },
    Infinity
  )
  const extensions = { 'io.modelcontextprotocol/ui': { pad: 'x'.repeat(3_000) } }
  t.match(await call(acme.url(), keyOf.bob, 'echo', {}, 'before'), fine)
  for (let n = 0; n < 10; n++) {
    t.match(await call(acme.url(), keyOf.ada, 'echo', { extensions }, 'same'), refused)
    t.match(await call(acme.url(), keyOf.bob, 'echo', {}, `new ${n}`), fine)
  }
  t.ok(
    acme.upstream.seen.filter((seen) => isMethod('initialize')(seen) && large(seen)).length < 10,
    'whoever hammers is held back'
  )
})

for (const kind of ['http', 'stdio'] as const) {
  t.test(
    `what a server on an official SDK refuses to one session over ${kind} does not concern the others`,
    async (t) => {
      const up = kind === 'http' ? await httpTaskServer(t) : stdioTaskServer
      const acme = await gateway(t, {
        upstreams: { up: { ...up, era: 'legacy' } },
        endpoints: { default: { upstreams: ['up'], prefix: '' } },
        auth: authOf(await forgingIssuer(t, { resource: 'urn:none', now: Date.now() }))
      })
      t.match(await call(acme.url(), keyOf.bob, 'finish', {}, 'before'), fine)
      const ada = await legacyClient(acme.url(), keyOf.ada, '2025-11-25', { sampling: { tools: 5 } })
      for (let n = 0; n < 4; n++) {
        t.match((await ada.request('tools/call', { name: 'finish', arguments: {} })).json, refused)
        t.match(await call(acme.url(), keyOf.bob, 'finish', {}, `new ${n}`), fine)
      }
    }
  )
}
