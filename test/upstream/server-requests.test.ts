// Requests of a server: whom they reach, and how each of them ends, on a clock that stands still.

import t from 'tap'
import { RpcError } from '../../src/protocol/messages.ts'
import { noClient, type ServerRequestOptions } from '../../src/protocol/seams.ts'
import { recordingClient, until } from '../kit/connector.ts'
import { serverRequest, testRpcClient } from '../kit/rpc-client.ts'

const accept = async () => ({ action: 'accept' })
const settled = () => new Promise(setImmediate)

/** A client that answers when told to, and knows what it was told about the server request. */
function slowClient() {
  const answer = Promise.withResolvers<unknown>()
  const options: ServerRequestOptions[] = []
  const client = recordingClient((_request, asked) => {
    options.push(asked)
    return answer.promise
  })
  return {
    client,
    answer,
    options,
    withdrawn: () => options[0]?.signal?.aborted,
    reason: () => options[0]?.signal?.reason as unknown
  }
}

t.test('a server request on the stream of a call reaches the client of that call', async (t) => {
  const { rpc, call, events, answersTo } = testRpcClient()
  const clients = [
    recordingClient(async () => ({ action: 'accept', by: 'first' })),
    recordingClient(async () => ({ action: 'accept', by: 'second' }))
  ]
  for (const client of clients) void call(client)
  rpc.receive(serverRequest('b'), 2)
  rpc.receive(serverRequest('a'), 1)
  await settled()
  t.match(answersTo('a'), [{ result: { by: 'first' } }])
  t.match(answersTo('b'), [{ result: { by: 'second' } }])
  t.same([...clients.map(({ asked }) => asked.length), events.asked.length], [1, 1, 0])
})

t.test("a server request on no call's stream reaches the client of the only call in flight", async (t) => {
  const { rpc, call, events, answersTo } = testRpcClient()
  const client = recordingClient(accept)
  void call(client)
  void call(noClient)
  rpc.receive(serverRequest(1))
  await settled()
  t.match(answersTo(1), [{ result: { action: 'accept' } }])
  t.same([client.asked.length, events.asked.length], [1, 0])
})

t.test('where no call or one of several may be meant, the owner of the connection is asked', async (t) => {
  const { rpc, call, events, answersTo } = testRpcClient(undefined, async () => ({ action: 'decline' }))
  rpc.receive(serverRequest('none'))
  const clients = [recordingClient(accept), recordingClient(accept)]
  for (const client of clients) void call(client)
  rpc.receive(serverRequest('two'))
  await settled()
  for (const id of ['none', 'two']) t.match(answersTo(id), [{ result: { action: 'decline' } }])
  t.same([...clients.map(({ asked }) => asked.length), events.asked.length], [0, 0, 2])
})

t.test(
  'a server request on the stream of a call that no client made is for the owner; on that of a finished call it is refused',
  async (t) => {
    const { rpc, call, events, answersTo } = testRpcClient(undefined, accept)
    const listing = call(noClient)
    rpc.receive(serverRequest('listing'), 1)
    await settled()
    t.match(answersTo('listing'), [{ result: { action: 'accept' } }])
    rpc.receive({ jsonrpc: '2.0', id: 1, result: {} }, 1)
    await listing
    rpc.receive(serverRequest('late'), 1)
    await settled()
    t.match(answersTo('late'), [{ error: { code: -32601 } }])
    t.equal(events.asked.length, 1)
  }
)

t.test('the answer, the error and the refusal of a client go back as they are', async (t) => {
  const answers: Array<[name: string, answer: () => Promise<unknown>, expected: object]> = [
    [
      'accept',
      async () => ({ action: 'accept', content: { a: [1] }, 'x-more': null }),
      { result: { action: 'accept', content: { a: [1] }, 'x-more': null } }
    ],
    ['decline', async () => ({ action: 'decline' }), { result: { action: 'decline' } }],
    ['cancel', async () => ({ action: 'cancel' }), { result: { action: 'cancel' } }],
    [
      'error',
      () => Promise.reject(new RpcError({ code: -1, message: 'User rejected', data: { why: 'x' } })),
      { error: { code: -1, message: 'User rejected', data: { why: 'x' } } }
    ]
  ]
  for (const [name, answer, expected] of answers) {
    const { rpc, call, answersTo } = testRpcClient()
    void call(recordingClient(answer))
    rpc.receive(serverRequest(name))
    await settled()
    t.same(answersTo(name), [{ jsonrpc: '2.0', id: name, ...expected }])
  }
})

t.test('an internal error tells the server no details', async (t) => {
  const { rpc, call, answersTo } = testRpcClient()
  void call(recordingClient(() => Promise.reject(new Error('/etc/secret'))))
  rpc.receive(serverRequest(1))
  await settled()
  t.match(answersTo(1), [{ error: { code: -32603 } }])
  t.notMatch(JSON.stringify(answersTo(1)), 'secret')
})

t.test('what the client did not declare is refused without asking it', async (t) => {
  const { rpc, call, answersTo } = testRpcClient({ roots: {} })
  const client = recordingClient(async () => ({ roots: [] }))
  void call(client)
  for (const [method, message] of [
    ['elicitation/create', /declare "elicitation".*elicitation\/create/],
    ['sampling/createMessage', /"sampling"/],
    ['tasks/get', /"tasks"/],
    ['tools/call', /no such/],
    ['__proto__', /no such/],
    ['initialize', /no such/]
  ] as const) {
    rpc.receive(serverRequest(method, method))
    t.match(answersTo(method), [{ error: { code: -32601, message } }])
  }
  rpc.receive(serverRequest('ping', 'ping'))
  t.match(answersTo('ping'), [{ result: {} }])
  t.equal(client.asked.length, 0)
  rpc.receive(serverRequest('roots', 'roots/list'))
  t.equal(client.asked.length, 1, 'and what was declared is asked')
})

t.test('progress of the client about a server request goes to the server while it is open', async (t) => {
  const { rpc, call, sent } = testRpcClient()
  const { client, answer, options } = slowClient()
  void call(client)
  rpc.receive(serverRequest(1, 'elicitation/create', { message: 'who?', _meta: { progressToken: 'srv' } }))
  options[0]?.progress?.({ progressToken: 'srv', progress: 1 })
  t.match(sent.at(-1), { method: 'notifications/progress', params: { progressToken: 'srv', progress: 1 } })
  answer.resolve({})
  await settled()
  const before = sent.length
  options[0]?.progress?.({ progressToken: 'srv', progress: 2 })
  t.equal(sent.length, before)
})

t.test(
  'a server request that the server withdraws is withdrawn from the client, and not answered any more',
  async (t) => {
    const { rpc, call, answersTo } = testRpcClient()
    const { client, answer, withdrawn, reason } = slowClient()
    void call(client)
    rpc.receive(serverRequest('q'))
    rpc.receive({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'other' } })
    t.notOk(withdrawn())
    rpc.receive({
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: 'q', reason: 'never\nmind' }
    })
    t.ok(withdrawn())
    t.equal(reason(), 'never\\u{a}mind')
    answer.resolve({ action: 'accept' })
    await settled()
    t.same(answersTo('q'), [])
  }
)

t.test('ids of server requests keep their type', async (t) => {
  const { rpc, call, answersTo } = testRpcClient()
  const { client, withdrawn } = slowClient()
  void call(client)
  rpc.receive(serverRequest(7))
  rpc.receive({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: '7' } })
  t.notOk(withdrawn(), '"7" is another')
  rpc.receive(serverRequest(7))
  t.match(answersTo(7), [{ error: { code: -32600 } }], 'one that is open cannot be asked again')
})

for (const from of [1, undefined]) {
  const where = from === undefined ? "on no call's stream" : "on the call's own stream"
  t.test(
    `when its call is cancelled, a server request asked ${where} is withdrawn and answered with an error`,
    async (t) => {
      const { rpc, call, answersTo } = testRpcClient()
      const { client, answer, withdrawn } = slowClient()
      const stop = new AbortController()
      const rejected = t.rejects(call(client, undefined, stop.signal), { code: 'cancelled' })
      rpc.receive(serverRequest('q'), from)
      stop.abort()
      await rejected
      t.ok(withdrawn())
      answer.resolve({ action: 'accept' })
      await settled()
      t.match(answersTo('q'), [{ error: { code: -32603, data: { reason: 'cancelled' } } }])
    }
  )
}

t.test('when its call is answered, only what was asked on its own stream is withdrawn', async (t) => {
  for (const from of [1, undefined]) {
    const { rpc, call, answersTo } = testRpcClient()
    const { client, answer, withdrawn } = slowClient()
    const result = call(client)
    rpc.receive(serverRequest('q'), from)
    rpc.receive({ jsonrpc: '2.0', id: 1, result: {} }, from)
    await result
    t.equal(withdrawn(), from === 1)
    answer.resolve({ action: 'accept' })
    await settled()
    t.match(answersTo('q'), from === 1 ? [{ error: {} }] : [{ result: { action: 'accept' } }])
  }
})

t.test('server requests of another call stay when one is cancelled', async (t) => {
  const { rpc, call } = testRpcClient()
  const other = slowClient()
  const stop = new AbortController()
  const rejected = t.rejects(call(recordingClient(accept), undefined, stop.signal), { code: 'cancelled' })
  void call(other.client)
  rpc.receive(serverRequest('q'), 2)
  stop.abort()
  await rejected
  t.equal(other.withdrawn(), false)
})

t.test('when the connection ends, its server requests are withdrawn and nothing more is sent', async (t) => {
  const { rpc, call, sent } = testRpcClient()
  const { client, answer, withdrawn } = slowClient()
  const rejected = t.rejects(call(client), { message: 'gone' })
  rpc.receive(serverRequest('q'))
  const before = sent.length
  rpc.end(new Error('gone'))
  await rejected
  t.ok(withdrawn())
  answer.resolve({})
  await settled()
  t.equal(sent.length, before)
})

t.test('a call does not time out while its client is asked', async (t) => {
  const { clock, rpc, call } = testRpcClient()
  const { client, answer } = slowClient()
  const result = call(client)
  rpc.receive(serverRequest('q'))
  clock.advance(600_000)
  answer.resolve({ action: 'decline' })
  await settled()
  clock.advance(59_000)
  rpc.receive({ jsonrpc: '2.0', id: 1, result: { ok: true } })
  t.same(await result, { ok: true })
})

t.test(
  'a call times out again after its server request is withdrawn, even if the client never settles it',
  async (t) => {
    const { clock, rpc, call } = testRpcClient()
    const { client } = slowClient()
    const late = t.rejects(call(client), { code: 'upstream_timeout' })
    rpc.receive(serverRequest('q'))
    clock.advance(600_000)
    rpc.receive({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'q' } })
    clock.advance(61_000)
    await late
  }
)

t.test('where any of several calls may be meant, none of them times out while the owner is asked', async (t) => {
  const { clock, rpc, call } = testRpcClient(undefined, () => new Promise(() => {}))
  const calls = [call(), call()]
  rpc.receive(serverRequest('q'))
  clock.advance(600_000)
  rpc.receive({ jsonrpc: '2.0', id: 1, result: {} })
  rpc.receive({ jsonrpc: '2.0', id: 2, result: {} })
  t.same(await Promise.all(calls), [{}, {}])
})

t.test('server requests above the rate are refused until the rate allows more', async (t) => {
  const { clock, rpc, sent, call } = testRpcClient()
  const client = recordingClient(accept)
  void call(client)
  for (let n = 0; n < 1_000; n++) rpc.receive(serverRequest(`q${n}`))
  t.equal(client.asked.length, 20)
  t.equal(sent.filter(({ error }) => (error as { code?: number } | undefined)?.code === 429).length, 980)
  clock.advance(1_000)
  rpc.receive(serverRequest('later'))
  t.equal(client.asked.length, 21)
})

t.test('only so many server requests of a call may be open', async (t) => {
  const { clock, rpc, call, answersTo } = testRpcClient()
  const { client } = slowClient()
  void call(client)
  for (let n = 0; n < 40; n++) {
    clock.advance(1_000)
    rpc.receive(serverRequest(`q${n}`))
  }
  t.equal(client.asked.length, 32)
  t.match(answersTo('q39'), [{ error: { code: 429 } }])
  rpc.receive({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'q0' } })
  rpc.receive(serverRequest('next'))
  await until(() => client.asked.length === 33, 'a place is free again')
})

t.test('server requests on the stream of a call count for that call alone', async (t) => {
  const { clock, rpc, call, answersTo } = testRpcClient()
  const clients = [slowClient(), slowClient()]
  const [first] = clients.map(({ client }) => call(client))
  for (let n = 0; n < 100; n++) rpc.receive(serverRequest(`a${n}`), 1)
  t.equal(clients[0]?.options.length, 20)
  t.match(answersTo('a20'), [{ error: { code: 429 } }])
  rpc.receive(serverRequest('b'), 2)
  t.equal(clients[1]?.options.length, 1, 'the flood of one call takes nothing from another')
  for (let n = 0; n < 40; n++) {
    clock.advance(1_000)
    rpc.receive(serverRequest(`c${n}`), 1)
  }
  t.equal(clients[0]?.options.length, 32, 'up to as many as may be open')
  rpc.receive(serverRequest('d'), 2)
  rpc.receive(serverRequest('e'))
  t.equal(clients[1]?.options.length, 2)
  t.same(answersTo('d'), [])
  rpc.receive({ jsonrpc: '2.0', id: 1, result: {} }, 1)
  await first
  t.match(answersTo('c11'), [{ error: { data: { reason: 'cancelled' } } }])
  const third = slowClient()
  void call(third.client)
  rpc.receive(serverRequest('f'), 3)
  t.equal(third.options.length, 1)
})

t.test('all calls of a connection share a larger limit', async (t) => {
  const { clock, rpc, call, sent } = testRpcClient()
  const clients = Array.from({ length: 64 }, () => slowClient())
  for (const { client } of clients) void call(client)
  const asked = (): number => clients.reduce((sum, { options }) => sum + options.length, 0)
  const all = (name: string): void =>
    clients.forEach((_client, at) => rpc.receive(serverRequest(`${name}${at}`), at + 1))
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
