// A legacy server over HTTP that is upgraded to 2026-07-28 in its place, under a connection that is open.

import { request as httpRequest } from 'node:http'
import t, { type Test } from 'tap'
import {
  callOf,
  handshake,
  httpDefinition,
  never,
  recordingClient,
  recordingEvents,
  testConnector,
  until
} from '../kit/connector.ts'
import { startModern } from '../kit/modern-server.ts'
import { startUpstream } from '../kit/upstream.ts'

/** `upgrade`: the modern server answers in place of the older one from now on. */
async function open(t: Test, both = false) {
  const [old, modern] = [await startUpstream(), await startModern({ legacy: both })]
  const events = recordingEvents()
  const { pool } = testConnector()
  const definition = httpDefinition(old.url)
  const upstream = await pool.acquire(definition, 'upgraded', { ...handshake, era: 'modern' }, events)
  t.teardown(async () => {
    await upstream.close()
    await old.close()
    await modern.close()
  })
  const upgrade = (): void =>
    old.override(
      () => true,
      (response, { method, headers, message }) => {
        const kept = Object.fromEntries(
          Object.entries(headers).filter(([name]) => /^(accept|content-type|mcp-.*)$/.test(name))
        ) as Record<string, string>
        const forwarded = httpRequest(modern.url, { method, headers: kept }, (reply) => {
          response.writeHead(reply.statusCode ?? 0, reply.headers)
          reply.pipe(response)
        })
        forwarded.on('error', () => response.destroy())
        forwarded.end(message === undefined ? undefined : JSON.stringify(message))
      },
      1_000
    )
  let connected = 0
  const connect = async (era: 'legacy' | 'modern') => {
    const next = await pool.acquire(definition, `later ${++connected}`, { ...handshake, era }, recordingEvents())
    t.teardown(() => next.close())
    return next
  }
  return { old, modern, events, upstream, upgrade, connect }
}

for (const code of [-32020, -32021, -32022]) {
  t.test(`a call that is refused with ${code} and HTTP 400 may be tried again, and finds the new era`, async (t) => {
    const { old, events, upstream, upgrade, connect } = await open(t)
    t.equal(upstream.era, 'legacy')
    t.match(await upstream.request(callOf('echo'), recordingClient(), never), { content: [{}] })
    old.override(
      ({ message }) => message?.['method'] === 'tools/call',
      (response, { message }) => {
        response
          .writeHead(400, { 'content-type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], error: { code, message: 'no' } }))
      }
    )
    await t.rejects(upstream.request(callOf('echo'), recordingClient(), never), {
      code: 'upstream_unavailable',
      message: /was upgraded and speaks another revision now; the request was not executed\. Try again\.$/,
      row: { retry: true }
    })
    t.equal(events.ended.length, 1)
    await t.rejects(
      upstream.request(callOf('echo'), recordingClient(), never),
      { code: 'upstream_unavailable' },
      'the connection is over'
    )
    upgrade()
    for (const era of ['modern', 'legacy'] as const) t.equal((await connect(era)).era, 'modern')
    t.equal(events.ended.length, 1)
  })
}

t.test('a server that speaks both from now on is not taken for a legacy one any longer', async (t) => {
  const { old, upstream, upgrade, connect } = await open(t, true)
  t.equal((await connect('modern')).era, 'legacy')
  old.override(
    ({ message }) => message?.['method'] === 'tools/call',
    (response, { message }) => {
      response
        .writeHead(400, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], error: { code: -32022, message: 'no' } }))
    }
  )
  await t.rejects(upstream.request(callOf('echo'), recordingClient(), never), { code: 'upstream_unavailable' })
  upgrade()
  t.equal((await connect('modern')).era, 'modern')
})

t.test("the same with another status is the server's own error", async (t) => {
  const { old, events, upstream } = await open(t)
  old.override(
    ({ message }) => message?.['method'] === 'tools/call',
    (response, { message }) => {
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], error: { code: -32022, message: 'no' } }))
    }
  )
  t.match(await upstream.request(callOf('echo'), recordingClient(), never).catch((error: unknown) => error), {
    name: 'RpcError',
    error: { code: -32022 }
  })
  t.same(events.ended, [])
  t.match(await upstream.request(callOf('echo'), recordingClient(), never), { content: [{}] })
})

t.test('what others have in flight goes on', async (t) => {
  const { old, events, upstream } = await open(t)
  let finish = (): void => {}
  old.override(
    ({ message }) => message?.['method'] === 'prompts/list',
    (response, { message }) => {
      finish = () => {
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result: { prompts: [] } }))
      }
    }
  )
  const slow = upstream.request({ method: 'prompts/list' }, recordingClient(), never)
  await until(() => old.seen.some(({ message }) => message?.['method'] === 'prompts/list'), 'it runs')
  old.override(
    ({ message }) => message?.['method'] === 'tools/call',
    (response, { message }) => {
      response
        .writeHead(400, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], error: { code: -32022, message: 'no' } }))
    }
  )
  await t.rejects(upstream.request(callOf('echo'), recordingClient(), never), { code: 'upstream_unavailable' })
  t.equal(events.ended.length, 1)
  finish()
  t.same(await slow, { prompts: [] })
})
