// A session at a server over HTTP that is given back is lent again as soon as it can be, and not before.

import type { ServerResponse } from 'node:http'
import t from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import { type LegacyClient, legacyClient, send } from '../kit/client.ts'
import { postEvents } from '../kit/events.ts'
import { configOf, gateway } from '../kit/gateway.ts'
import { redis } from '../kit/redis.ts'
import { isCall, isMethod, startUpstream, type Seen } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'
import { countMessages, tool } from './lending.ts'
import { sessionAt, startReplicas } from './rig.ts'

const server = await startUpstream()
t.teardown(server.close)
const endpoints = { default: { upstreams: ['up'], prefix: '' } }
const upstreams = { up: { type: 'http', url: server.url } }
const rig = await startReplicas(t, { upstreams, endpoints }, [{}, {}])
const [guest, third] = [0, 1].map((node) => rig.at(node)) as [string, string]
const { lentTo } = await countMessages(t, rig.store.url)

/** A replica that has read the lists. */
async function startHome() {
  const node = await rig.start()
  const url = `${node.url}/t/acme/mcp`
  await warm(url)
  return { node, url }
}

async function warm(url: string): Promise<void> {
  const client = await sessionAt(url)
  await tool(url, client, 'echo')
  await client.end()
}
for (const url of [guest, third]) await warm(url)

const endAt = async (url: string, { headers }: LegacyClient): Promise<number> =>
  (await send(url, { method: 'DELETE', headers })).status

const handshakes = (): number => server.seen.filter(isMethod('initialize')).length
const says = (word: string) => (seen: Seen) =>
  isCall('echo')(seen) && JSON.stringify(seen.message?.['params']).includes(word)

t.test('what its home asks back while it is being lent is not used', async (t) => {
  const { node, url } = await startHome()
  const client = await sessionAt(url)
  await tool(url, client, 'echo', { text: 'begins' })
  const session = server.seen.find(says('begins'))?.headers['mcp-session-id']
  const held: Array<() => void> = []
  const hold = (response: ServerResponse, { message }: Seen): void => {
    const pong = JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result: {} })
    held.push(() => response.setHeader('Content-Type', 'application/json').end(pong))
  }
  server.override((seen) => isMethod('ping')(seen) && seen.headers['mcp-session-id'] === session, hold)
  await until('the other replica tries the session', async () => {
    t.match(await tool(guest, client, 'echo', { text: 'at home' }), 'at home')
    return held.length > 0
  })
  t.same(await node.stop(), { code: 0, signal: null })
  for (const release of held) release()
  const other = await sessionAt(guest)
  for (let n = 0; n < 10; n++) await tool(guest, other, 'echo')
  await other.end()
  t.match(await tool(guest, client, 'echo', { text: 'after it' }), 'after it')
  const inSession = server.seen.filter(({ headers }) => headers['mcp-session-id'] === session)
  const streams = inSession.flatMap(({ method }, at) => (method === 'GET' ? [at] : []))
  t.equal(streams.length, 2, 'the next home listens')
  t.ok(inSession.findIndex(says('after it')) > (streams[1] ?? Infinity), 'before a call is sent')
  t.equal(await endAt(guest, client), 204)
})

t.test('the home that follows lends it, although a call still runs on the connection of before', async (t) => {
  const { node, url } = await startHome()
  const client = await sessionAt(url)
  await tool(url, client, 'echo')
  await lentTo(guest, client, 'echo')
  const slow = await postEvents(guest, client, 'slow', 'tools/call', { name: 'slow', arguments: {} })
  await until('it runs', () => server.server.calls('slow') > 0)
  node.signal('SIGKILL')
  await node.ended
  await until('the session has another home', async () =>
    /echo/.test(await tool(third, client, 'echo', { text: 'echo' }))
  )
  await lentTo(guest, client, 'echo')
  server.server.release()
  t.match(await slow.next('its answer', ({ id }) => id === 'slow'), { result: {} })
  t.equal(await endAt(guest, client), 204)
})

t.test('after a change of the definition, which one replica reads after the other, it is lent again', async (t) => {
  const store = (await redis(t)).url
  const changed = (timeoutMs: number, lendSessions?: boolean) => ({
    ...{ store, endpoints },
    upstreams: { up: { ...upstreams.up, timeoutMs, ...(lendSessions === false && { lendSessions }) } }
  })
  const auth = { keys: [{ name: 'ada', key: keyOf.ada }] }
  const nodes = [0, 1].map(() => gateway(t, { ...changed(50_000), auth }))
  const [home, borrower] = (await Promise.all(nodes)) as [Awaited<(typeof nodes)[0]>, Awaited<(typeof nodes)[0]>]
  const counted = await countMessages(t, store)
  for (const each of [home, borrower]) await warm(each.url())
  const client = await legacyClient(home.url(), keyOf.ada)
  await tool(home.url(), client, 'echo')
  await counted.lentTo(borrower.url(), client, 'echo')
  for (const each of [borrower, home]) {
    each.reload(configOf({ ...changed(40_000), auth }))
    for (let n = 0; n < 20; n++) t.match(await tool(borrower.url(), client, 'echo', { text: `word ${n}` }), `word ${n}`)
  }
  // Less than what is waited for where nothing can be lent.
  await counted.lentTo(borrower.url(), client, 'echo', 20_000)

  const [sessions, config] = [handshakes(), configOf({ ...changed(40_000), auth })]
  const unlent = configOf({ ...changed(40_000, false), auth })
  const calls = server.server.calls('slow')
  const slow = await postEvents(borrower.url(), client, 'slow', 'tools/call', { name: 'slow', arguments: {} })
  await until('it runs', () => server.server.calls('slow') > calls)
  borrower.reload(unlent)
  for (let n = 0; n < 5; n++) {
    const hop = await counted.messagesOf(() => tool(borrower.url(), client, 'echo'))
    t.ok(hop >= 2, `where it may be lent no more, call ${n} goes to its home, in ${hop} messages`)
  }
  server.server.release()
  t.match(await slow.next('its answer', ({ id }) => id === 'slow'), { result: {} }, 'a call that runs goes on')
  borrower.reload(config)
  await counted.lentTo(borrower.url(), client, 'echo')
  t.equal(handshakes(), sessions, 'all in one session at the server')
  t.equal(await endAt(borrower.url(), client), 204)
})

t.test('where it may be lent no more, that holds at once for an upstream that is told who calls, too', async (t) => {
  const store = (await redis(t)).url
  const auth = { keys: [{ name: 'ada', key: keyOf.ada }] }
  const given = (lendSessions: boolean) => ({
    ...{ store, endpoints, auth },
    upstreams: { up: { ...upstreams.up, headers: { 'X-User': '${principal.subject}' }, lendSessions } }
  })
  const nodes = await Promise.all([0, 1].map(() => gateway(t, given(true))))
  const [home, borrower] = nodes as [(typeof nodes)[0], (typeof nodes)[0]]
  const counted = await countMessages(t, store)
  for (const each of nodes) await warm(each.url())
  const client = await legacyClient(home.url(), keyOf.ada)
  await tool(home.url(), client, 'echo')
  await counted.lentTo(borrower.url(), client, 'echo')
  borrower.reload(configOf(given(false)))
  const hop = await counted.messagesOf(() => tool(borrower.url(), client, 'echo'))
  t.ok(hop >= 2, `the next call goes to its home, in ${hop} messages`)
  borrower.reload(configOf(given(true)))
  await counted.lentTo(borrower.url(), client, 'echo')
  t.equal(await endAt(borrower.url(), client), 204)
})
