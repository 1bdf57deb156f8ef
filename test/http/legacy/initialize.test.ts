// basic/lifecycle "Version Negotiation" of each handshake revision, over Streamable HTTP.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import t from 'tap'
import pino from 'pino'
import type { RequestContext } from '../../../src/http/admission.ts'
import { createLegacyHandler } from '../../../src/http/legacy/legacy.ts'
import type { StreamableOptions } from '../../../src/http/legacy/streams.ts'
import { acmeGateway, initializeBody, keyOf } from '../../kit/acme-gateway.ts'
import { jsonHeaders, legacyClient, send, type Answer } from '../../kit/client.ts'
import { until } from '../../kit/until.ts'
import { isMethod } from '../../kit/upstream.ts'

const auth = { ...jsonHeaders, authorization: `Bearer ${keyOf.ada}` }

t.test('initialize negotiates', async (t) => {
  const acme = await acmeGateway(t, { script: { instructions: 'Be gentle.' } })
  const open = (body: string, headers = {}) => send(acme.url(), { headers: { ...auth, ...headers }, body })

  for (const revision of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']) {
    const answer = await open(initializeBody(revision, `init ${revision}`))
    t.equal(answer.status, 200)
    t.equal(answer.headers['content-type'], 'application/json')
    t.equal(answer.json.id, `init ${revision}`)
    t.equal(answer.json.result.protocolVersion, revision, `${revision} is spoken`)
    t.match(answer.headers['mcp-session-id'], /^[\x21-\x7e]+$/, 'the session id is visible ASCII')
    t.equal('title' in answer.json.result.serverInfo, revision >= '2025-06-18', 'titles came with 2025-06-18')
    t.equal(answer.json.result.instructions, 'Be gentle.')
  }

  // 2026-07-28 has no handshake: a server never names it in an InitializeResult.
  for (const revision of [
    '2026-07-28',
    '2031-01-01',
    '2024-10-07',
    '1.0.0',
    '',
    'DRAFT',
    '2025-11-25 ',
    'x'.repeat(10_000)
  ]) {
    const answer = await open(initializeBody(revision))
    t.equal(answer.status, 200)
    t.equal(
      answer.json.result.protocolVersion,
      '2025-11-25',
      `${JSON.stringify(revision.slice(0, 20))} is answered with our latest`
    )
  }
})

t.test('a broken initialize is told so with its own id, and opens nothing', async (t) => {
  const acme = await acmeGateway(t)
  for (const revision of [undefined, null, 20251125, ['2025-11-25'], { date: '2025-11-25' }]) {
    const answer = await send(acme.url(), {
      headers: auth,
      body: JSON.stringify({ jsonrpc: '2.0', id: 'mine', method: 'initialize', params: { protocolVersion: revision } })
    })
    t.equal(answer.status, 200)
    t.equal(answer.json.error.code, -32602)
    t.equal(answer.json.id, 'mine')
    t.notOk(answer.headers['mcp-session-id'])
  }
  const bare = await send(acme.url(), { headers: auth, body: '{"jsonrpc":"2.0","id":1,"method":"initialize"}' })
  t.equal(bare.json.error.code, -32602)
  const notification = await send(acme.url(), { headers: auth, body: initializeBody().replace('"id":1,', '') })
  t.equal(notification.status, 400, 'initialize without an id is no request')
})

t.test('odd clients get in: what they say of themselves is cut to size, never trusted', async (t) => {
  const acme = await acmeGateway(t)
  const open = async (params: string) =>
    await send(acme.url(), {
      headers: auth,
      body: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",${params}}}`
    })
  for (const params of [
    '"capabilities":{}',
    '"clientInfo":{}',
    '"clientInfo":null',
    '"clientInfo":"curl"',
    '"clientInfo":{"name":7,"version":7}',
    '"clientInfo":{"name":"a","version":{"toString":1,"valueOf":1}}',
    '"clientInfo":{"name":"a","version":12345678901234567890}',
    '"capabilities":[]',
    '"capabilities":12345678901234567890',
    '"capabilities":{"__proto__":{"polluted":true}}',
    `"clientInfo":{"name":"${'n'.repeat(5000)}","version":"1"}`
  ])
    t.equal((await open(params)).status, 200, params.slice(0, 60))
  t.notOk(({} as Record<string, unknown>)['polluted'])

  const hoarder = await open(`"capabilities":{"experimental":{"x":"${'x'.repeat(20_000)}"}}`)
  t.equal(hoarder.json.error.code, -32602, 'capabilities stay in the store, so they are bounded')
})

t.test('capabilities are those of the upstreams, in the words of the gateway', async (t) => {
  const acme = await acmeGateway(t, { script: { capabilities: { tools: {}, experimental: { 'x/y': {} } } } })
  const answer = await send(acme.url(), { headers: auth, body: initializeBody() })
  t.same(answer.json.result.capabilities, { tools: { listChanged: true }, experimental: { 'x/y': {} } })
})

t.test('a second initialize', async (t) => {
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada)
  const again = await send(acme.url(), { headers: client.headers, body: initializeBody() })
  t.equal(again.status, 400, 'on a session is refused')
  t.equal(again.json.error.code, -32600)
  t.equal((await client.request('ping')).status, 200, 'and the session lives on')

  const beside = await send(acme.url(), { headers: auth, body: initializeBody() })
  t.equal(beside.status, 200, 'without the session opens another one')
  t.not(beside.headers['mcp-session-id'], client.sessionId)
})

t.test(
  'requests are served from the answer to initialize on: notifications/initialized may be late or lost',
  async (t) => {
    const acme = await acmeGateway(t)
    const opened = await send(acme.url(), { headers: auth, body: initializeBody() })
    const headers = { ...auth, 'mcp-session-id': String(opened.headers['mcp-session-id']) }
    const ping = await send(acme.url(), { headers, body: '{"jsonrpc":"2.0","id":1,"method":"ping"}' })
    t.same(ping.json, { jsonrpc: '2.0', id: 1, result: {} })
    const list = await send(acme.url(), { headers, body: '{"jsonrpc":"2.0","id":2,"method":"tools/list"}' })
    t.ok(list.json.result.tools.length > 0)

    const before = await send(acme.url(), { headers: auth, body: '{"jsonrpc":"2.0","id":3,"method":"ping"}' })
    t.equal(before.status, 400, 'while nothing is served before initialize')
  }
)

t.test('no session begins at an endpoint that was taken away while its upstreams were waited for', async (t) => {
  const limits = { coldStartMs: 30_000, sessionsPerPrincipal: 1 }
  const acme = await acmeGateway(t, { limits })
  const held: Array<() => void> = []
  acme.upstream.override(
    isMethod('tools/list'),
    (response) => {
      held.push(() => response.writeHead(500).end())
    },
    100
  )
  const answered = async (opening: Promise<Answer>): Promise<Answer> => {
    await until('it is answered', async () => {
      for (const release of held.splice(0)) release()
      return await Promise.race([
        opening.then(() => true),
        new Promise((resolve) => {
          setImmediate(resolve, false)
        })
      ])
    })
    return await opening
  }
  const opening = send(acme.url(), { headers: auth, body: initializeBody() })
  await until('the upstream is asked', () => held.length > 0)
  acme.reload({
    listen: { host: '127.0.0.1', port: 0 },
    store: 'memory:',
    limits,
    tenants: {
      acme: {
        auth: { keys: [{ name: 'ada', key: keyOf.ada }] },
        upstreams: { up: { type: 'http', url: acme.upstream.url } },
        endpoints: { files: { upstreams: ['up'] } }
      }
    }
  })
  const refused = await answered(opening)
  t.equal(refused.status, 404)
  t.notOk(refused.headers['mcp-session-id'])
  const opened = await answered(send(acme.url('files'), { headers: auth, body: initializeBody() }))
  t.equal(opened.status, 200, 'and what was begun does not count')
})

for (const [what, text, taken] of [
  ['4 KiB', 'x'.repeat(4_000), true],
  ['more', 'x'.repeat(4_100), false],
  ['more, in bytes', '\u00e9'.repeat(2_100), false]
] as const) {
  t.test(`capabilities of ${what} are ${taken ? 'taken' : 'refused'}`, async (t) => {
    const acme = await acmeGateway(t)
    const params = {
      protocolVersion: '2025-11-25',
      capabilities: { experimental: { x: text } },
      clientInfo: { name: 'raw', version: '1' }
    }
    const { json } = await send(acme.url(), {
      headers: auth,
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })
    })
    t.equal(json.error === undefined, taken)
    if (!taken)
      t.match(json.error, { code: -32602, message: /"capabilities" of initialize takes more than 4096 bytes/ })
  })
}

t.test('an initialize that fails by a fault of the gateway leaves no session behind', async (t) => {
  for (const isFaulty of [true, false]) {
    const open = new Set<unknown>()
    const session = { record: {} }
    const handler = createLegacyHandler({
      relay: {
        async describe() {
          if (isFaulty) throw new Error('a fault')
          return { capabilities: {}, instructions: undefined }
        }
      },
      sessions: {
        async open() {
          open.add(session)
          return { id: 'x', session }
        },
        async end(ended: unknown) {
          open.delete(ended)
        }
      },
      live: { use() {}, onDrop() {} },
      replicas: { homes: { serve() {} } },
      observers: { clock: { now: () => 0 }, log: pino({ level: 'silent' }) }
    } as unknown as StreamableOptions)
    const { url, close } = await serving(async (raw, incoming, body) => {
      const context = {
        raw,
        incoming,
        headers: {},
        principal: { tenant: 'acme', issuer: 'i', subject: 'ada', clientId: 'app' },
        tenant: { id: 'acme' },
        endpoint: { name: 'default', members: [] },
        memory: {},
        async revalidate() {}
      }
      await handler.post(context as unknown as RequestContext, body)
    })
    t.teardown(close)
    const { status } = await send(url, { headers: jsonHeaders, body: initializeBody() })
    t.same([status, open.size], isFaulty ? [500, 0] : [200, 1])
  }
})

/** Answers 500 where it rejects. */
async function serving(
  handle: (raw: ServerResponse, incoming: IncomingMessage, body: unknown) => Promise<void>
): Promise<{ url: string; close(): void }> {
  const http = createServer((incoming, raw) => {
    json(incoming)
      .then((body) => handle(raw, incoming, body))
      .catch(() => raw.writeHead(500).end('{}'))
  })
  await new Promise<void>((resolve) => {
    http.listen(0, '127.0.0.1', resolve)
  })
  const close = (): void => {
    http.closeAllConnections()
    http.close()
  }
  return { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/`, close }
}
