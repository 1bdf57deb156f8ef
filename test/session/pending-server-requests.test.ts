// Server requests to one client: each is settled once, and withdrawn when its response is not wanted any more.

import t from 'tap'
import { createPendingServerRequests, type Send } from '../../src/session/pending-server-requests.ts'
import { GatewayError, type JsonObject, RpcError } from '../../src/protocol/messages.ts'

const request = { method: 'elicitation/create', params: { message: 'who?' } }

/** A stream to the client, and what was sent on it. */
function clientStream(open = true): { send: Send; sent: JsonObject[]; open: boolean } {
  const made = {
    sent: [] as JsonObject[],
    open,
    send: (message: JsonObject) => made.open && made.sent.push(message) > 0
  }
  return made
}

function made(options?: { readonly timeoutMs?: number; readonly max?: number }) {
  const timers: Array<{ ms: number; run: () => void; closed: boolean }> = []
  const timer = (ms: number, run: () => void) => {
    const timer = {
      ms,
      run,
      closed: false,
      close: () => {
        timer.closed = true
      }
    }
    timers.push(timer)
    return timer
  }
  const pending = createPendingServerRequests({ timer }, 'node', options)
  return { pending, timers }
}

const response = (id: string, result: JsonObject) => ({ kind: 'response' as const, id, result })
const idOf = (message: JsonObject | undefined): string => String(message?.['id'])
const withdrawal = (message: JsonObject | undefined) =>
  message?.['method'] === 'notifications/cancelled' ? message['params'] : undefined

t.test('a request is sent under an id of the gateway, and its response settles it once', async (t) => {
  const { pending, timers } = made()
  const { send, sent } = clientStream()
  const answers = [pending.ask(request, [send]), pending.ask(request, [send])]
  t.equal(pending.size, 2)
  t.not(idOf(sent[0]), idOf(sent[1]))
  t.match(sent[0], { jsonrpc: '2.0', ...request })
  t.ok(pending.settle(response(idOf(sent[1]), { action: 'accept' })))
  t.ok(pending.settle(response(idOf(sent[0]), { action: 'decline' })))
  t.same(await Promise.all(answers), [{ action: 'decline' }, { action: 'accept' }])
  t.ok(pending.settle(response(idOf(sent[0]), { action: 'accept' })), 'a second answer is late, and harms nothing')
  t.equal(pending.size, 0)
  t.ok(timers.every(({ closed }) => closed))
  t.equal(sent.length, 2, 'nothing was withdrawn')
})

t.test('a response to no open request settles none', async (t) => {
  const { pending } = made()
  const { send, sent } = clientStream()
  void pending.ask(request, [send])
  for (const id of ['', 'node-2', 'node', 'other-1', '1', `${idOf(sent[0])} `])
    t.notOk(pending.settle(response(id, {})), id)
  t.notOk(pending.settle({ kind: 'response', id: 1, result: {} }))
  t.notOk(pending.settle({ kind: 'error', id: undefined, error: { code: 1, message: 'x' } }))
  t.equal(pending.size, 1)
  t.ok(pending.settle(response(idOf(sent[0]), {})))
})

t.test('late, duplicate and invented responses leave nothing behind', async (t) => {
  const { pending, timers } = made()
  const { send, sent } = clientStream()
  const stop = new AbortController()
  const withdrawn = t.rejects(pending.ask(request, [send], { signal: stop.signal }), { code: 'cancelled' })
  const late = t.rejects(pending.ask(request, [send]), { code: 'upstream_timeout' })
  stop.abort()
  timers[1]?.run()
  await Promise.all([withdrawn, late])
  for (let n = 0; n < 1_000; n++) {
    for (const id of [idOf(sent[0]), idOf(sent[1])]) pending.settle(response(id, { junk: [{}, {}] }))
    if (pending.settle(response(`node-${n + 3}`, { junk: [{}, {}] }))) t.fail('it was never sent')
  }
  t.equal(pending.size, 0)
  t.ok(timers.every(({ closed }) => closed))
})

t.test('the error of the client is returned unchanged', async (t) => {
  const { pending } = made()
  const { send, sent } = clientStream()
  const answer = pending.ask(request, [send])
  pending.settle({
    kind: 'error',
    id: idOf(sent[0]),
    error: { code: -1, message: 'User rejected', data: { why: 'no' } }
  })
  await t.rejects(answer, new RpcError({ code: -1, message: 'User rejected', data: { why: 'no' } }))
})

t.test('the first stream that takes the request carries it and its withdrawal', async (t) => {
  const { pending } = made()
  const [closed, taken, other] = [clientStream(false), clientStream(), clientStream()]
  const stop = new AbortController()
  const answer = pending.ask(request, [closed.send, taken.send, other.send], { signal: stop.signal })
  stop.abort('the server thought better of it')
  await t.rejects(answer, { code: 'cancelled' })
  t.same(withdrawal(taken.sent[1]), { requestId: idOf(taken.sent[0]), reason: 'the server thought better of it' })
  t.same([closed.sent, other.sent], [[], []])
  t.ok(pending.settle(response(idOf(taken.sent[0]), {})), 'an answer after that is late, and harms nothing')
  stop.abort()
  t.equal(taken.sent.length, 2)
})

t.test('a withdrawal goes out on another stream where that of the request is gone', async (t) => {
  const { pending } = made()
  const [call, own] = [clientStream(), clientStream()]
  const stop = new AbortController()
  const answer = pending.ask(request, [call.send, own.send], { signal: stop.signal })
  call.open = false
  stop.abort()
  await t.rejects(answer)
  t.same(withdrawal(own.sent[0]), { requestId: idOf(call.sent[0]), reason: 'the server withdrew its request' })
})

t.test('a client without an open stream is not asked', async (t) => {
  const { pending, timers } = made()
  await t.rejects(
    pending.ask(request, [clientStream(false).send]),
    new RpcError({
      code: -32602,
      message: 'The client has no stream open on which it could be asked.',
      data: { reason: 'client_unreachable' }
    })
  )
  await t.rejects(pending.ask(request, []), RpcError)
  t.equal(pending.size, 0)
  t.ok(timers.every(({ closed }) => closed))
})

t.test('a request withdrawn before it was sent is not sent', async (t) => {
  const { pending } = made()
  const { send, sent } = clientStream()
  await t.rejects(pending.ask(request, [send], { signal: AbortSignal.abort() }), { code: 'cancelled' })
  t.same(sent, [])
})

t.test('a client that does not answer in time is told that its response is not wanted', async (t) => {
  const { pending, timers } = made({ timeoutMs: 7_000 })
  const { send, sent } = clientStream()
  const answer = pending.ask(request, [send])
  t.equal(timers[0]?.ms, 7_000)
  timers[0]?.run()
  await t.rejects(answer, new GatewayError('upstream_timeout', 'The client did not answer within 7 s.'))
  t.same(withdrawal(sent[1]), { requestId: idOf(sent[0]), reason: 'timeout' })
})

t.test('progress of the client reaches the server under the token of the server', async (t) => {
  const { pending } = made()
  const { send, sent } = clientStream()
  const heard: unknown[] = []
  const ask = (token: unknown, name: string) =>
    void pending.ask(
      { method: 'sampling/createMessage', params: { _meta: { progressToken: token, kept: true } } },
      [send],
      { progress: (params) => heard.push([name, params]) }
    )
  ask(1, 'one server')
  ask(1, 'another')
  ask('1', 'a third')
  void pending.ask(request, [send], { progress: () => heard.push('not asked for') })
  const tokens = sent.map(({ params }) => (params as { _meta?: { progressToken?: unknown; kept?: boolean } })._meta)
  t.equal(new Set(tokens.slice(0, 3).map((meta) => meta?.progressToken)).size, 3, 'equal tokens are kept apart')
  t.ok(tokens.slice(0, 3).every((meta) => meta?.kept))
  t.equal(tokens[3], undefined)
  const report = (progressToken: unknown, progress: number) =>
    pending.progress({ method: 'notifications/progress', params: { progressToken, progress, message: 'm' } })
  t.ok(report(tokens[1]?.progressToken, 1))
  t.ok(report(tokens[2]?.progressToken, 2))
  for (const token of [1, '1', 'node-9', undefined, null]) t.notOk(report(token, 3))
  t.notOk(pending.progress({ method: 'notifications/progress' }))
  t.ok(report(idOf(sent[3]), 4), "about a request without a token it is nobody's business")
  t.same(heard, [
    ['another', { progressToken: 1, progress: 1, message: 'm' }],
    ['a third', { progressToken: '1', progress: 2, message: 'm' }]
  ])
})

t.test('too many open requests are refused; the others go on', async (t) => {
  const { pending } = made({ max: 2 })
  const { send, sent } = clientStream()
  const answers = [pending.ask(request, [send]), pending.ask(request, [send])]
  await t.rejects(pending.ask(request, [send]), { code: 'too_many' })
  for (const message of sent) pending.settle(response(idOf(message), {}))
  await Promise.all(answers)
  void pending.ask(request, [send])
  t.equal(sent.length, 3)
})

t.test('at the end open requests are withdrawn and further ones refused', async (t) => {
  const { pending, timers } = made()
  const { send, sent } = clientStream()
  const answers = [pending.ask(request, [send]), pending.ask(request, [send])]
  const reason = new GatewayError('session_unknown', 'The session ended.')
  pending.end(reason)
  for (const answer of answers) await t.rejects(answer, reason)
  t.same(
    sent.slice(2).map(withdrawal),
    sent.slice(0, 2).map((message) => ({ requestId: idOf(message), reason: 'The session ended.' }))
  )
  await t.rejects(pending.ask(request, [send]), reason)
  t.equal(sent.length, 4)
  t.ok(timers.every(({ closed }) => closed))
})

t.test(
  'a request whose sending ends the session is refused with the reason, whether it was taken or not',
  async (t) => {
    for (const taken of [true, false]) {
      const { pending, timers } = made()
      const other = clientStream()
      const before = pending.ask(request, [other.send])
      const reason = new GatewayError('session_unknown', 'The session ended.')
      const ending: Send = () => {
        t.doesNotThrow(() => pending.end(reason))
        return taken
      }
      await t.rejects(pending.ask(request, [ending]), reason)
      await t.rejects(before, reason)
      t.match(withdrawal(other.sent[1]), { requestId: idOf(other.sent[0]) }, 'the others are withdrawn')
      t.equal(pending.size, 0)
      t.ok(timers.every(({ closed }) => closed))
    }
  }
)
