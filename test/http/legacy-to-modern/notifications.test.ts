// What a modern server says beside its answers, to sessions of legacy clients: log messages, changed lists, changed
// resources.

import t from 'tap'
import { legacyClient } from '../../kit/client.ts'
import type { Json } from '../../kit/server-request.ts'
import { gateway, key } from '../../kit/gateway.ts'
import { modernWays, startModern } from '../../kit/modern-server.ts'
import { httpSseClient } from '../../kit/http-sse-client.ts'
import { legacyTransports, legacyRevisions, answeringClient, type LegacyTransport } from '../../kit/answering-client.ts'
import { until } from '../../kit/until.ts'

const up = await startModern()
t.teardown(() => up.close())
const acme = await gateway(t, modernWays(up.url))
const levelKey = 'io.modelcontextprotocol/logLevel'

for (const transport of legacyTransports) {
  for (const endpoint of ['default', 'pipe', 'all']) {
    t.test(
      `${transport}, endpoint ${endpoint}: log messages come where the session wants them, and from the level on that it said`,
      async (t) => {
        for (const revision of legacyRevisions) {
          const client = await answeringClient(acme.url(endpoint), key, transport, revision)
          const other = await answeringClient(acme.url(endpoint), key, transport, revision)
          const tool = (name: string): string => (endpoint === 'all' ? `pipe__${name}` : name)
          const lines = async (level: string): Promise<Json[]> => {
            const call = await client.start('tools/call', { name: tool('log'), arguments: { level } })
            await call.final()
            return call
              .messages()
              .filter(({ method }) => method === 'notifications/message')
              .map(({ params }) => params as Json)
          }
          await other.request('logging/setLevel', { level: 'debug' })
          t.same(await lines('error'), [], 'nobody asked for any here')
          t.same((await client.request('logging/setLevel', { level: 'warning' }))['result'], {})
          t.same(await lines('error'), [
            { level: 'error', logger: endpoint === 'all' ? 'pipe/modern' : 'modern', data: 'line 1' }
          ])
          t.same(await lines('info'), [], 'the server sends it all the same; it goes no further')
          const { meta } = (
            JSON.parse(
              String(
                (await client.request('tools/call', { name: tool('received'), arguments: {} }))['result'].content[0]
                  .text
              )
            ) as Json[]
          )
            .filter(({ params }) => params?.name === 'log')
            .map(({ params }) => ({ meta: params._meta as Json }))
            .at(-1) as { meta: Json }
          t.equal(meta[levelKey], 'warning')
          client.close()
          other.close()
        }
      }
    )
  }
}

interface Listener {
  request(method: string, params?: Json): Promise<Json>
  messages: Json[]
  close(): void
}

async function listener(url: string, transport: LegacyTransport, revision: string): Promise<Listener> {
  if (transport === 'HTTP+SSE') {
    const client = await httpSseClient(url, key, revision)
    return {
      request: async (method, params) => (await client.request(method, params)) as Json,
      messages: client.messages as Json[],
      close: () => client.close()
    }
  }
  const client = await legacyClient(url, key, revision)
  const stream = await client.listen()
  return {
    request: async (method, params) => (await client.request(method, params)).json as Json,
    messages: stream.messages as Json[],
    close: () => stream.close()
  }
}

for (const transport of legacyTransports) {
  for (const endpoint of ['default', 'pipe', 'all']) {
    t.test(`${transport}, endpoint ${endpoint}: changed lists and changed resources`, async (t) => {
      for (const revision of ['2024-11-05', '2025-11-25']) {
        const client = await listener(acme.url(endpoint), transport, revision)
        const via = (name: string): string => (endpoint === 'all' ? `pipe__${name}` : name)
        const uri = (at: string): string => (endpoint === 'all' ? `gatehouse://pipe/${at}` : at)
        const updates = (): string[] =>
          client.messages
            .filter(({ method }) => method === 'notifications/resources/updated')
            .map(({ params }) => String(params.uri))
        t.same((await client.request('resources/subscribe', { uri: uri('test://one') }))['result'], {})
        await client.request('tools/call', { name: via('touch'), arguments: { uri: 'test://two' } })
        await client.request('tools/call', { name: via('touch'), arguments: { uri: 'test://one' } })
        await until('the update', () => updates().length > 0)
        t.same(updates(), [uri('test://one')])
        t.same((await client.request('resources/unsubscribe', { uri: uri('test://one') }))['result'], {})
        t.match(await client.request('resources/subscribe', { uri: uri('test://one') }), { result: {} })
        await client.request('tools/call', { name: via('touch'), arguments: { uri: 'test://one' } })
        await until('the next update', () => updates().length === 2)

        if (endpoint === 'default') {
          const name = `grown_${transport.replaceAll(/\W/g, '')}_${revision}`
          await client.request('tools/call', { name: 'grow', arguments: { name } })
          await until('the change', () =>
            client.messages.some(({ method }) => method === 'notifications/tools/list_changed')
          )
          await until('the new tool', async () => {
            const all: Json[] = []
            for (let cursor: unknown; ;) {
              const { result } = (await client.request('tools/list', cursor === undefined ? {} : { cursor })) as {
                result: Json
              }
              all.push(...(result['tools'] as Json[]))
              cursor = result['nextCursor']
              if (cursor === undefined) return all.some((tool) => tool['name'] === name)
            }
          })
        }
        client.close()
      }
    })
  }
}

t.test('a server without subscriptions refuses them', async (t) => {
  const bare = await startModern({ capabilities: { resources: {} } })
  t.teardown(() => bare.close())
  const made = await gateway(t, {
    upstreams: { up: { type: 'http', url: bare.url, era: 'modern' } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } }
  })
  const client = await answeringClient(made.url(), key, 'Streamable HTTP', '2025-11-25')
  t.match(await client.request('resources/subscribe', { uri: 'test://one' }), { error: { code: -32602 } })
})
