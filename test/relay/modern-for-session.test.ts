// A call that was done at once and shall be a task, while the store is away: it is not said to be worth another try.

import t from 'tap'
import { createMemoryAccount, holdMemory } from '../../src/limits/memory.ts'
import { GatewayError, type JsonObject, type Result, upstreamName } from '../../src/protocol/messages.ts'
import type { Client, Upstream } from '../../src/protocol/seams.ts'
import { createModernTasks } from '../../src/relay/tasks/modern-for-session.ts'
import type { LegacyCall } from '../../src/relay/call/call.ts'
import { createMonotonicProgress } from '../../src/relay/call/monotonic-progress.ts'
import type { Store } from '../../src/store/port.ts'
import { createServerRequestQuotas } from '../../src/upstream/rpc/server-requests.ts'
import { stillClock } from './kit.ts'
import { until } from '../kit/until.ts'

const live = {
  key: 'live',
  memory: holdMemory(createMemoryAccount().share('acme', 'ada')),
  endpoint: 'default',
  session: {
    record: {
      revision: '2025-11-25',
      capabilities: { roots: {} },
      owner: { tenant: 'acme', issuer: 'i', subject: 's', clientId: 'c' }
    }
  }
}
const client = { notify() {}, ask: async () => ({ roots: [] }) } as unknown as Client

function scene(
  answers: ReadonlyArray<Result | Error> | ((n: number) => Result),
  store: Partial<Store> = { get: async () => undefined, set: async () => true }
) {
  const clock = stillClock()
  const sent: string[] = []
  const stop = new AbortController()
  const upstream = {
    name: upstreamName('up'),
    async request({ method }: { method: string }, _client: Client, signal: AbortSignal) {
      if (signal.aborted) throw new GatewayError('cancelled', 'cancelled')
      sent.push(method)
      if (method !== 'tasks/get') return {}
      const n = sent.filter((method) => method === 'tasks/get').length - 1
      const next = typeof answers === 'function' ? answers(n) : answers[n]
      if (next === undefined || next instanceof Error) throw next ?? new Error('one request too many')
      return next
    }
  } as unknown as Upstream
  const call = {
    session: live,
    client,
    endpoint: { members: [{ upstream: 'up' }] },
    signal: stop.signal,
    request: { method: 'tools/call' }
  } as unknown as LegacyCall
  const tasks = createModernTasks({
    clock,
    store: store as Store,
    quotas: createServerRequestQuotas(),
    newId: () => 'minted',
    taskId: (_call, _upstream, id) => id
  })
  return { clock, sent, stop, tasks, call, upstream }
}
const working = {
  resultType: 'complete',
  taskId: 'x',
  status: 'working',
  createdAt: 'c',
  lastUpdatedAt: 'l',
  ttlMs: null,
  pollIntervalMs: 700
}
const completed = { ...working, status: 'completed', result: { content: [] } }

t.test('a result that cannot be stored is an error that does not invite to try again', async (t) => {
  const away = async (): Promise<never> => {
    throw new GatewayError('unavailable', 'away')
  }
  const { tasks, call, upstream } = scene([], { get: away, set: away, count: away })
  await t.rejects(tasks.ended(call, upstream, { content: [] }, {}), { code: 'internal', data: { outcome: 'unknown' } })
})

t.test('a result is stored for as long as the client wishes, at most ten minutes', async (t) => {
  for (const [wanted, ttl] of [
    [{ ttl: 1_000 }, 1_000],
    [{}, 600_000],
    [{ ttl: 10 ** 12 }, 600_000],
    [{ ttl: -1 }, 600_000],
    [{ ttl: 'x' }, 600_000],
    [7, 600_000]
  ] as const) {
    const kept: unknown[] = []
    const { tasks, call, upstream } = scene([], {
      count: async () => 1,
      set: async (_key, _value, options) => {
        kept.push(options)
        return true
      }
    })
    t.match(await tasks.ended(call, upstream, { content: [] }, wanted), { task: { ttl, status: 'completed' } })
    t.same(kept, [{ ttlMs: ttl }])
  }
})

t.test(
  'the server is asked again as often as it wants to be, and a little more patiently where it fails',
  async (t) => {
    const { tasks, call, upstream, clock, sent } = scene([
      working,
      new GatewayError('upstream_lost', 'lost'),
      completed
    ])
    const finished = tasks.finished(
      call,
      upstream,
      { ...working, resultType: 'task' },
      createMonotonicProgress(client, undefined)
    )
    for (const wait of [700, 700, 1_000]) {
      await until(`a wait of ${wait} ms`, () => clock.waits.includes(wait))
      clock.move(wait)
    }
    t.same(await finished, { content: [] })
    t.same(sent, ['tasks/get', 'tasks/get', 'tasks/get'])
  }
)

t.test('a server that cannot be asked any more, or that says nothing of use, is given up and told', async (t) => {
  const lost = new GatewayError('upstream_lost', 'lost')
  for (const [answers, code] of [
    [[lost, lost, lost], 'upstream_lost'],
    [[{ resultType: 'complete' }], 'upstream_protocol'],
    [[{ ...working, status: 'completed' }], 'upstream_protocol']
  ] as const) {
    const { tasks, call, upstream, clock, sent } = scene(answers)
    let over = false
    const finished = tasks.finished(call, upstream, working, createMonotonicProgress(client, undefined)).finally(() => {
      over = true
    })
    const moving = until('the end', () => {
      clock.move(1_000)
      return over
    })
    await t.rejects(finished, { code })
    await moving
    t.equal(sent.at(-1), 'tasks/cancel')
  }
})

t.test('a caller that gives up the wait has the task cancelled', async (t) => {
  const { tasks, call, upstream, clock, sent, stop } = scene([working])
  const finished = tasks.finished(call, upstream, working, createMonotonicProgress(client, undefined))
  await until('the wait', () => clock.waits.includes(700))
  stop.abort()
  await t.rejects(finished, { code: 'cancelled' })
  t.same(sent, ['tasks/cancel'])
})

/** Time goes on, and everything that it sets off happens. */
async function pass(clock: ReturnType<typeof stillClock>, ms: number, steps = 1): Promise<void> {
  for (let step = 0; step < steps; step++) {
    clock.move(ms)
    await new Promise(setImmediate)
  }
}

t.test(
  'a server that wants to be asked all the time, and has much to say, is asked twice a second in the long run, and told of in brief',
  async (t) => {
    const told: JsonObject[] = []
    const restless = (n: number): Result => ({
      ...working,
      pollIntervalMs: 0,
      statusMessage: `${n} ${'x'.repeat(100_000)}`
    })
    const { tasks, call, upstream, clock, sent, stop } = scene(restless)
    const finished = tasks.finished(
      call,
      upstream,
      restless(-1),
      createMonotonicProgress(
        {
          ...client,
          notify: ({ params }) => {
            told.push(params ?? {})
          }
        },
        'p'
      )
    )
    finished.catch(() => {})
    await pass(clock, 20, 50)
    t.ok(sent.length >= 10, 'one that is soon done keeps nobody waiting')
    await pass(clock, 20, 2_950)
    t.ok(sent.length <= 160, `${sent.length} requests in a minute`)
    t.ok(told.every(({ message }) => String(message).length === 1_000))
    t.same(
      told.map(({ progress }) => progress),
      told.map((_, n) => n + 1)
    )
    stop.abort()
    await t.rejects(finished, { code: 'cancelled' })
  }
)

t.test('a server that works for ever is waited for a day', async (t) => {
  const { tasks, call, upstream, clock, sent } = scene(() => ({ ...working, pollIntervalMs: 1e9 }))
  let over = false
  const finished = tasks.finished(call, upstream, working, createMonotonicProgress(client, undefined)).finally(() => {
    over = true
  })
  finished.catch(() => {})
  await pass(clock, 10_000, 8_000)
  t.notOk(over)
  await pass(clock, 10_000, 700)
  t.ok(over)
  await t.rejects(finished, { code: 'upstream_protocol', data: { outcome: 'unknown' } })
  t.equal(sent.at(-1), 'tasks/cancel')
})

t.test('a task that asks again and again is given up; one that asks now and then is not', async (t) => {
  const asks = (n: number): Result => ({
    ...working,
    status: 'input_required',
    inputRequests: { [`q${n}`]: { method: 'roots/list' } }
  })
  for (const [times, ending] of [
    [31, completed],
    [32, completed],
    [33, undefined]
  ] as const) {
    const { tasks, call, upstream, clock, sent } = scene((n) => (n < times ? asks(n) : completed))
    const finished = tasks.finished(call, upstream, working, createMonotonicProgress(client, undefined))
    finished.catch(() => {})
    await pass(clock, 1_000, 40)
    if (ending === undefined) {
      await t.rejects(finished, {
        code: 'upstream_protocol',
        message: /more than 32 times/,
        data: { outcome: 'unknown' }
      })
      t.equal(sent.at(-1), 'tasks/cancel')
    } else t.same(await finished, { content: [] })
    t.equal(sent.filter((method) => method === 'tasks/update').length, Math.min(times, 32))
  }
})
