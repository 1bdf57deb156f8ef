// A gateway whose store is away when it starts, or has no usable key: it says so and asks to come back, and serves as
// soon as it can.

import t from 'tap'
import { sealKeyKey } from '../../src/store/keys.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { acmeGateway, initializeBody, keyOf, type AcmeGateway } from '../kit/acme-gateway.ts'
import { jsonHeaders, legacyClient, send, type Answer } from '../kit/client.ts'
import { openSse, sseUrl } from '../kit/http-sse-client.ts'
import { redis } from '../kit/redis.ts'
import { until } from '../kit/until.ts'
import { quiet } from '../store/kit.ts'

const headers = { ...jsonHeaders, authorization: `Bearer ${keyOf.ada}` }
const ready = (acme: AcmeGateway): Promise<Answer> => send(`${acme.publicUrl}/health/ready`, { method: 'GET' })

async function everyDoorIsClosed(
  t: Parameters<typeof acmeGateway>[0] & { match(found: unknown, wanted: unknown, name: string): unknown },
  acme: AcmeGateway
): Promise<void> {
  const asked: Record<string, Promise<Answer>> = {
    initialize: send(acme.url(), { headers, body: initializeBody() }),
    'a GET stream': send(acme.url(), { method: 'GET', headers: { ...headers, 'mcp-session-id': 'x' } }),
    'a stream of HTTP+SSE': send(sseUrl(acme.url()), { method: 'GET', headers })
  }
  for (const [what, answer] of Object.entries(asked)) {
    const { status, headers, json } = await answer
    t.match(
      { status, retry: headers['retry-after'], reason: json.error.data.reason },
      { status: 503, retry: '1', reason: 'unavailable' },
      what
    )
  }
}

async function everyDoorIsOpen(acme: AcmeGateway): Promise<void> {
  await (await legacyClient(acme.url(), keyOf.ada)).request('tools/list')
  const old = await openSse(sseUrl(acme.url()), keyOf.ada)
  old.close()
}

t.test('Redis is away at the start', async (t) => {
  const server = await redis(t)
  await server.stop()
  const acme = await acmeGateway(t, { store: server.url })
  await everyDoorIsClosed(t, acme)
  const away = await ready(acme)
  t.match(
    [away.status, away.headers['retry-after'], away.json],
    [503, '1', { status: 'not ready', reason: 'the store cannot be reached' }]
  )
  t.equal((await send(`${acme.publicUrl}/health/live`, { method: 'GET' })).status, 200)

  await server.restart()
  await until('it is ready', async () => (await ready(acme)).status === 200)
  await everyDoorIsOpen(acme)
})

t.test('the store is there, but not its key', async (t) => {
  const store = await createSqliteStore({ path: ':memory:', clock: Date, log: quiet })
  await store.set(sealKeyKey, 'damaged')
  const acme = await acmeGateway(t, { overrides: { store } })
  await everyDoorIsClosed(t, acme)
  const away = await ready(acme)
  t.match(
    [away.status, away.headers['retry-after'], away.json],
    [503, '1', { status: 'not ready', reason: 'the key of the store cannot be had' }]
  )

  await store.delete(sealKeyKey)
  await until('it is ready', async () => (await ready(acme)).status === 200)
  await everyDoorIsOpen(acme)
})
