// HTTP+SSE of 2024-11-05, whose stream is at one replica and whose POSTs come to each in turn.

import t from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import { openSse } from '../kit/http-sse-client.ts'
import { allCapabilities, isServerRequest, post, scriptedStdio } from '../kit/server-request.ts'
import { until } from '../kit/until.ts'
import { sessionAt, startReplicas } from './rig.ts'

const rig = await startReplicas(t, {
  upstreams: { pipe: scriptedStdio },
  endpoints: { default: { upstreams: ['pipe'], prefix: '' } },
  // Where no address is known, it refuses.
  policy: {
    default: 'allow',
    rules: [
      {
        name: 'near',
        effect: 'deny',
        what: { kinds: ['tool'], names: ['echo'] },
        when: '!address.inNetwork("127.0.0.0/8")'
      }
    ]
  },
  // Nobody is there: what counts is that calls have traces.
  top: { telemetry: { otlp: { endpoint: 'http://127.0.0.1:1' }, signals: ['traces'] } }
})
const initialize = {
  protocolVersion: '2025-11-25',
  capabilities: allCapabilities,
  clientInfo: { name: 'raw', version: '1' }
}

type Message = Record<string, unknown>

t.test('a client initializes, calls, answers and cancels through any replica', async (t) => {
  const asked = new Set<unknown>()
  const client = await openSse(rig.url('t/acme/sse'), keyOf.ada)
  t.match(await client.request('initialize', initialize), { result: { protocolVersion: '2025-11-25' } })
  t.equal((await client.notify('notifications/initialized')).status, 202)
  const before = rig.turns.length
  const pids = []
  for (let n = 0; n < 4; n++) pids.push((await client.request('tools/call', { name: 'pid' })).result.content[0].text)
  t.equal(new Set(pids).size, 1)
  for (const name of ['elicit', 'sample', 'roots']) {
    const call = client.request('tools/call', { name }, `the ${name}`)
    const { id } = await client.next(
      'the server request',
      (message) => isServerRequest(message) && !asked.has(message.id)
    )
    asked.add(id)
    t.equal((await client.post({ jsonrpc: '2.0', id, result: { action: 'accept', roots: [] } })).status, 202)
    t.match(await call, { result: { content: [{ text: /accept/ }] } })
  }
  t.equal((await client.post({ jsonrpc: '2.0', id: 'never asked', result: {} })).status, 400)
  t.equal((await client.post({ jsonrpc: '2.0', id: 'never asked', result: {} })).status, 400)
  t.equal(new Set(rig.turns.slice(before)).size, 3, 'each replica had some of them')
  client.close()
})

t.test('address, trace and size of a call come along to the replica that runs it', async (t) => {
  const ofTrace = (n: number): string => `${n}`.repeat(32)
  const facts = (n: number) => ({ address: /127\.0\.0\.1/, traceId: ofTrace(n), outcome: 'ok', tool: 'echo' })
  const headersOf = (n: number) => ({ traceparent: `00-${ofTrace(n)}-b7ad6b7169203331-01` })
  const lineOf = (n: number) =>
    until('the line of the call', () =>
      rig.nodes.flatMap(({ log }) => log()).find(({ msg, traceId }) => msg === 'call' && traceId === ofTrace(n))
    )
  const sse = await openSse(rig.at(0, 't/acme/sse'), keyOf.ada)
  t.match(await sse.request('initialize', initialize), { result: {} })
  const session = await sessionAt(rig.at(0))
  const params = { name: 'echo', arguments: {} }
  for (const node of [0, 1, 2]) {
    const [first, second] = [1 + node, 4 + node]
    const url = sse.messagesUrl.replace(/^http:\/\/[^/]+/, rig.nodes[node]?.url ?? '')
    const body = JSON.stringify({ jsonrpc: '2.0', id: first, method: 'tools/call', params })
    const headers = { ...sse.headers, ...headersOf(first) } as Record<string, string>
    t.equal((await fetch(url, { method: 'POST', headers, body })).status, 202)
    t.match(
      await sse.next('the answer', ({ id, method }) => id === first && !method),
      { result: {} },
      `replica ${node}`
    )
    t.match(await lineOf(first), { ...facts(first), bytesIn: body.length }, `HTTP+SSE at replica ${node}`)
    const message = { id: second, method: 'tools/call', params }
    const answer = await post(rig.at(node), { headers: { ...session.headers, ...headersOf(second) } }, message)
    t.match(answer.json, { result: {} }, `a session at replica ${node}`)
    const bytesIn = JSON.stringify({ jsonrpc: '2.0', ...message }).length
    t.match(await lineOf(second), { ...facts(second), bytesIn }, `a session at replica ${node}`)
  }
  sse.close()
})

t.test('nobody else posts to the stream, whichever replica is tried', async (t) => {
  const client = await openSse(rig.url('t/acme/sse'), keyOf.ada)
  t.match(await client.request('initialize', initialize), { result: {} })
  for (let n = 0; n < 3; n++) {
    const answer = await client.post(
      { jsonrpc: '2.0', id: n, method: 'ping' },
      { authorization: `Bearer ${keyOf.bob}` }
    )
    t.match([answer.status, answer.json], [404, { error: { data: { reason: 'session_unknown' } } }])
    t.match(await client.request('ping'), { result: {} })
  }
  client.close()
})

t.test('an answer waits for the replica of its stream, which hangs; one that is refused ends the stream', async (t) => {
  const client = await openSse(rig.at(0, 't/acme/sse'), keyOf.ada)
  t.match(await client.request('initialize', initialize), { result: {} })
  const session = await sessionAt(rig.at(0))
  const elsewhere = client.messagesUrl.replace(/^http:\/\/[^/]+/, rig.nodes[1]?.url ?? '')
  const headers = client.headers as Record<string, string>
  const asked = new Set<unknown>()
  async function ask(id: string) {
    const call = client.request('tools/call', { name: 'elicit' }, id)
    const isNew = (message: Message): boolean => isServerRequest(message) && !asked.has(message['id'])
    const question = (await client.next('the server request', isNew)) as Message
    asked.add(question['id'])
    rig.nodes[0]?.signal('SIGSTOP')
    const body = JSON.stringify({ jsonrpc: '2.0', id: question['id'], result: { action: 'accept' } })
    return { call, answer: fetch(elsewhere, { method: 'POST', headers, body }) }
  }

  const takeovers = (): number => rig.nodes[2]?.log().filter(({ msg }) => /takes over/.test(String(msg))).length ?? 0
  const before = takeovers()
  const first = await ask('the first')
  // Its server takes longer to start there than the answer may wait.
  const moved = post(rig.at(2), session, { id: 1, method: 'tools/call', params: { name: 'pid' } })
  await until('the replica counts as gone', () => takeovers() > before)
  rig.nodes[0]?.signal('SIGCONT')
  t.match((await moved).json, { result: {} })
  t.equal((await first.answer).status, 202)
  t.match(await first.call, { result: { content: [{ text: /accept/ }] } })

  const second = await ask('the second')
  t.equal((await second.answer).status, 404)
  rig.nodes[0]?.signal('SIGCONT')
  await t.rejects(second.call, /the stream ended/)
  await client.ended
})

t.test('a stream whose replica is gone is unknown', async (t) => {
  const client = await openSse(rig.at(0, 't/acme/sse'), keyOf.ada)
  t.match(await client.request('initialize', initialize), { result: {} })
  const other = client.messagesUrl.replace(/^http:\/\/[^/]+/, rig.nodes[1]?.url ?? '')
  const ping = { method: 'POST', headers: { authorization: `Bearer ${keyOf.ada}`, 'content-type': 'application/json' } }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
  t.equal((await fetch(other, { ...ping, body })).status, 202)
  rig.nodes[0]?.signal('SIGKILL')
  await client.ended
  const answer = async (): Promise<unknown> => {
    const response = await fetch(other, { ...ping, body })
    return response.status === 404 ? 404 : await response.json()
  }
  const first = await answer()
  if (first !== 404) t.match(first, { error: { data: { outcome: 'unknown' } } }, 'it was heard a moment ago')
  t.equal(first === 404 ? first : await answer(), 404)
})
