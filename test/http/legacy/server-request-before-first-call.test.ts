// What a server asks right after its handshake comes while the first call of a session runs, but is not about it: the
// end of that call takes nothing back.

import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { ListRootsRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import t from 'tap'
import { gateway, key } from '../../kit/gateway.ts'

const { url } = await gateway(t, {
  upstreams: {
    eager: {
      command: process.execPath,
      args: [new URL('../../kit/roots-asking-server.ts', import.meta.url).pathname],
      era: 'legacy'
    }
  },
  endpoints: { default: { upstreams: ['eager'], prefix: '' } }
})
const headers = { authorization: `Bearer ${key}` }
const doors: Readonly<Record<string, () => Transport>> = {
  'Streamable HTTP': () => new StreamableHTTPClientTransport(new URL(url()), { requestInit: { headers } }) as Transport,
  'HTTP+SSE': () =>
    new SSEClientTransport(new URL(url().replace(/mcp$/, 'sse')), {
      requestInit: { headers },
      eventSourceInit: { fetch: (to, init) => fetch(to, { ...init, headers: { ...init.headers, ...headers } }) }
    })
}
const roots = [{ uri: 'file:///home/ada' }]

for (const [door, transport] of Object.entries(doors)) {
  t.test(`the answer that comes after the call is the server's, over ${door}`, async (t) => {
    const client = new Client({ name: 'host', version: '1' }, { capabilities: { roots: {} } })
    t.teardown(() => client.close())
    const asked = Promise.withResolvers<AbortSignal>()
    const over = Promise.withResolvers<void>()
    client.setRequestHandler(ListRootsRequestSchema, async (_request, { signal }) => {
      asked.resolve(signal)
      await over.promise
      return { roots }
    })
    await client.connect(transport())
    t.same((await client.callTool({ name: 'quick' })).content, [])
    const signal = await asked.promise
    t.notOk(signal.aborted, 'nobody took it back')
    over.resolve()
    t.same((await client.callTool({ name: 'told' })).content, [{ type: 'text', text: JSON.stringify({ roots }) }])
    t.notOk(signal.aborted)
  })
}
