// Requests between processes, over messages of a store that may lose them.

import t from 'tap'
import { createQuota } from '../../src/limits/limits.ts'
import { parseJson } from '../../src/protocol/json.ts'
import { GatewayError, RpcError } from '../../src/protocol/messages.ts'
import { type BusCaller, takePlace } from '../../src/session/bus/bus-places.ts'
import { nodeChannel } from '../../src/store/keys.ts'
import { handClock } from '../kit/connector.ts'
import { until } from '../kit/until.ts'
import { ada, call, never, wire } from './bus-kit.ts'

t.test('a request is answered, after what is said ahead of the answer', async (t) => {
  const { one, two, published } = await wire(t)
  two.serve('modern', async (question, { notify }) => {
    for (const n of [1, 2]) void notify({ n })
    return { question, text: 'ü\u{1f600}' }
  })
  const said: unknown[] = []
  t.same(await one.request('two', 'modern', ada, { a: [1, null] }, call({ notify: (each) => said.push(each) })), {
    question: { a: [1, null] },
    text: 'ü\u{1f600}'
  })
  t.same(said, [{ n: 1 }, { n: 2 }])
  t.notOk(
    published.some(([, text]) => /question|[{"]/.test(text)),
    'nothing can be read on the way'
  )
})

t.test('what is said while the store is away is said when it is back, in its order and once', async (t) => {
  const setup = await wire(t)
  const toOne = nodeChannel('one')
  // Some of it arrives although the store did not confirm it in time.
  const fates = ['taken', 'taken', 'lost', 'lost'] as const
  let failed = 0
  setup.two.serve('modern', async (_question, { notify }) => {
    setup.fail = (channel) => (channel === toOne ? (fates[failed++] ?? 'lost') : undefined)
    for (const n of [1, 2, 3]) void notify({ n })
    return { n: 4 }
  })
  const said: unknown[] = []
  const answer = setup.one.request('two', 'modern', ada, {}, call({ notify: (each) => said.push(each) }))
  await until('it was tried several times', () => failed > 5)
  setup.fail = () => undefined
  t.same(await answer, { n: 4 })
  t.same(said, [{ n: 1 }, { n: 2 }, { n: 3 }])
})

t.test('a process that stops has work until its answer was said, and can end it', async (t) => {
  const setup = await wire(t)
  const toOne = nodeChannel('one')
  let failed = 0
  setup.two.serve('modern', async () => {
    setup.fail = (channel) => (channel === toOne ? (failed++, 'lost') : undefined)
    return 'done'
  })
  const answer = setup.one.request('two', 'modern', ada, {}, call())
  await until('the answer was tried several times', () => failed > 2)
  t.ok(setup.two.isWorking())
  setup.fail = () => undefined
  t.equal(await answer, 'done')
  await until('it has no work', () => !setup.two.isWorking())

  const begun = Promise.withResolvers<void>()
  setup.two.serve('request', (_question, { signal }) => {
    begun.resolve()
    return new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error))
    })
  })
  const asked = setup.one.request('two', 'request', ada, {}, call())
  await begun.promise
  setup.two.endWork()
  await t.rejects(asked, { code: 'upstream_lost', data: { outcome: 'unknown' } }, 'nothing that is done again')
  let begunLate = 0
  setup.two.serve('http-sse', async () => ++begunLate)
  await t.rejects(setup.one.request('two', 'http-sse', ada, {}, call()), { code: 'invalid_state' }, 'it is elsewhere')
  t.equal(begunLate, 0)
})

t.test('a question that is worked on is not refused where the store confirms it too late', async (t) => {
  const setup = await wire(t)
  const begun = Promise.withResolvers<void>()
  let toTwo = 0
  setup.fail = (channel) => (channel === nodeChannel('two') && toTwo++ === 0 ? begun.promise : undefined)
  setup.two.serve('modern', async () => {
    begun.resolve()
    await new Promise((resolve) => setImmediate(resolve))
    return 'done'
  })
  t.equal(await setup.one.request('two', 'modern', ada, {}, call()), 'done')

  let calls = 0
  setup.two.serve('modern', async () => ++calls)
  setup.fail = (channel) => (channel === nodeChannel('two') && toTwo++ === 3 ? 'taken' : undefined)
  toTwo = 3
  t.equal(await setup.one.request('two', 'modern', ada, {}, call()), 1, 'one that may be begun at once is waited for')
  calls = 0
  toTwo = 3
  setup.elapsed += 1_000
  await t.rejects(setup.one.request('two', 'modern', ada, {}, call()), { code: 'unavailable' }, 'the control')
  await until('the other side was told to leave it', () => toTwo > 4)
  t.equal(calls, 0, 'what is refused is not run')
})

t.test('an answer that was lost is given again to its sender, and one that is worked on is waited for', async (t) => {
  const setup = await wire(t)
  const work = Promise.withResolvers<unknown>()
  let calls = 0
  setup.two.serve('modern', async (question) => {
    calls++
    if (question === 'slow') return await work.promise
    setup.lose = (channel) => channel === nodeChannel('one')
    return { question }
  })
  const slow = setup.one.request('two', 'modern', ada, 'slow', call())
  await until('it is worked on', () => calls === 1)
  const quick = setup.one.request('two', 'modern', ada, 'quick', call())
  await until('it is answered', () => calls === 2 && setup.published.at(-1)?.[0] === nodeChannel('one'))
  setup.lose = () => false
  setup.tellLost()
  t.same(await quick, { question: 'quick' })
  work.resolve('done')
  t.equal(await slow, 'done')
  t.equal(calls, 2, 'nothing was run twice')
})

t.test('what was said ahead of the answer and was lost is said again, in its order', async (t) => {
  const setup = await wire(t)
  const toOne = nodeChannel('one')
  const steps = Array.from({ length: 3 }, () => Promise.withResolvers<void>())
  let isLosing = false
  setup.lose = (channel) => isLosing && channel === toOne
  setup.two.serve('modern', async (_question, { notify }) => {
    for (const [n, { promise }] of steps.entries()) {
      void notify(n)
      await promise
    }
    return 'done'
  })
  const said: unknown[] = []
  const asked = setup.one.request('two', 'modern', ada, {}, call({ notify: (each) => said.push(each) }))
  await until('the first came', () => said.length === 1)
  isLosing = true
  const before = setup.published.length
  steps[0]?.resolve()
  await until('the second was lost', () => setup.published.length > before)
  isLosing = false
  // The next shows that one is missing; without a next one, that messages arrive again.
  steps[1]?.resolve()
  await until('both came', () => said.length === 3)
  t.same(said, [0, 1, 2])
  isLosing = true
  const again = setup.published.length
  steps[2]?.resolve()
  await until('the answer was lost', () => setup.published.length > again)
  isLosing = false
  setup.tellLost()
  t.equal(await asked, 'done')
  t.same(said, [0, 1, 2])
})

t.test('a question to the client that was lost is said again when messages arrive again', async (t) => {
  const setup = await wire(t)
  const toOne = nodeChannel('one')
  const answered = Promise.withResolvers<void>()
  setup.two.serve('modern', async (_question, { notify }) => {
    setup.lose = (channel) => channel === toOne
    void notify('the question')
    await answered.promise
    return 'done'
  })
  const asked = setup.one.request('two', 'modern', ada, {}, call({ notify: () => answered.resolve() }))
  const toldBefore = (): number => setup.published.filter(([channel]) => channel === toOne).length
  await until('it was lost', () => toldBefore() >= 2)
  setup.lose = () => false
  setup.tellLost()
  t.equal(await asked, 'done')
})

t.test('where the word to begin was lost nothing is run, and the sender hears it', async (t) => {
  const setup = await wire(t)
  let calls = 0
  setup.two.serve('modern', async () => ++calls)
  let toTwo = 0
  // The question arrives, and not what follows.
  setup.lose = (channel) => channel === nodeChannel('two') && ++toTwo > 1
  const asked = setup.one.request('two', 'modern', ada, {}, call())
  await until('the second message to it is lost', () => toTwo >= 2)
  setup.lose = () => false
  setup.tellLost()
  await t.rejects(asked, { code: 'invalid_state', message: /gone/ })
  t.equal(calls, 0)
})

t.test('an answer that is kept no more is lost, at once', async (t) => {
  const setup = await wire(t)
  setup.two.serve('modern', async () => {
    setup.lose = (channel) => channel === nodeChannel('one')
    return { text: 'x'.repeat(5 * 1024 * 1024) }
  })
  const asked = setup.one.request('two', 'modern', ada, {}, call())
  await until('it is answered', () => setup.published.some(([, text]) => text.length > 1_000_000))
  setup.lose = () => false
  setup.tellLost()
  await t.rejects(asked, { code: 'upstream_lost', data: { outcome: 'unknown' } })
})

t.test('nothing more is said to one who has given up', async (t) => {
  const setup = await wire(t)
  setup.hurry = true
  const toOne = nodeChannel('one')
  let failed = 0
  let isOver = false
  setup.two.serve('modern', async (_question, { signal }) => {
    setup.fail = (channel) => (channel === toOne ? (failed++, 'lost') : undefined)
    signal.addEventListener('abort', () => (isOver = true))
    return {}
  })
  const stop = new AbortController()
  const answer = setup.one.request('two', 'modern', ada, {}, call({ signal: stop.signal }))
  await until('it was tried', () => failed > 2)
  stop.abort()
  await t.rejects(answer, { code: 'cancelled' })
  await until('the other side knows', () => isOver)
  const { length } = setup.published
  await new Promise((resolve) => setTimeout(resolve, 50))
  t.ok(setup.published.length <= length + 1)
})

t.test('numbers that a double would change arrive as they were written', async (t) => {
  const { one, two } = await wire(t)
  two.serve('modern', async (question) => JSON.stringify(question))
  const text = '{"id":9007199254740993,"amount":100.00000000000000000001}'
  t.equal(await one.request('two', 'modern', ada, parseJson(Buffer.from(text))), text)
})

t.test('gateway and JSON-RPC errors arrive as thrown; any other reveals nothing', async (t) => {
  const { one, two } = await wire(t)
  const errors = [
    new GatewayError('invalid_state', 'used', { data: { a: 1 } }),
    new RpcError({ code: -5, message: 'no', data: [1] }),
    new Error('secret')
  ]
  two.serve('modern', () => Promise.reject(errors.shift() as Error))
  await t.rejects(one.request('two', 'modern', ada, {}, call()), {
    code: 'invalid_state',
    message: 'used',
    data: { a: 1 }
  })
  await t.rejects(one.request('two', 'modern', ada, {}, call()), { message: 'no' })
  const error = (await one.request('two', 'modern', ada, {}, call()).catch((error: unknown) => error)) as GatewayError
  t.equal(error.code, 'internal')
  t.notMatch(error.message, /secret/)
})

t.test('a process that never answers is gone, and one that falls silent has stopped', async (t) => {
  const setup = await wire(t, { silenceMs: 300 })
  setup.hurry = true
  await t.rejects(setup.one.request('three', 'modern', ada, {}, call()), {
    code: 'invalid_state',
    message: /gone/,
    data: { outcome: 'unknown' }
  })
  setup.hurry = false
  let aborted: AbortSignal | undefined
  setup.two.serve('modern', (_question, { signal }) => {
    aborted = signal
    setup.lose = () => true
    return never()
  })
  await t.rejects(setup.one.request('two', 'modern', ada, {}, call()), {
    code: 'upstream_lost',
    data: { outcome: 'unknown' }
  })
  await until('the other side notices too', () => aborted?.aborted)
})

t.test('long work is waited for, while both sides send heartbeats', async (t) => {
  const clock = handClock()
  let ticking: NodeJS.Timeout | undefined
  t.teardown(() => clearInterval(ticking))
  const { one, two } = await wire(t, { clock, silenceMs: 3_000 })
  // A bus that stops waits for a moment. Teardowns run last first: this one before the bus is closed.
  t.teardown(() => void (ticking = setInterval(() => clock.advance(500), 5)))
  const work = Promise.withResolvers<string>()
  two.serve('modern', () => work.promise)
  const asked = one.request('two', 'modern', ada, {}, call())
  for (let passed = 0; passed < 8_000; passed += 500) {
    clock.advance(500)
    for (let n = 0; n < 20; n++) await new Promise((resolve) => setImmediate(resolve))
  }
  work.resolve('late')
  t.equal(await asked, 'late')
})

t.test('a sender that gives up ends the work', async (t) => {
  const { one, two } = await wire(t)
  const begun = Promise.withResolvers<AbortSignal>()
  two.serve('modern', (_question, { signal }) => {
    begun.resolve(signal)
    return never()
  })
  const stop = new AbortController()
  const asked = one.request('two', 'modern', ada, {}, call({ signal: stop.signal }))
  const signal = await begun.promise
  stop.abort()
  await t.rejects(asked, { code: 'cancelled' })
  await until('the abort', () => signal.aborted)
  await t.rejects(one.request('two', 'modern', ada, {}, call({ signal: AbortSignal.abort() })), { code: 'cancelled' })
})

t.test('a request that arrives after its sender gave up is not worked on', async (t) => {
  const setup = await wire(t)
  let worked = 0
  setup.two.serve('modern', async () => ++worked)
  setup.lose = (channel) => channel === 'node:two'
  setup.hurry = true
  await t.rejects(setup.one.request('two', 'modern', ada, {}, call()), { code: 'invalid_state' })
  setup.hurry = false
  setup.lose = () => false
  const [[channel, question] = ['', '']] = setup.published
  await setup.store.publish(channel, question)
  t.equal(await setup.one.request('two', 'modern', ada, {}, call()), 1, 'only the request that is still wanted')
  await setup.store.publish(channel, question)
  setup.today += 61_000
  await setup.store.publish(channel, question)
  t.equal(await setup.one.request('two', 'modern', ada, {}, call()), 2)
})

t.test('messages that no process has sealed do nothing', async (t) => {
  const setup = await wire(t)
  let worked = 0
  setup.two.serve('modern', async () => ++worked)
  for (const text of [
    '',
    '{}',
    'x'.repeat(100),
    JSON.stringify({ word: 'question', id: 'x', from: 'one', at: setup.today, body: {} })
  ])
    await setup.store.publish('node:two', text)
  await setup.one.request('two', 'modern', ada, {}, call())
  for (const [channel, text] of setup.published) if (channel === 'node:one') await setup.store.publish('node:two', text)
  t.equal(await setup.one.request('two', 'modern', ada, {}, call()), 2)
})

t.test('a message that arrives twice counts once, and a replayed one not at all', async (t) => {
  const setup = await wire(t)
  let worked = 0
  setup.two.serve('modern', async (_question, { notify }) => {
    void notify(++worked)
    return 'done'
  })
  setup.times = 2
  const said: unknown[] = []
  t.equal(await setup.one.request('two', 'modern', ada, {}, call({ notify: (each) => said.push(each) })), 'done')
  setup.times = 1
  const before = [...setup.published]
  for (let n = 0; n < 2; n++) for (const [channel, text] of before) await setup.store.publish(channel, text)
  t.equal(await setup.one.request('two', 'modern', ada, {}, call()), 'done')
  t.same([worked, said], [2, [1]])
})

t.test('a third process cannot answer or abort a request of two others', async (t) => {
  const setup = await wire(t)
  const begun = Promise.withResolvers<AbortSignal>()
  const work = Promise.withResolvers<unknown>()
  setup.two.serve('modern', (_question, { signal }) => {
    begun.resolve(signal)
    return work.promise
  })
  const asked = setup.one.request('two', 'modern', ada, {}, call())
  const signal = await begun.promise
  const [, question] = setup.published.find(([channel]) => channel === 'node:two') ?? ['', '']
  const { id } = JSON.parse(setup.sealer.open('bus', ['two'], question) ?? '{}') as { id: string }
  const say = (to: string, from: string, word: string): Promise<number> =>
    setup.store.publish(
      `node:${to}`,
      setup.sealer.seal('bus', [to], JSON.stringify({ word, id, from, at: setup.today, n: 1_000, body: 'mine' }))
    )
  await say('one', 'three', 'answer')
  await say('two', 'three', 'abort')
  t.notOk(signal.aborted)
  work.resolve('theirs')
  t.equal(await asked, 'theirs')
})

t.test('a message that cannot be opened or read harms nothing', async (t) => {
  const setup = await wire(t)
  setup.two.serve('modern', async () => 'done')
  setup.broken = true
  setup.hurry = true
  await t.resolves(setup.store.publish('node:two', 'x'.repeat(100)))
  await t.rejects(setup.one.request('two', 'modern', ada, {}, call()), { code: 'invalid_state' })
  setup.broken = false
  setup.hurry = false
  for (const text of ['no JSON', 'null', '{}', '{"word":"question","id":"x","from":"one","at":1000000,"n":1}']) {
    await t.resolves(setup.store.publish('node:two', setup.sealer.seal('bus', ['two'], text)))
  }
  t.equal(await setup.one.request('two', 'modern', ada, {}, call()), 'done')
})

t.test('a caller and a tenant have a quota of requests, on both sides', async (t) => {
  for (const [side, limits] of [
    ['asks', [{ max: 32 }, { max: 1_000 }]],
    ['serves', [{ max: 1_000 }, { max: 32 }]]
  ] as const) {
    const setup = await wire(t, ...limits)
    const stop = new AbortController()
    let begun = 0
    setup.two.serve('modern', async (question, { signal }) => {
      begun++
      if (question !== 'short')
        await new Promise((_resolve, reject) => {
          signal.addEventListener('abort', reject)
        })
      return 'done'
    })
    const asks = (whose: BusCaller): Promise<unknown> =>
      setup.one.request('two', 'modern', whose, {}, call({ signal: stop.signal }))
    const running = Array.from({ length: 8 }, (_each, n) =>
      asks({ tenant: 'acme', caller: `caller ${n >> 1}` }).catch(() => {})
    )
    await until('all of them are under way', () => begun === 8)
    const short = (whose: BusCaller): Promise<unknown> => setup.one.request('two', 'modern', whose, 'short', call())
    await t.rejects(
      short({ tenant: 'acme', caller: 'caller 0' }),
      { code: 'too_many' },
      `${side}: two of 32 for one caller`
    )
    await t.rejects(short({ tenant: 'acme', caller: 'another' }), { code: 'too_many' }, 'eight for one tenant')
    t.equal(await short({ tenant: 'globex', caller: 'caller 0' }), 'done', 'the other one has its own')
    stop.abort()
    await Promise.all(running)
    await until(
      'the places are free again',
      async () => await short({ tenant: 'acme', caller: 'caller 0' }).catch(() => false)
    )
  }
})

t.test('answers of clients find places where the calls that wait for them have taken theirs', async (t) => {
  const setup = await wire(t, { max: 32 })
  const stop = new AbortController()
  let begun = 0
  setup.two.serve('request', () => {
    begun++
    return never()
  })
  setup.two.serve('response', async () => true)
  const whose = { tenant: 'acme', caller: 'ada' }
  const asks = () => setup.one.request('two', 'request', whose, {}, call({ signal: stop.signal }))
  const running = [asks(), asks()].map((each) => each.catch(() => {}))
  await until('both wait for an answer', () => begun === 2)
  await t.rejects(asks(), { code: 'too_many' }, 'the control: there is no place for one more')
  t.equal(await setup.one.request('two', 'response', whose, {}), true)
  stop.abort()
  await Promise.all(running)
})

t.test('tenants that have few requests find places where others have all of theirs', (t) => {
  const [quota, max] = [createQuota(), 1_024]
  const take = (tenant: string, caller: number) => takePlace(quota, max, { tenant, caller: `${caller}` })
  let taken = 0
  for (let tenant = 0; tenant < 8; tenant++)
    for (let n = 0; n < 256; n++) if (take(`many ${tenant}`, n >> 4) !== undefined) taken++
  t.ok(taken >= 896 && taken < 1_024, `${taken} are taken`)
  t.ok(take('few', 0))
  t.notOk(take('many 0', 99), 'the control')
  t.end()
})

t.test('requests at a time and message size are limited, and a store without messages is an error', async (t) => {
  const setup = await wire(t, { max: 1 })
  const stop = new AbortController()
  setup.two.serve('modern', never)
  const first = setup.one.request('two', 'modern', ada, {}, call({ signal: stop.signal })).catch(() => {})
  await t.rejects(setup.one.request('two', 'modern', ada, {}, call()), { code: 'too_many' })
  stop.abort()
  await first
  const other = await wire(t)
  other.two.serve('modern', async () => 'x'.repeat(9 * 1024 * 1024))
  await t.rejects(other.one.request('two', 'modern', ada, {}, call()), { code: 'upstream_protocol' })
  other.live = false
  await t.rejects(other.one.request('two', 'modern', ada, {}, call()), { code: 'unavailable' })
})

t.test('a process that stops tells the senders that wait', async (t) => {
  const { one, two } = await wire(t)
  const begun = Promise.withResolvers<undefined>()
  two.serve('modern', () => {
    begun.resolve(undefined)
    return never()
  })
  const asked = one.request('two', 'modern', ada, {}, call())
  await begun.promise
  await Promise.all([t.rejects(asked, { code: 'upstream_lost' }), two.close()])
})

t.test('a process that stops before it has begun says so: the request can be run elsewhere', async (t) => {
  const setup = await wire(t)
  let worked = 0
  setup.two.serve('modern', async () => ++worked)
  let toTwo = 0
  // The question arrives, and `go` does not.
  setup.lose = (channel) => channel === 'node:two' && ++toTwo > 1
  const asked = setup.one.request('two', 'modern', ada, {}, call())
  await until('it waits for its go', () => toTwo >= 2)
  await Promise.all([t.rejects(asked, { code: 'invalid_state', message: /gone/ }), setup.two.close()])
  t.equal(worked, 0)
})
