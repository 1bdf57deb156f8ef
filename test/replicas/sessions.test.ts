// A session of 2025-11-25 whose requests come to each replica in turn: it is one session at its upstreams, and its client
// hears on one stream what happens at any of them.

import t from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import type { LegacyClient } from '../kit/client.ts'
import { listenEvents, postEvents } from '../kit/events.ts'
import { callUntilServerRequest, post, scriptedStdio } from '../kit/server-request.ts'
import { isCall, startUpstream } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'
import { sessionAt, startReplicas } from './rig.ts'

const upstream = await startUpstream()
t.teardown(() => upstream.close())
const rig = await startReplicas(t, {
  upstreams: { pipe: scriptedStdio, web: { type: 'http', url: upstream.url } },
  endpoints: {
    default: { upstreams: ['pipe'], prefix: '' },
    web: { upstreams: ['web'], prefix: '' },
    both: { upstreams: ['pipe', 'web'] }
  }
})

const textOf = async (client: LegacyClient, name: string, args: object = {}): Promise<string> => {
  const { json, text } = await client.request('tools/call', { name, arguments: args })
  return String(json?.result?.content?.[0]?.text ?? text)
}

t.test('a session has one child process, whichever replica its calls come to', async (t) => {
  const [one, two] = [await sessionAt(rig.url()), await sessionAt(rig.url())]
  const before = rig.turns.length
  const pids = await Promise.all([1, 2, 3, 4, 5, 6].map(() => textOf(one, 'pid')))
  t.equal(new Set(rig.turns.slice(before)).size, 3, 'each replica had some of them')
  t.match(pids[0], /^\d+$/)
  t.equal(new Set(pids).size, 1)
  t.not(await textOf(two, 'pid'), pids[0], 'another session has its own')
})

t.test('a session is one session at an upstream over HTTP, too', async (t) => {
  const web = rig.url('t/acme/web/mcp')
  const first = await sessionAt(web)
  for (let n = 0; n < 12; n++) t.match(await textOf(first, 'echo', { n }), `{"n":${n}}`)
  const sessions = upstream.seen.filter(isCall('echo')).map(({ headers }) => headers['mcp-session-id'])
  t.same([sessions.length, new Set(sessions).size], [12, 1])
})

t.test('server requests and progress of a call, and the answers, come to any replica', async (t) => {
  const client = await sessionAt(rig.url())
  for (const tool of ['elicit', 'sample', 'roots', 'elicit']) {
    const asking = await callUntilServerRequest(rig.url(), client, tool, {}, `the ${tool}`)
    const result = { action: 'accept', content: { name: tool }, roots: [] }
    t.equal((await post(rig.url(), client, { id: asking.serverRequest['id'], result })).status, 202)
    t.match(await asking.result(), { result: { action: 'accept' } })
  }
  for (let n = 0; n < 3; n++) {
    const params = { name: 'progress', arguments: { steps: 3 }, _meta: { progressToken: `p${n}` } }
    const call = await postEvents(rig.url(), client, `steps ${n}`, 'tools/call', params)
    await call.ended
    t.same(
      call.messages().map(({ params, id }) => params?.progress ?? id),
      [1, 2, 3, `steps ${n}`]
    )
  }
})

t.test('a cancellation reaches the child process of a call', async (t) => {
  const client = await sessionAt(rig.url())
  for (const id of ['a', 'b', 'c']) {
    const call = await postEvents(rig.url(), client, id, 'tools/call', { name: 'slow', _meta: { progressToken: id } })
    await call.next('progress', ({ method }) => method === 'notifications/progress')
    await post(rig.url(), client, { method: 'notifications/cancelled', params: { requestId: id } })
    await call.ended
    t.notOk(call.messages().some((message) => message.id === id))
  }
  t.equal(await textOf(client, 'release'), 'released', 'the process goes on')
})

t.test('a client hears of its subscriptions and lists on its one stream', async (t) => {
  const client = await sessionAt(rig.url())
  const uri = 'test://one'
  for (let n = 0; n < 3; n++) {
    const stream = await listenEvents(rig.url(), client)
    await until('it is primed', () => stream.lastId())
    t.match((await client.request('resources/subscribe', { uri })).json, { result: {} })
    t.equal(await textOf(client, 'touch'), 'touched')
    await stream.next('the update', ({ method, params }) => method?.endsWith('resources/updated') && params.uri === uri)
    t.match((await client.request('resources/unsubscribe', { uri })).json, { result: {} })
    t.equal(await textOf(client, 'touch'), 'nobody subscribed')
    await textOf(client, 'grow', { name: `grown-${n}` })
    await stream.next('the change', ({ method }) => method === 'notifications/tools/list_changed')
    await until('each replica lists it', async () => {
      const lists = await Promise.all([1, 2, 3].map(() => client.request('tools/list')))
      return lists.every(({ json }) => json.result.tools.some(({ name }: { name: string }) => name === `grown-${n}`))
    })
    // The next round listens at another replica.
    const other = await listenEvents(rig.url(), client)
    await stream.ended
    other.cut()
  }
})

t.test('logging/setLevel, prompts, resources and completion are answered everywhere', async (t) => {
  const client = await sessionAt(rig.url())
  for (let n = 0; n < 3; n++) {
    t.match((await client.request('logging/setLevel', { level: 'info' })).json, { result: {} })
    t.match((await client.request('prompts/get', { name: 'greet' })).json, { result: { messages: [{}] } })
    t.match((await client.request('resources/read', { uri: 'test://one' })).json, { result: { contents: [{}] } })
    const ref = { type: 'ref/prompt', name: 'greet' }
    const completed = await client.request('completion/complete', { ref, argument: { name: 'who', value: 'a' } })
    t.match(completed.json, { result: { completion: { values: ['alpha', 'beta'] } } })
    const logged = await client.request('tools/call', { name: 'log' })
    t.match(logged.messages[0], { method: 'notifications/message' })
  }
})

t.test('a large answer comes whole through another replica', async (t) => {
  const client = await sessionAt(rig.at(0))
  const bytes = 5_000_000
  for (const node of [0, 1]) {
    const call = await postEvents(rig.at(node), client, 'big', 'tools/call', { name: 'big', arguments: { bytes } })
    const text = call.type === 'application/json' ? undefined : call
    await call.ended
    t.equal(text === undefined ? call.text().match(/x{1000,}/)?.[0].length : bytes, bytes)
  }
})

t.test('a session that ends at one replica has ended at all', async (t) => {
  const client = await sessionAt(rig.at(0))
  const pid = await textOf({ ...client, request: client.request }, 'pid')
  t.match(pid, /^\d+$/)
  t.equal((await fetch(rig.at(1), { method: 'DELETE', headers: client.headers as Record<string, string> })).status, 204)
  t.equal((await post(rig.at(1), client, { id: 1, method: 'ping' })).status, 404, 'at once where it was ended')
  for (const node of [0, 2])
    await until(`it is unknown at ${node}`, async () => {
      const { status } = await post(rig.at(node), client, { id: 1, method: 'ping' })
      return status === 404
    })
  await until('its process is gone', () => {
    try {
      process.kill(Number(pid), 0)
      return false
    } catch {
      return true
    }
  })
})

t.test('nobody else reaches a session through another replica', async (t) => {
  const client = await sessionAt(rig.at(0))
  const headers = { ...client.headers, authorization: `Bearer ${keyOf.bob}` }
  for (const node of [0, 1, 2])
    t.equal((await post(rig.at(node), { headers }, { id: 1, method: 'tools/list' })).status, 404)
  t.match((await client.request('tools/list')).json, { result: {} })
})
