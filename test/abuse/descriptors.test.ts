// Attack: somebody, with a token or without, opens connections until the process has no file descriptor left.

import { connect, type Socket } from 'node:net'
import t from 'tap'
import { adminCall, adminSection } from '../kit/admin.ts'
import { legacyClient, send } from '../kit/client.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'
import { attacked, keys, type Attacked } from './kit.ts'
import type { Test } from 'tap'

/** Opens connections, and writes the same on each. */
function dialMany(t: Test, { origin }: Attacked, count: number, text = ''): Socket[] {
  const port = Number(new URL(origin).port)
  const sockets = Array.from({ length: count }, () => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {}) // A reset is one way to be refused.
    socket.resume().write(text)
    return socket
  })
  t.teardown(() => sockets.forEach((socket) => socket.destroy()))
  return sockets
}

const closed = (sockets: readonly Socket[]): number => sockets.filter((socket) => socket.closed).length
const call = async (gateway: Attacked, url = gateway.url, key: string = keys.attacker): Promise<unknown> =>
  (await (await legacyClient(url, key)).request('tools/call', { name: 'calm__echo', arguments: {} })).json
const readiness = async ({ origin }: Attacked) => {
  const { status, json } = await send(`${origin}/health/ready`, { method: 'GET' })
  return { status, reason: json.reason as unknown }
}
const logged = (gateway: Attacked, text: string): number =>
  gateway.log().filter(({ msg }) => String(msg).includes(text)).length

t.test('connections that are refused are closed, and take no descriptor that an upstream needs', async (t) => {
  const gateway = await attacked(t, { descriptors: 200 })
  const neighbour = await gateway.neighbour()
  const sockets = dialMany(t, gateway, 400, 'POST /t/acme/mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n')
  // Sooner than Node closes those on which no other request comes: after 72 s.
  await until('refused connections are closed', () => closed(sockets) === 400, 60_000)
  // The next process of an upstream starts.
  t.match(await call(gateway), { result: {} })
  t.equal((await send(`${gateway.origin}/health/live`, { method: 'GET' })).status, 200)
  const { meanwhile, failures } = await neighbour.stop()
  t.same(failures, [])
  t.ok(meanwhile > 0, 'calls are answered meanwhile')
})

t.test('strangers who take all places of the admin listener leave descriptors to calls', async (t) => {
  const gateway = await attacked(t, { descriptors: 200, top: { admin: adminSection } })
  const adminUrl = String((await gateway.logged('the admin API', (line) => 'adminUrl' in line))['adminUrl'])
  const neighbour = await gateway.neighbour()
  const strangers = dialMany(t, { ...gateway, origin: adminUrl }, 256)
  await until('the oldest are closed', () => closed(strangers) > 200)
  for (let n = 0; n < 3; n++) t.match(await call(gateway), { result: {} }, 'a process more starts')
  t.equal((await adminCall(adminUrl, 'GET', '/v1/limits')).status, 200, 'an operator is served')
  t.same((await neighbour.stop()).failures, [])
})

t.test('connections on which nothing is said give way to those who come next', async (t) => {
  const gateway = await attacked(t, { descriptors: 200 })
  const neighbour = await gateway.neighbour()
  t.same(await readiness(gateway), { status: 200, reason: undefined })
  const sockets = dialMany(t, gateway, 400)
  // Asked from the first moment on: after ten seconds of silence a connection is closed.
  const full = await until('all places are taken', async () => {
    const now = await readiness(gateway).catch(() => undefined)
    return now?.reason === 'all connections of clients are in use' ? now : undefined
  })
  t.equal(full.status, 503)
  await until('the oldest are closed', () => closed(sockets) >= 300)
  t.match(await call(gateway, gateway.neighbourUrl, keys.neighbour), { result: {} })
  sockets.forEach((socket) => socket.destroy())
  await until('it is ready again', async () => (await readiness(gateway)).status === 200)
  await until('it is said', () => logged(gateway, 'free connections again') > 0)
  t.same([logged(gateway, 'are in use'), logged(gateway, 'free connections again')], [1, 1], 'said once')
  t.same((await neighbour.stop()).failures, [])
})

t.test('streams of one caller give way to a caller of another tenant', async (t) => {
  const gateway = await attacked(t, { descriptors: 200 })
  const neighbour = await gateway.neighbour()
  const refusals: string[] = []
  for (let n = 0; n < 90; n++) {
    await legacyClient(gateway.url, keys.attacker)
      .then((client) => client.listen())
      .then(
        (stream) => t.teardown(() => stream.close()),
        (error: unknown) => refusals.push(String(error))
      )
  }
  t.match(refusals, [/429/], 'the last ones are refused')
  t.match(await call(gateway, gateway.neighbourUrl, keys.neighbour), { result: {} })
  await until('it is said', () => logged(gateway, 'are in use') > 0)
  t.equal(logged(gateway, 'are in use'), 1, 'once')
  t.same((await neighbour.stop()).failures, [])
})

t.test('calls of one tenant at servers that never answer leave descriptors to what else needs one', async (t) => {
  const upstream = await startUpstream()
  t.teardown(upstream.close)
  const gateway = await attacked(t, { descriptors: 120, upstreams: { remote: { url: upstream.url } } })
  const neighbour = await gateway.neighbour()
  const client = await legacyClient(gateway.url, keys.attacker)
  const callRemote = async (tool: string, signal?: AbortSignal) =>
    (
      await client.request(
        'tools/call',
        { name: `remote__${tool}`, arguments: {} },
        signal === undefined ? {} : { signal }
      )
    ).json
  // Each of these sessions leaves a process with three pipes.
  for (let n = 0; n < 4; n++) t.match(await call(gateway, gateway.url, keys.colleague), { result: {} })
  const stop = new AbortController()
  const errors: unknown[] = []
  const calls = Array.from({ length: 50 }, () =>
    callRemote('slow', stop.signal).then(({ error }) => errors.push(error), String)
  )
  await until('a call is refused', () => errors.length > 0)
  t.match(errors[0], {
    message: /at most 30 requests at once together with the other upstreams of its tenant/,
    data: { reason: 'too_many', upstream: 'remote' }
  })
  t.match(await readiness(gateway), { status: 200 })
  t.match(await call(gateway, gateway.url, keys.colleague), { result: {} }, 'the next process starts')
  stop.abort()
  await Promise.all(calls)
  // In 2025-11-25 a call outlives its connection; it ends with its session.
  t.equal((await client.end()).status, 204)
  const other = await legacyClient(gateway.url, keys.colleague)
  const echo = { name: 'remote__echo', arguments: {} }
  await until('its sockets are free again', async () => 'result' in (await other.request('tools/call', echo)).json)
  const measured = await neighbour.stop()
  t.same(measured.failures, [])
  t.ok(measured.meanwhile > 0, 'calls are answered meanwhile')
})
