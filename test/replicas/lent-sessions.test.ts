// Replicas send calls in one session of a server over HTTP, each by itself: without a message to the replica that has
// the session. Counted are the messages that replicas send each other.

import t from 'tap'
import { type LegacyClient, send } from '../kit/client.ts'
import { postEvents } from '../kit/events.ts'
import { callUntilServerRequest, isServerRequest, post } from '../kit/server-request.ts'
import { startStateful, type StatefulServer } from '../kit/stateful-server.ts'
import { isCall, startUpstream } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'
import { countMessages, tool } from './lending.ts'
import { sessionAt, startReplicas } from './rig.ts'

const [server, scripted] = [await startStateful(t), await startUpstream()]
t.teardown(() => scripted.close())
const upstreams = {
  state: { type: 'http', url: server.url },
  up: { type: 'http', url: scripted.url },
  // A connection is idle after half a second.
  brief: { type: 'http', url: scripted.url, idleMs: 500 },
  // A call may take longer than a machine stands still.
  hasty: { type: 'http', url: scripted.url, timeoutMs: 4_000 },
  unlent: { type: 'http', url: server.url, lendSessions: false }
}
const endpoints = {
  default: { upstreams: ['state', 'up'], prefix: '' },
  brief: { upstreams: ['brief'], prefix: '' },
  hasty: { upstreams: ['hasty'], prefix: '' },
  unlent: { upstreams: ['unlent'], prefix: '' }
}
const rig = await startReplicas(t, { upstreams, endpoints }, [{}, {}, {}])
const [home, guest, third] = [0, 1, 2].map((node) => rig.at(node)) as [string, string, string]
const at = (endpoint: string) =>
  [0, 1, 2].map((node) => rig.at(node, `t/acme/${endpoint}/mcp`)) as [string, string, string]

const { messagesOf, lentTo } = await countMessages(t, rig.store.url)

/** All that is said in the session at the server of a call. */
function saidIn(value: string): StatefulServer['seen'] {
  const isCall = ({ message }: StatefulServer['seen'][number]): boolean => message?.params?.arguments?.value === value
  const session = server.seen.find(isCall)?.session
  return server.seen.filter((each) => each.session !== undefined && each.session === session)
}

const callsIn = (said: StatefulServer['seen']) => said.filter(({ message }) => message?.method === 'tools/call')

/** A session that lives at the first replica, and that is lent to others. */
async function lent(value: string, to: readonly string[] = [guest], capabilities?: unknown): Promise<LegacyClient> {
  const client = await sessionAt(home, capabilities)
  t.equal(await tool(home, client, 'set', { value }), value)
  for (const url of to) await lentTo(url, client)
  return client
}

/** The session at the scripted server of what says this. */
const sessionOf = (word: string): unknown =>
  scripted.seen.find(({ message }) => JSON.stringify(message?.['params'] ?? {}).includes(word))?.headers[
    'mcp-session-id'
  ]

/** Whether a replica has asked for the stream of that session. */
const isHeard = (word: string): boolean =>
  scripted.seen.some(({ method, headers }) => method === 'GET' && headers['mcp-session-id'] === sessionOf(word))

/** Messages of replicas that lend and borrow: they ask each other twice a second whether they are there. */
const ofWatches = (since: number): number => (16 * (performance.now() - since)) / 1_000

for (const url of [home, guest, third, ...at('brief'), ...at('hasty')]) await (await sessionAt(url)).end()

t.test('calls at other replicas go to the server from there, in one session, under ids of their own', async (t) => {
  const client = await sessionAt(home)
  const hop = await messagesOf(async () => t.equal(await tool(guest, client, 'set', { value: 'one' }), 'one'))
  t.ok(hop >= 2, `the control: the first call goes to its home, in ${hop} messages`)
  for (const url of [guest, third]) await lentTo(url, client)
  const all = [home, guest, third, guest, third, guest]
  const began = performance.now()
  const sent = await messagesOf(async () => {
    for (const [n, url] of all.entries()) {
      t.equal(await tool(url, client, 'set', { value: `value ${n}` }), `value ${n}`)
      t.equal(await tool(all[n + 1] ?? home, client, 'get'), `value ${n}`, 'in the same session')
    }
    await Promise.all(Array.from({ length: 60 }, (_, n) => tool(all[n % 3]!, client, 'get')))
  })
  t.ok(sent < 20 + ofWatches(began), `72 calls took ${sent} messages between replicas`)
  const requests = saidIn('one').filter(({ message }) => message?.id !== undefined && message.method !== undefined)
  const ids = requests.map(({ message }) => message.id)
  t.equal(new Set(ids).size, ids.length, 'no id comes twice')
  t.ok(ids.length > 70, `${ids.length} requests`)
  t.equal(saidIn('one').filter(({ method }) => method === 'GET').length, 1, 'one replica listens')
  t.same([...new Set(saidIn('one').map(({ revision }) => revision))], ['2025-11-25'])
})

t.test('the sessions of one client at several upstreams are lent each by itself', async (t) => {
  const client = await lent('of two')
  await tool(home, client, 'echo', { text: 'of two' })
  await lentTo(guest, client, 'echo')
  const handshakes = () => scripted.seen.filter(({ message }) => message?.['method'] === 'initialize').length
  const [before, sessions] = [handshakes(), new Set<unknown>()]
  const began = performance.now()
  const sent = await messagesOf(async () => {
    for (let n = 0; n < 50; n++) {
      t.equal(await tool(guest, client, 'get'), 'of two')
      t.match(await tool(guest, client, 'echo', { text: `of two ${n}` }), `of two ${n}`)
      sessions.add(sessionOf(`of two ${n}`))
    }
  })
  t.ok(sent < 60 + ofWatches(began), `100 calls in turn took ${sent} messages between replicas`)
  t.same([sessions.size, handshakes()], [1, before])
  t.equal((await send(guest, { method: 'DELETE', headers: client.headers })).status, 204)
  await until('both have ended', () => !server.knows(saidIn('of two')[0]?.session))
})

t.test('no session is lent where the configuration does not say so', async (t) => {
  const [atHome, atGuest] = [0, 1].map((node) => rig.at(node, 't/acme/unlent/mcp')) as [string, string]
  const client = await sessionAt(atHome)
  t.equal(await tool(atHome, client, 'set', { value: 'unlent' }), 'unlent')
  for (let n = 0; n < 20; n++) {
    const hop = await messagesOf(async () => t.equal(await tool(atGuest, client, 'get'), 'unlent'))
    t.ok(hop >= 2, `call ${n} goes to its home, in ${hop} messages`)
  }
})

t.test('what a server asks during such a call is answered through any replica', async (t) => {
  const client = await sessionAt(home)
  await tool(home, client, 'echo')
  await lentTo(guest, client, 'echo')
  const own = await callUntilServerRequest(home, client, 'elicit', {}, 'at home')
  const asked = new Set([String(own.serverRequest['id']).split('-')[0]])
  await post(home, client, { id: own.serverRequest['id'], result: { action: 'accept' } })
  await own.result()
  for (const [n, answeredAt] of [guest, home, third].entries()) {
    const call = await callUntilServerRequest(guest, client, 'elicit', {}, `answered at ${n}`)
    asked.add(String(call.serverRequest['id']).split('-')[0])
    const answer = { id: call.serverRequest['id'], result: { action: 'accept', content: { n } } }
    t.equal((await post(answeredAt, client, answer)).status, 202)
    t.match(await call.result(), { result: { action: 'accept', content: { n } } })
  }
  t.equal(asked.size, 2, 'the replica that runs the call asks, and not the home')
})

t.test('what a server asks outside of the stream of the call reaches its client, whose call waits', async (t) => {
  const client = await lent('asked', [guest], { elicitation: {} })
  for (const url of [guest, third]) {
    const call = await postEvents(url, client, `asked at ${url}`, 'tools/call', { name: 'ask', arguments: {} })
    const { id } = await call.next('the server request', isServerRequest)
    t.equal((await post(third, client, { id, result: { action: 'accept', content: { word: 'yes' } } })).status, 202)
    const answer = await call.next('the answer', (message) => message.id === `asked at ${url}`)
    t.match(answer, { result: { content: [{ text: 'yes' }] } })
  }
  const needsHome = async (): Promise<boolean> => (await messagesOf(() => tool(guest, client, 'get'))) > 2
  await until('the session of such a server is lent no more', needsHome)
})

t.test('the time of a call stands still while its client is asked, outside of its stream, too', async (t) => {
  const [home, guest, third] = at('hasty')
  const client = await sessionAt(home)
  await tool(home, client, 'echo', { text: 'stands still' })
  await until('its home listens', () => isHeard('stands still'))
  await lentTo(guest, client, 'echo')
  const asking = { name: 'elicit', arguments: { push: true } }
  const call = await postEvents(guest, client, 'asks', 'tools/call', asking)
  const { id } = await call.next('the server request', isServerRequest)
  t.match(await tool(home, client, 'slow'), 'upstream_timeout', 'the control: a later call, of which nobody is asked')
  t.equal((await post(third, client, { id, result: { action: 'accept' } })).status, 202)
  t.match(await call.next('the answer', (message) => message.id === 'asks'), { result: {} })
})

t.test('what the server says of such a call on the stream of its home reaches the client', async (t) => {
  const client = await sessionAt(home)
  await tool(home, client, 'echo', { text: 'to be watched' })
  await until('its home listens', () => isHeard('to be watched'))
  await lentTo(guest, client, 'echo')
  const call = await postEvents(guest, client, 'watched', 'tools/call', { name: 'slow', _meta: { progressToken: 'p' } })
  await call.next('progress on its stream', ({ params }) => params?.progress === 0)
  const token = scripted.seen.findLast(isCall('slow'))?.message?.['id']
  const params = { progressToken: token, progress: 7 }
  scripted.broadcast({ jsonrpc: '2.0', method: 'notifications/progress', params })
  t.match(await call.next('progress on that of the home', (message) => message.params?.progress === 7), {
    params: { progressToken: 'p' }
  })
  scripted.broadcast({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'a line' } })
  t.match(await call.next('the line', ({ method }) => method === 'notifications/message'), {
    params: { data: 'a line' }
  })
  await post(guest, client, { method: 'notifications/cancelled', params: { requestId: 'watched' } })
  await call.ended
})

t.test('progress and cancellations reach the replica that runs the call', async (t) => {
  const client = await sessionAt(home)
  await tool(home, client, 'echo')
  await lentTo(guest, client, 'echo')
  const slow = (id: string) =>
    postEvents(guest, client, id, 'tools/call', { name: 'slow', _meta: { progressToken: `of ${id}` } })
  for (const [n, url] of [guest, home, third].entries()) {
    const call = await slow(`slow ${n}`)
    const progress = await call.next('progress', ({ method }) => method === 'notifications/progress')
    t.match(progress, { params: { progressToken: `of slow ${n}` } })
    const told = scripted.server.received.filter(({ method }) => method === 'notifications/cancelled').length
    const cancel = { method: 'notifications/cancelled', params: { requestId: `slow ${n}`, reason: 'enough' } }
    t.equal((await post(url, client, cancel)).status, 202)
    await call.ended
    t.notOk(call.messages().some(({ id }) => id === `slow ${n}`))
    await until(
      'the server was told',
      () => scripted.server.received.filter(({ method }) => method === 'notifications/cancelled').length > told
    )
  }
})

t.test('a session that the server has forgotten is begun anew once, for all replicas', async (t) => {
  const client = await lent('forgotten', [guest, third])
  const [before, id] = [server.seen.length, saidIn('forgotten')[0]?.session]
  server.forget(id)
  const values = await Promise.all([guest, third, guest, home, third].map((url) => tool(url, client, 'get')))
  t.same([...new Set(values)], ['nothing'], 'each call is answered')
  t.equal(await tool(guest, client, 'set', { value: 'begun anew' }), 'begun anew')
  for (const url of [third, home]) t.equal(await tool(url, client, 'get'), 'begun anew')
  const calls = callsIn(server.seen.slice(before)).filter(({ session }) => session !== id)
  t.same([...new Set(calls.map(({ session }) => session))], [saidIn('begun anew')[0]?.session], 'one session')
  t.equal(calls.length, 8, 'each call once')
})

t.test('its home ends it with one DELETE, whichever replica ends the session of the client', async (t) => {
  const ends = (value: string): number => saidIn(value).filter(({ method }) => method === 'DELETE').length
  const all = { 'ended at its home': home, 'ended at a guest': guest, 'ended elsewhere': third }
  for (const [value, url] of Object.entries(all)) {
    const client = await lent(value)
    t.equal(ends(value), 0)
    t.equal((await send(url, { method: 'DELETE', headers: client.headers })).status, 204)
    await until('the server has heard of the end', () => ends(value) > 0)
    t.notOk(server.knows(saidIn(value)[0]?.session))
  }
  t.same(Object.keys(all).map(ends), [1, 1, 1])
})

t.test('its home does not end it as idle while a call runs in it at another replica', async (t) => {
  const [home, guest, third] = at('brief')
  const isEnded = (word: string): boolean =>
    scripted.seen.some(({ method, headers }) => method === 'DELETE' && headers['mcp-session-id'] === sessionOf(word))
  const waiting = []
  // What it asks it asks on the stream of the call, and on that of the session.
  for (const push of [false, true]) {
    const [client, text] = [await sessionAt(home), `in use, ${push}`]
    await tool(home, client, 'echo', { text: `begins, ${push}` })
    await until('its home listens', () => isHeard(`begins, ${push}`))
    await lentTo(guest, client, 'echo')
    waiting.push({ text, client, call: await callUntilServerRequest(guest, client, 'elicit', { push, text }, 'waits') })
  }
  const other = await sessionAt(home)
  await tool(home, other, 'echo', { text: 'left alone' })
  await lentTo(guest, other, 'echo')
  await until('the control: one that is not in use is ended as idle', () => isEnded('left alone'))
  for (const { text, client, call } of waiting) {
    t.notOk(isEnded(text), text)
    await post(third, client, { id: call.serverRequest['id'], result: { action: 'accept' } })
    t.match(await call.result(), { result: { action: 'accept' } })
  }
  for (const { text, client } of waiting) {
    await until('it is ended as idle, too', () => isEnded(text))
    t.match(await tool(guest, client, 'echo', { text: 'again' }), 'again', 'and begun anew')
  }
})

t.test('a call that runs at another replica goes on where the home of its session is killed', async (t) => {
  const first = await rig.start()
  const url = `${first.url}/t/acme/mcp`
  await (await sessionAt(url)).end()
  const client = await sessionAt(url)
  await tool(url, client, 'echo')
  await lentTo(guest, client, 'echo')
  const call = await callUntilServerRequest(guest, client, 'elicit', { text: 'goes on' }, 'goes on')
  first.signal('SIGKILL')
  await first.ended
  const answer = { id: call.serverRequest['id'], result: { action: 'accept', content: { n: 1 } } }
  t.equal((await post(third, client, answer)).status, 202)
  t.match(await call.result(), { result: { action: 'accept', content: { n: 1 } } })
  for (const [n, each] of [third, guest, third].entries()) {
    t.match(await tool(each, client, 'echo', { text: `after ${n}` }), `after ${n}`)
    t.equal(sessionOf(`after ${n}`), sessionOf('goes on'), 'in the same session')
  }
})

t.test('a home that stops listens to the server until the calls of others in its session have ended', async (t) => {
  const first = await rig.start()
  const url = `${first.url}/t/acme/mcp`
  await (await sessionAt(url)).end()
  const client = await sessionAt(url)
  await tool(url, client, 'echo', { text: 'of one that stops' })
  await until('its home listens', () => isHeard('of one that stops'))
  await lentTo(guest, client, 'echo')
  const asking = { name: 'elicit', arguments: {}, _meta: { progressToken: 'p' } }
  const call = await postEvents(guest, client, 'waits', 'tools/call', asking)
  const { id } = await call.next('the server request', isServerRequest)
  const streams = scripted.streams()
  first.signal('SIGTERM')
  const isLeft = (): Promise<boolean> =>
    send(`${first.url}/health/ready`, { method: 'GET' }).then(
      ({ status }) => status === 503,
      () => true
    )
  await until('it stops', isLeft)
  const params = { progressToken: scripted.seen.findLast(isCall('elicit'))?.message?.['id'], progress: 7 }
  scripted.broadcast({ jsonrpc: '2.0', method: 'notifications/progress', params })
  await call.next('progress on the stream of the home', (message) => message.params?.progress === 7)
  t.equal((await post(third, client, { id, result: { action: 'accept' } })).status, 202)
  await call.next('the answer', (message) => message.id === 'waits' && message.result !== undefined)
  t.same(await first.ended, { code: 0, signal: null })
  await until('it listens no more', () => scripted.streams() < streams)
  await tool(guest, client, 'echo', { text: 'after it' })
  t.equal(sessionOf('after it'), sessionOf('of one that stops'))
})
