// A gateway whose store is away when it starts, or has no usable key: it says so and asks to come back, and serves as
// soon as it can. What it refused meanwhile takes no place of anybody, although the store may have done it.

import { Redis } from 'ioredis'
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

t.test(
  'a session that was refused because the store did not answer takes no place, nor one whose end was',
  async (t) => {
    const server = await redis(t)
    const other = new Redis(server.url)
    t.teardown(() => other.disconnect())
    const acme = await acmeGateway(t, { store: server.url, limits: { sessionsPerPrincipal: 1 } })
    const initialize = (): Promise<Answer> => send(acme.url(), { headers, body: initializeBody() })
    const end = ({ headers: { 'mcp-session-id': id } }: Answer): Promise<Answer> =>
      send(acme.url(), { method: 'DELETE', headers: { ...headers, 'mcp-session-id': id } })
    /** Redis does what is written when it goes on, for whoever has been told that it is away. */
    async function whileNothingIsWritten(run: () => Promise<Answer>): Promise<void> {
      await other.call('CLIENT', 'PAUSE', '600000', 'WRITE')
      t.match(await run(), { status: 503, json: { error: { data: { reason: 'unavailable' } } } })
      await other.call('CLIENT', 'UNPAUSE')
    }
    const opened = async (): Promise<Answer> =>
      await until('the only place is free', async () => {
        const answer = await initialize()
        return answer.status === 200 ? answer : undefined
      })
    const first = await opened()
    t.equal((await initialize()).status, 429, 'there is one place')
    t.equal((await end(first)).status, 204)
    await whileNothingIsWritten(initialize)
    const second = await opened()
    await whileNothingIsWritten(() => end(second))
    await opened()
    t.equal((await initialize()).status, 429, 'there still is one place')
  }
)
