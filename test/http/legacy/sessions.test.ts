// The session rules of basic/transports: 400 without an id, 404 for one that is not, 404 everywhere after the end.

import t from 'tap'
import { moveClock } from '../../kit/moving-clock.ts'
import type { Store } from '../../../src/store/port.ts'
import { createSqliteStore } from '../../../src/store/sqlite.ts'
import { acmeGateway, initializeBody, keyOf } from '../../kit/acme-gateway.ts'
import { jsonHeaders, legacyClient, open, send, type Answer } from '../../kit/client.ts'
import { until } from '../../kit/until.ts'
import { quiet } from '../../store/kit.ts'

const auth = { ...jsonHeaders, authorization: `Bearer ${keyOf.ada}` }
const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'

const refusal = ({ status, json }: Answer) => ({ status, reason: json?.error?.data?.reason, id: json?.id })

t.test('without a session id', async (t) => {
  const acme = await acmeGateway(t)
  t.same(refusal(await send(acme.url(), { headers: auth, body: ping })), {
    status: 400,
    reason: 'session_required',
    id: 1
  })
  t.same(
    refusal(await send(acme.url(), { headers: auth, body: '{"jsonrpc":"2.0","method":"notifications/initialized"}' })),
    { status: 400, reason: 'session_required', id: undefined }
  )
  t.same(refusal(await send(acme.url(), { headers: auth, body: '{"jsonrpc":"2.0","id":7,"result":{}}' })), {
    status: 400,
    reason: 'session_required',
    id: undefined
  })
  t.same(refusal(await send(acme.url(), { headers: auth, body: `[${ping}]` })), {
    status: 400,
    reason: 'session_required',
    id: undefined
  })
  t.same(refusal(await send(acme.url(), { method: 'GET', headers: { ...auth, accept: 'text/event-stream' } })), {
    status: 400,
    reason: 'session_required',
    id: undefined
  })
  t.same(refusal(await send(acme.url(), { method: 'DELETE', headers: auth })), {
    status: 400,
    reason: 'session_required',
    id: undefined
  })
})

t.test('an id that is no session of ours is not found', async (t) => {
  const acme = await acmeGateway(t)
  for (const id of ['x'.repeat(43), '9c5b94b1-35ad-49bb-b118-8e8fc24abf80', 'a', '0'.repeat(128)]) {
    const headers = { ...auth, 'mcp-session-id': id }
    t.same(refusal(await send(acme.url(), { headers, body: ping })), { status: 404, reason: 'session_unknown', id: 1 })
    t.equal((await send(acme.url(), { method: 'GET', headers })).status, 404)
    t.equal((await send(acme.url(), { method: 'DELETE', headers })).status, 404)
    t.equal(
      (await send(acme.url(), { headers, body: initializeBody() })).status,
      200,
      'and does not stand in the way of a new one'
    )
  }
})

t.test('DELETE ends the session everywhere', async (t) => {
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada)
  const stream = await client.listen()
  const other = await legacyClient(acme.url(), keyOf.ada)

  const ended = await client.end()
  t.equal(ended.status, 204)
  t.equal(ended.text, '')
  await stream.ended
  t.equal((await client.request('ping')).status, 404)
  t.equal((await client.notify('notifications/cancelled', { requestId: 1 })).status, 404)
  t.equal((await send(acme.url(), { method: 'GET', headers: client.headers })).status, 404)
  t.equal((await client.end()).status, 404, 'a second DELETE finds nothing')
  t.equal(
    (await send(acme.url(), { headers: client.headers, body: initializeBody() })).status,
    200,
    'a new session can be had'
  )
  t.equal((await other.request('ping')).status, 200, 'the other session of the same caller lives')
})

t.test('DELETE needs no body and reads none', async (t) => {
  const acme = await acmeGateway(t)
  const end = async (headers: object, body?: string) => {
    const client = await legacyClient(acme.url(), keyOf.ada)
    return (
      await send(acme.url(), {
        method: 'DELETE',
        headers: {
          authorization: auth.authorization,
          'mcp-session-id': client.sessionId,
          ...headers,
          ...(body === undefined ? {} : { 'content-length': body.length })
        },
        ...(body === undefined ? {} : { body })
      })
    ).status
  }
  t.equal(await end({}), 204)
  t.equal(await end({ 'content-type': 'application/json' }), 204, 'some clients send the headers of their POSTs')
  t.equal(await end({ 'content-type': 'application/json' }, '{"not": json'), 204)
  t.equal(await end({ 'content-type': 'text/plain' }, 'bye'), 204)
})

t.test('a call in flight when its session ends is answered', async (t) => {
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada)
  const running = client.request('tools/call', { name: 'slow' }, { id: 'left' })
  await until('the call is at the upstream', () => acme.upstream.server.calls('slow') === 1)
  t.equal((await client.end()).status, 204)
  const answer = await running
  t.equal(answer.status, 200)
  t.equal(answer.json.id, 'left')
  t.equal(answer.json.error.data.reason, 'session_unknown')
  t.equal(answer.json.error.data.outcome, 'unknown', 'whether the tool did it cannot be known')
})

t.test('an idle session ends by itself', async (t) => {
  const acme = await acmeGateway(t, { limits: { sessionIdleMs: 8_000 }, overrides: { keepAliveMs: 50 } })
  const client = await legacyClient(acme.url(), keyOf.ada)
  await client.request('tools/call', { name: 'echo' })
  const listening = await legacyClient(acme.url(), keyOf.ada)
  const stream = await listening.listen()

  const opened = acme.upstream.seen.filter(({ message }) => message?.['method'] === 'initialize')
  t.equal(opened.length, 2, 'one of the listing, one of the session that called')
  await until('the idle session let go of its upstream', () => acme.upstream.sessions.size === 1)
  t.equal((await client.request('ping')).status, 404)
  t.equal((await listening.request('ping')).status, 200, 'while a listening client keeps its session')
  stream.close()
})

t.test('the lifetime of a session ends even if it is busy', async (t) => {
  t.teardown(() => moveClock(0))
  const acme = await acmeGateway(t, { limits: { sessionMaxMs: 60_000 }, overrides: { keepAliveMs: 50 } })
  const client = await legacyClient(acme.url(), keyOf.ada)
  const stream = await client.listen()
  t.equal((await client.request('ping')).status, 200)
  moveClock(30_000)
  t.equal((await client.request('ping')).status, 200)
  moveClock(61_000)
  await stream.ended
  t.equal((await client.request('ping')).status, 404)
})

t.test('sessions of one endpoint are unknown at another', async (t) => {
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada)
  t.equal((await send(acme.url('files'), { headers: client.headers, body: ping })).status, 404)
  const response = await open(acme.url(), { headers: { ...client.headers, accept: 'text/event-stream' } })
  t.equal(response.statusCode, 200)
  response.destroy()
})

t.test('a session that is used at the moment of its end keeps no place', async (t) => {
  t.teardown(() => moveClock(0))
  const inner = await createSqliteStore({ path: ':memory:', clock: { now: Date.now }, log: quiet })
  const begun = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<void>()
  let isFirst = true
  const store = new Proxy(inner, {
    get: (target, name: keyof Store) =>
      name === 'touch'
        ? async (key: string, ttlMs: number) => {
            // The first one is on its way until the session has ended.
            const isHeld = isFirst
            isFirst = false
            if (isHeld) begun.resolve()
            if (isHeld) await ended.promise
            return await target.touch(key, ttlMs)
          }
        : target[name]
  })
  const limits = { sessionsPerPrincipal: 1 }
  const acme = await acmeGateway(t, { overrides: { store }, limits, resources: { sessions: 1 } })
  const client = await legacyClient(acme.url(), keyOf.ada)
  const initialize = (who: 'ada' | 'bob') =>
    send(acme.url(), { headers: { ...jsonHeaders, authorization: `Bearer ${keyOf[who]}` }, body: initializeBody() })
  t.equal((await initialize('bob')).status, 429, 'it is the one of the tenant')
  // It is written with the first request after a while.
  moveClock(120_000)
  const used = client.request('ping')
  await begun.promise
  t.equal((await client.end()).status, 204)
  ended.resolve()
  await used
  moveClock(125_000)
  t.equal((await initialize('bob')).status, 200, 'its places are free')
})
