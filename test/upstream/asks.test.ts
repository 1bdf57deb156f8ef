// Requests of a server: whom they reach, and how each of them ends, on a clock that stands still.

import t from 'tap'
import { RpcError } from '../../src/protocol/errors.ts'
import { nobody } from '../../src/upstream/exchange.ts'
import { recordingClient, until } from '../kit/connection.ts'
import { question, stillExchange } from '../kit/exchange.ts'
import type { AskOptions } from '../../src/protocol/seams.ts'

const accept = async () => ({ action: 'accept' })
const settled = () => new Promise(setImmediate)

/** A client that answers when told to, and knows what it was told about its question. */
function slowClient () {
  const answer = Promise.withResolvers<unknown>()
  const options: AskOptions[] = []
  const client = recordingClient((_request, asked) => {
    options.push(asked)
    return answer.promise
  })
  return { client, answer, options, withdrawn: () => options[0]?.signal?.aborted, reason: () => options[0]?.signal?.reason as unknown }
}

t.test('on the stream of a call, its client is asked, whoever else has calls in flight', async (t) => {
  const { exchange, call, events, answersTo } = stillExchange()
  const clients = [recordingClient(async () => ({ action: 'accept', by: 'first' })), recordingClient(async () => ({ action: 'accept', by: 'second' }))]
  for (const client of clients) void call(client)
  exchange.receive(question('b'), 2)
  exchange.receive(question('a'), 1)
  await settled()
  t.match(answersTo('a'), [{ result: { by: 'first' } }])
  t.match(answersTo('b'), [{ result: { by: 'second' } }])
  t.same([...clients.map(({ asked }) => asked.length), events.asked.length], [1, 1, 0])
})

t.test('on no call\'s stream, the client of the only call in flight is asked', async (t) => {
  const { exchange, call, events, answersTo } = stillExchange()
  const client = recordingClient(accept)
  void call(client)
  void call(nobody)
  exchange.receive(question(1))
  await settled()
  t.match(answersTo(1), [{ result: { action: 'accept' } }])
  t.same([client.asked.length, events.asked.length], [1, 0])
})

t.test('where no call or one of several may be meant, the owner of the connection is asked, and no client by guess', async (t) => {
  const { exchange, call, events, answersTo } = stillExchange(undefined, async () => ({ action: 'decline' }))
  exchange.receive(question('none'))
  const clients = [recordingClient(accept), recordingClient(accept)]
  for (const client of clients) void call(client)
  exchange.receive(question('two'))
  await settled()
  for (const id of ['none', 'two']) t.match(answersTo(id), [{ result: { action: 'decline' } }])
  t.same([...clients.map(({ asked }) => asked.length), events.asked.length], [0, 0, 2])
})

t.test('a question on the stream of a call that no client made is for the owner; on that of a finished call, for nobody', async (t) => {
  const { exchange, call, events, answersTo } = stillExchange(undefined, accept)
  const listing = call(nobody)
  exchange.receive(question('listing'), 1)
  await settled()
  t.match(answersTo('listing'), [{ result: { action: 'accept' } }])
  exchange.receive({ jsonrpc: '2.0', id: 1, result: {} }, 1)
  await listing
  exchange.receive(question('late'), 1)
  await settled()
  t.match(answersTo('late'), [{ error: { code: -32601 } }])
  t.equal(events.asked.length, 1)
})

t.test('the answer, the error and the refusal of a client go back as they are', async (t) => {
  const answers: Array<[name: string, answer: () => Promise<unknown>, expected: object]> = [
    ['accept', async () => ({ action: 'accept', content: { a: [1] }, 'x-more': null }), { result: { action: 'accept', content: { a: [1] }, 'x-more': null } }],
    ['decline', async () => ({ action: 'decline' }), { result: { action: 'decline' } }],
    ['cancel', async () => ({ action: 'cancel' }), { result: { action: 'cancel' } }],
    ['error', () => Promise.reject(new RpcError({ code: -1, message: 'User rejected', data: { why: 'x' } })), { error: { code: -1, message: 'User rejected', data: { why: 'x' } } }]
  ]
  for (const [name, answer, expected] of answers) {
    const { exchange, call, answersTo } = stillExchange()
    void call(recordingClient(answer))
    exchange.receive(question(name))
    await settled()
    t.same(answersTo(name), [{ jsonrpc: '2.0', id: name, ...expected }])
  }
})

t.test('what goes wrong inside tells the server nothing of itself', async (t) => {
  const { exchange, call, answersTo } = stillExchange()
  void call(recordingClient(() => Promise.reject(new Error('/etc/secret'))))
  exchange.receive(question(1))
  await settled()
  t.match(answersTo(1), [{ error: { code: -32603 } }])
  t.notMatch(JSON.stringify(answersTo(1)), 'secret')
})

t.test('what was not declared is refused without asking anybody', async (t) => {
  const { exchange, call, answersTo } = stillExchange({ roots: {} })
  const client = recordingClient(async () => ({ roots: [] }))
  void call(client)
  for (const [method, message] of [['elicitation/create', /declare "elicitation".*elicitation\/create/], ['sampling/createMessage', /"sampling"/], ['tasks/get', /"tasks"/], ['tools/call', /no such/], ['__proto__', /no such/], ['initialize', /no such/]] as const) {
    exchange.receive(question(method, method))
    t.match(answersTo(method), [{ error: { code: -32601, message } }])
  }
  exchange.receive(question('ping', 'ping'))
  t.match(answersTo('ping'), [{ result: {} }])
  t.equal(client.asked.length, 0)
  exchange.receive(question('roots', 'roots/list'))
  t.equal(client.asked.length, 1, 'and what was declared is asked')
})

t.test('progress of the client about a question goes to the server while it is open', async (t) => {
  const { exchange, call, sent } = stillExchange()
  const { client, answer, options } = slowClient()
  void call(client)
  exchange.receive(question(1, 'elicitation/create', { message: 'who?', _meta: { progressToken: 'srv' } }))
  options[0]?.progress?.({ progressToken: 'srv', progress: 1 })
  t.match(sent.at(-1), { method: 'notifications/progress', params: { progressToken: 'srv', progress: 1 } })
  answer.resolve({})
  await settled()
  const before = sent.length
  options[0]?.progress?.({ progressToken: 'srv', progress: 2 })
  t.equal(sent.length, before)
})

t.test('a question that the server withdraws is withdrawn from the client, and not answered any more', async (t) => {
  const { exchange, call, answersTo } = stillExchange()
  const { client, answer, withdrawn, reason } = slowClient()
  void call(client)
  exchange.receive(question('q'))
  exchange.receive({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'other' } })
  t.notOk(withdrawn())
  exchange.receive({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'q', reason: 'never\nmind' } })
  t.ok(withdrawn())
  t.equal(reason(), 'never\\u{a}mind')
  answer.resolve({ action: 'accept' })
  await settled()
  t.same(answersTo('q'), [])
})

t.test('ids of questions keep their type', async (t) => {
  const { exchange, call, answersTo } = stillExchange()
  const { client, withdrawn } = slowClient()
  void call(client)
  exchange.receive(question(7))
  exchange.receive({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: '7' } })
  t.notOk(withdrawn(), '"7" is another')
  exchange.receive(question(7))
  t.match(answersTo(7), [{ error: { code: -32600 } }], 'one that is open cannot be asked again')
})

for (const from of [1, undefined]) {
  const where = from === undefined ? 'on no call\'s stream' : 'on the call\'s own stream'
  t.test(`when its call is cancelled, a question asked ${where} is withdrawn and answered with an error`, async (t) => {
    const { exchange, call, answersTo } = stillExchange()
    const { client, answer, withdrawn } = slowClient()
    const stop = new AbortController()
    const rejected = t.rejects(call(client, undefined, stop.signal), { code: 'cancelled' })
    exchange.receive(question('q'), from)
    stop.abort()
    await rejected
    t.ok(withdrawn())
    answer.resolve({ action: 'accept' })
    await settled()
    t.match(answersTo('q'), [{ error: { code: -32603, data: { reason: 'cancelled' } } }])
  })
}

t.test('when its call is answered, only what was asked on its own stream is withdrawn', async (t) => {
  for (const from of [1, undefined]) {
    const { exchange, call, answersTo } = stillExchange()
    const { client, answer, withdrawn } = slowClient()
    const result = call(client)
    exchange.receive(question('q'), from)
    exchange.receive({ jsonrpc: '2.0', id: 1, result: {} }, from)
    await result
    t.equal(withdrawn(), from === 1)
    answer.resolve({ action: 'accept' })
    await settled()
    t.match(answersTo('q'), from === 1 ? [{ error: {} }] : [{ result: { action: 'accept' } }])
  }
})

t.test('questions of another call stay when one is cancelled', async (t) => {
  const { exchange, call } = stillExchange()
  const other = slowClient()
  const stop = new AbortController()
  const rejected = t.rejects(call(recordingClient(accept), undefined, stop.signal), { code: 'cancelled' })
  void call(other.client)
  exchange.receive(question('q'), 2)
  stop.abort()
  await rejected
  t.equal(other.withdrawn(), false)
})

t.test('when the connection ends, its questions are withdrawn and nothing more is sent', async (t) => {
  const { exchange, call, sent } = stillExchange()
  const { client, answer, withdrawn } = slowClient()
  const rejected = t.rejects(call(client), { message: 'gone' })
  exchange.receive(question('q'))
  const before = sent.length
  exchange.end(new Error('gone'))
  await rejected
  t.ok(withdrawn())
  answer.resolve({})
  await settled()
  t.equal(sent.length, before)
})

t.test('while a client is asked, it is not the upstream that is silent', async (t) => {
  const { clock, exchange, call } = stillExchange()
  const { client, answer } = slowClient()
  const result = call(client)
  exchange.receive(question('q'))
  clock.advance(600_000)
  answer.resolve({ action: 'decline' })
  await settled()
  clock.advance(59_000)
  exchange.receive({ jsonrpc: '2.0', id: 1, result: { ok: true } })
  t.same(await result, { ok: true })
})

t.test('once a question is withdrawn, it is: even where the client never lets go of it', async (t) => {
  const { clock, exchange, call } = stillExchange()
  const { client } = slowClient()
  const late = t.rejects(call(client), { code: 'upstream_timeout' })
  exchange.receive(question('q'))
  clock.advance(600_000)
  exchange.receive({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'q' } })
  clock.advance(61_000)
  await late
})

t.test('where any of several calls may be meant, all of them wait for the answer', async (t) => {
  const { clock, exchange, call } = stillExchange(undefined, () => new Promise(() => {}))
  const calls = [call(), call()]
  exchange.receive(question('q'))
  clock.advance(600_000)
  exchange.receive({ jsonrpc: '2.0', id: 1, result: {} })
  exchange.receive({ jsonrpc: '2.0', id: 2, result: {} })
  t.same(await Promise.all(calls), [{}, {}])
})

t.test('a flood of questions is refused above a rate, and not for ever', async (t) => {
  const { clock, exchange, sent, call } = stillExchange()
  const client = recordingClient(accept)
  void call(client)
  for (let n = 0; n < 1_000; n++) exchange.receive(question(`q${n}`))
  t.equal(client.asked.length, 20)
  t.equal(sent.filter(({ error }) => (error as { code?: number } | undefined)?.code === 429).length, 980)
  clock.advance(1_000)
  exchange.receive(question('later'))
  t.equal(client.asked.length, 21)
})

t.test('questions that nobody answers do not pile up', async (t) => {
  const { clock, exchange, call, answersTo } = stillExchange()
  const { client } = slowClient()
  void call(client)
  for (let n = 0; n < 40; n++) {
    clock.advance(1_000)
    exchange.receive(question(`q${n}`))
  }
  t.equal(client.asked.length, 32)
  t.match(answersTo('q39'), [{ error: { code: 429 } }])
  exchange.receive({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'q0' } })
  exchange.receive(question('next'))
  await until(() => client.asked.length === 33, 'a place is free again')
})

t.test('on streams of calls, each of them has the limits to itself', async (t) => {
  const { clock, exchange, call, answersTo } = stillExchange()
  const clients = [slowClient(), slowClient()]
  const [first] = clients.map(({ client }) => call(client))
  for (let n = 0; n < 100; n++) exchange.receive(question(`a${n}`), 1)
  t.equal(clients[0]?.options.length, 20)
  t.match(answersTo('a20'), [{ error: { code: 429 } }])
  exchange.receive(question('b'), 2)
  t.equal(clients[1]?.options.length, 1, 'a flood of one is not one of the others')
  for (let n = 0; n < 40; n++) {
    clock.advance(1_000)
    exchange.receive(question(`c${n}`), 1)
  }
  t.equal(clients[0]?.options.length, 32, 'nor what it leaves open')
  exchange.receive(question('d'), 2)
  exchange.receive(question('e'))
  t.equal(clients[1]?.options.length, 2)
  t.same(answersTo('d'), [])
  exchange.receive({ jsonrpc: '2.0', id: 1, result: {} }, 1)
  await first
  t.match(answersTo('c11'), [{ error: { data: { reason: 'cancelled' } } }])
  const third = slowClient()
  void call(third.client)
  exchange.receive(question('f'), 3)
  t.equal(third.options.length, 1)
})

t.test('and all calls of a connection together have larger ones', async (t) => {
  const { clock, exchange, call, sent } = stillExchange()
  const clients = Array.from({ length: 64 }, () => slowClient())
  for (const { client } of clients) void call(client)
  const asked = (): number => clients.reduce((sum, { options }) => sum + options.length, 0)
  const all = (name: string): void => clients.forEach((_client, at) => exchange.receive(question(`${name}${at}`), at + 1))
  all('one of each ')
  t.equal(asked(), 64, 'as many calls as a caller can leave waiting')
  all('a second at once ')
  t.equal(asked(), 100)
  for (let n = 0; n < 10; n++) {
    clock.advance(2_000)
    all(`${n} `)
  }
  t.equal(asked(), 256)
  t.match(sent.at(-1), { id: '9 63', error: { code: 429 } })
})
