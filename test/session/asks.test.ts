// Questions to one client: each is settled once, by whom it concerns, and withdrawn when nobody waits any more.

import t from 'tap'
import { createAsks } from '../../src/session/asks.ts'
import type { AsksOptions, Send } from '../../src/session/asks.ts'
import { GatewayError, RpcError } from '../../src/protocol/errors.ts'
import type { JsonObject } from '../../src/protocol/messages.ts'

const question = { method: 'elicitation/create', params: { message: 'who?' } }

/** A way to the client that is open, and what went out on it. */
function way (open = true): { send: Send, sent: JsonObject[], open: boolean } {
  const made = { sent: [] as JsonObject[], open, send: (message: JsonObject) => made.open && made.sent.push(message) > 0 }
  return made
}

function made (options: Partial<AsksOptions> = {}) {
  const timers: Array<{ ms: number, run: () => void, closed: boolean }> = []
  const asks = createAsks({
    prefix: 'node',
    timer (ms, run) {
      const timer = { ms, run, closed: false, close: () => { timer.closed = true } }
      timers.push(timer)
      return timer
    },
    ...options
  })
  return { asks, timers }
}

const response = (id: string, result: JsonObject) => ({ kind: 'response' as const, id, result })
const idOf = (message: JsonObject | undefined): string => String(message?.['id'])
const withdrawal = (message: JsonObject | undefined) => message?.['method'] === 'notifications/cancelled' ? message['params'] : undefined

t.test('a question goes out under an id of ours, and its answer comes back once', async (t) => {
  const { asks, timers } = made()
  const { send, sent } = way()
  const answers = [asks.ask(question, [send]), asks.ask(question, [send])]
  t.equal(asks.size, 2)
  t.not(idOf(sent[0]), idOf(sent[1]))
  t.match(sent[0], { jsonrpc: '2.0', ...question })
  t.ok(asks.settle(response(idOf(sent[1]), { action: 'accept' })))
  t.ok(asks.settle(response(idOf(sent[0]), { action: 'decline' })))
  t.same(await Promise.all(answers), [{ action: 'decline' }, { action: 'accept' }])
  t.notOk(asks.settle(response(idOf(sent[0]), { action: 'accept' })), 'a second answer is nobody\'s')
  t.equal(asks.size, 0)
  t.ok(timers.every(({ closed }) => closed))
  t.equal(sent.length, 2, 'nothing was withdrawn')
})

t.test('an answer to no question settles none', async (t) => {
  const { asks } = made()
  const { send, sent } = way()
  void asks.ask(question, [send])
  for (const id of ['', 'node-2', 'node', 'other-1', '1', `${idOf(sent[0])} `]) t.notOk(asks.settle(response(id, {})), id)
  t.notOk(asks.settle({ kind: 'response', id: 1, result: {} }))
  t.notOk(asks.settle({ kind: 'error', id: undefined, error: { code: 1, message: 'x' } }))
  t.equal(asks.size, 1)
  t.ok(asks.settle(response(idOf(sent[0]), {})))
})

t.test('answers that nobody waits for leave nothing behind, be they late, doubled or invented', async (t) => {
  const { asks, timers } = made()
  const { send, sent } = way()
  const stop = new AbortController()
  const withdrawn = t.rejects(asks.ask(question, [send], { signal: stop.signal }), { code: 'cancelled' })
  const late = t.rejects(asks.ask(question, [send]), { code: 'upstream_timeout' })
  stop.abort()
  timers[1]?.run()
  await Promise.all([withdrawn, late])
  for (let n = 0; n < 1_000; n++) for (const id of [idOf(sent[0]), idOf(sent[1]), `node-${n}`]) if (asks.settle(response(id, { junk: [{}, {}] }))) t.fail('somebody waited')
  t.equal(asks.size, 0)
  t.ok(timers.every(({ closed }) => closed))
})

t.test('the client\'s own error comes back as it is', async (t) => {
  const { asks } = made()
  const { send, sent } = way()
  const answer = asks.ask(question, [send])
  asks.settle({ kind: 'error', id: idOf(sent[0]), error: { code: -1, message: 'User rejected', data: { why: 'no' } } })
  await t.rejects(answer, new RpcError({ code: -1, message: 'User rejected', data: { why: 'no' } }))
})

t.test('the first way that takes it is taken, and a withdrawal follows on it', async (t) => {
  const { asks } = made()
  const [closed, taken, other] = [way(false), way(), way()]
  const stop = new AbortController()
  const answer = asks.ask(question, [closed.send, taken.send, other.send], { signal: stop.signal })
  stop.abort('the server thought better of it')
  await t.rejects(answer, { code: 'cancelled' })
  t.same(withdrawal(taken.sent[1]), { requestId: idOf(taken.sent[0]), reason: 'the server thought better of it' })
  t.same([closed.sent, other.sent], [[], []])
  t.notOk(asks.settle(response(idOf(taken.sent[0]), {})), 'an answer after that is too late')
  stop.abort()
  t.equal(taken.sent.length, 2)
})

t.test('a withdrawal takes another way where that of the question is gone', async (t) => {
  const { asks } = made()
  const [call, own] = [way(), way()]
  const stop = new AbortController()
  const answer = asks.ask(question, [call.send, own.send], { signal: stop.signal })
  call.open = false
  stop.abort()
  await t.rejects(answer)
  t.same(withdrawal(own.sent[0]), { requestId: idOf(call.sent[0]), reason: 'the server withdrew its request' })
})

t.test('a client without any way to it is not asked', async (t) => {
  const { asks, timers } = made()
  await t.rejects(asks.ask(question, [way(false).send]), new RpcError({ code: -32602, message: 'The client has no stream open on which it could be asked.', data: { reason: 'client_unreachable' } }))
  await t.rejects(asks.ask(question, []), RpcError)
  t.equal(asks.size, 0)
  t.ok(timers.every(({ closed }) => closed))
})

t.test('what was withdrawn before it was asked is not asked', async (t) => {
  const { asks } = made()
  const { send, sent } = way()
  await t.rejects(asks.ask(question, [send], { signal: AbortSignal.abort() }), { code: 'cancelled' })
  t.same(sent, [])
})

t.test('a client that does not answer in time is told that it need not any more', async (t) => {
  const { asks, timers } = made({ timeoutMs: 7_000 })
  const { send, sent } = way()
  const answer = asks.ask(question, [send])
  t.equal(timers[0]?.ms, 7_000)
  timers[0]?.run()
  await t.rejects(answer, new GatewayError('upstream_timeout', 'The client did not answer within 7 s.'))
  t.same(withdrawal(sent[1]), { requestId: idOf(sent[0]), reason: 'timeout' })
})

t.test('progress of the client reaches the server that asked, under its own token', async (t) => {
  const { asks } = made()
  const { send, sent } = way()
  const heard: unknown[] = []
  const ask = (token: unknown, name: string) => void asks.ask({ method: 'sampling/createMessage', params: { _meta: { progressToken: token, kept: true } } }, [send], { progress: (params) => heard.push([name, params]) })
  ask(1, 'one server')
  ask(1, 'another')
  ask('1', 'a third')
  void asks.ask(question, [send], { progress: () => heard.push('not asked for') })
  const tokens = sent.map(({ params }) => (params as { _meta?: { progressToken?: unknown, kept?: boolean } })._meta)
  t.equal(new Set(tokens.slice(0, 3).map((meta) => meta?.progressToken)).size, 3, 'equal tokens are kept apart')
  t.ok(tokens.slice(0, 3).every((meta) => meta?.kept))
  t.equal(tokens[3], undefined)
  const report = (progressToken: unknown, progress: number) => asks.progress({ method: 'notifications/progress', params: { progressToken, progress, message: 'm' } })
  t.ok(report(tokens[1]?.progressToken, 1))
  t.ok(report(tokens[2]?.progressToken, 2))
  for (const token of [1, '1', 'node-9', undefined, null]) t.notOk(report(token, 3))
  t.notOk(asks.progress({ method: 'notifications/progress' }))
  t.ok(report(idOf(sent[3]), 4), 'about a question without a token it is nobody\'s business')
  t.same(heard, [['another', { progressToken: 1, progress: 1, message: 'm' }], ['a third', { progressToken: '1', progress: 2, message: 'm' }]])
})

t.test('too many open questions are refused; the others are not touched', async (t) => {
  const { asks } = made({ max: 2 })
  const { send, sent } = way()
  const answers = [asks.ask(question, [send]), asks.ask(question, [send])]
  await t.rejects(asks.ask(question, [send]), { code: 'too_many' })
  for (const message of sent) asks.settle(response(idOf(message), {}))
  await Promise.all(answers)
  void asks.ask(question, [send])
  t.equal(sent.length, 3)
})

t.test('at the end all that is open is withdrawn, and nothing is asked any more', async (t) => {
  const { asks, timers } = made()
  const { send, sent } = way()
  const answers = [asks.ask(question, [send]), asks.ask(question, [send])]
  const reason = new GatewayError('session_unknown', 'The session ended.')
  asks.end(reason)
  for (const answer of answers) await t.rejects(answer, reason)
  t.same(sent.slice(2).map(withdrawal), sent.slice(0, 2).map((message) => ({ requestId: idOf(message), reason: 'The session ended.' })))
  await t.rejects(asks.ask(question, [send]), reason)
  t.equal(sent.length, 4)
  t.ok(timers.every(({ closed }) => closed))
})

t.test('a question whose sending ends the session is refused with the reason, whether it was taken or not', async (t) => {
  for (const taken of [true, false]) {
    const { asks, timers } = made()
    const other = way()
    const before = asks.ask(question, [other.send])
    const reason = new GatewayError('session_unknown', 'The session ended.')
    const ending: Send = () => {
      t.doesNotThrow(() => asks.end(reason))
      return taken
    }
    await t.rejects(asks.ask(question, [ending]), reason)
    await t.rejects(before, reason)
    t.match(withdrawal(other.sent[1]), { requestId: idOf(other.sent[0]) }, 'the others are withdrawn')
    t.equal(asks.size, 0)
    t.ok(timers.every(({ closed }) => closed))
  }
})
