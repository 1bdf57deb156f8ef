// Long bodies and new sessions beyond the rate wait, never for longer than they may, and what waits is counted.

import t from 'tap'
import { createThrottle } from '../../src/http/rates/throttle.ts'
import { createMemoryAccount, holdMemory } from '../../src/limits/memory.ts'
import { tenantId } from '../../src/protocol/messages.ts'
import { handClock } from '../kit/connector.ts'

const second = 1_000
const long = 100_000
const limits = {
  bodyBytes: 1_000_000,
  bodyBytesPerSecondPerPrincipal: long,
  bodyBytesPerSecondPerTenant: long,
  sessionsPerSecondPerPrincipal: 1,
  sessionsPerSecondPerTenant: 1,
  queueMs: 10 * second
}

function throttled(changed: Partial<typeof limits> = {}, memoryBytes = Infinity) {
  const clock = handClock()
  const memory = createMemoryAccount(memoryBytes)
  const throttle = createThrottle(() => ({ ...limits, ...changed }), clock)
  const sender = (person: string, length: number, destroyed = false) => ({
    person,
    principal: { tenant: tenantId('acme') },
    memory: holdMemory(memory.share('acme', person)),
    incoming: { headers: { 'content-length': String(length) } } as Parameters<typeof throttle.body>[0]['incoming'],
    raw: { destroyed }
  })
  return {
    clock,
    memory,
    body: (person: string, length = long, destroyed = false) => throttle.body(sender(person, length, destroyed)),
    session: (person: string) => throttle.session(sender(person, 0))
  }
}

/** @returns whether it has settled, and how */
function watched(waits: Promise<void> | undefined) {
  const state: { settled: boolean; error?: unknown } = { settled: false }
  waits?.then(
    () => (state.settled = true),
    (error: unknown) => Object.assign(state, { settled: true, error })
  )
  return state
}
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

t.test('a body that says it is longer than any may be locks nobody out', async (t) => {
  const { body, clock } = throttled()
  t.equal(body('ada', 1e15), undefined, 'it is refused for its length without a wait')
  // It counts as the longest one that may be.
  clock.advance((limits.bodyBytes / long) * second)
  t.equal(body('ada'), undefined)
  clock.advance(second)
  t.equal(body('grace'), undefined, 'nor for others of the tenant')
})

t.test('one waits for its caller and its tenant together no longer than queueMs', async (t) => {
  const { body, clock } = throttled()
  for (const person of ['ada', 'grace', 'linus']) for (let n = 0; n < 4; n++) watched(body(person))
  const last = watched(body('ada'))
  for (const ms of [3_000, 6_999]) {
    clock.advance(ms)
    await nextTurn()
    t.notOk(last.settled, 'three seconds for its own limit, then for that of its tenant')
  }
  clock.advance(1)
  await nextTurn()
  t.match(last.error, { code: 'rate_limited', data: { limit: 'bodyBytesPerSecondPerTenant' } })
})

t.test('a body waits no longer than leaves time to send it, whatever queueMs is; a session may', async (t) => {
  const { body, session } = throttled({ queueMs: 300 * second })
  for (let n = 0; n < 17; n++) watched(body('ada'))
  t.throws(() => body('ada'), { code: 'rate_limited', data: { retryAfterMs: 16 * second } })
  for (let n = 0; n < 17; n++) watched(session('ada'))
  t.ok(session('ada') instanceof Promise)
})

t.test('what Node has read of a body that waits is counted until it goes on', async (t) => {
  const { body, clock, memory } = throttled({}, 1_000_000)
  t.equal(body('ada'), undefined)
  t.equal(body('ada'), undefined, 'those of one second come at once')
  t.equal(memory.held, 0)
  const waits = watched(body('ada'))
  const taken = memory.held
  t.ok(taken >= 131_072)
  t.throws(() => body('ada'), { code: 'too_many' }, 'a caller may hold a quarter of the memory')
  t.equal(memory.held, taken)
  clock.advance(second)
  await nextTurn()
  t.ok(waits.settled)
  t.equal(memory.held, 0)
})

t.test('who has gone takes nothing of its tenant', async (t) => {
  const { body, clock } = throttled({ bodyBytesPerSecondPerPrincipal: long / 10 })
  t.equal(body('ada'), undefined)
  clock.advance(9 * second)
  for (let n = 0; n < 10; n++) watched(body(`caller ${n}`, 40_000, true))
  t.equal(body('grace'), undefined)
  t.equal(body('linus'), undefined, 'those of one second are left')
})

t.test('who sends little waits for few of what colleagues have waiting', async (t) => {
  const { body, clock } = throttled()
  const many = ['ada', 'grace', 'linus'].flatMap((person) => [0, 1, 2].map(() => watched(body(person))))
  clock.advance(second)
  await nextTurn()
  const little = watched(body('alan'))
  clock.advance(4 * second)
  await nextTurn()
  t.ok(little.settled && little.error === undefined, 'the callers before it had one turn each')
  t.ok(
    many.some(({ settled }) => !settled),
    'the control: others wait still'
  )
})
