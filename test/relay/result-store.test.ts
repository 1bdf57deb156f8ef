// Results that are kept as tasks, in a real store: so many of a caller, and so large.

import pino from 'pino'
import t from 'tap'
import { randomBytes } from 'node:crypto'
import { type JsonObject, type Result, upstreamName } from '../../src/protocol/messages.ts'
import type { Client, Upstream } from '../../src/protocol/seams.ts'
import { createModernTasks } from '../../src/relay/tasks/modern-for-session.ts'
import type { LegacyCall } from '../../src/relay/call/call.ts'
import type { Store } from '../../src/store/port.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { createServerRequestQuotas } from '../../src/upstream/rpc/server-requests.ts'
import { stillClock } from './kit.ts'

const client = {} as Client
const MiB = 1024 * 1024

async function scene(t: { teardown(run: () => unknown): void }) {
  const clock = stillClock()
  const made = await createSqliteStore({ path: ':memory:', clock, log: pino({ level: 'silent' }) })
  t.teardown(() => made.close())
  const keys = new Set<string>()
  const written: number[] = []
  const store: Store = {
    ...made,
    async set(key, value, options) {
      keys.add(key)
      written.push(value.length)
      return await made.set(key, value, options)
    }
  }
  const process = () =>
    createModernTasks({
      clock,
      store,
      quotas: createServerRequestQuotas(),
      newId: () => randomBytes(8).toString('hex'),
      taskId: (_call, _upstream, id) => id
    })
  const answers: JsonObject[] = []
  const upstream = { name: upstreamName('up'), request: async () => answers.shift() ?? {} } as unknown as Upstream
  /** @param who a person, and a client and an endpoint where those are not the usual ones, with spaces between */
  const callOf = (who: string): LegacyCall => {
    const [subject, clientId = 'c', endpoint = 'default'] = who.split(' ')
    return {
      client,
      signal: new AbortController().signal,
      request: { method: 'tools/call' },
      session: {
        key: 'live',
        endpoint,
        session: {
          record: {
            revision: '2025-11-25',
            capabilities: {},
            owner: { tenant: 'acme', issuer: 'i', subject, clientId }
          }
        }
      }
    } as unknown as LegacyCall
  }
  const tasks = process()
  const end = async (result: Result, who = 'ada', by = tasks): Promise<string> =>
    ((await by.ended(callOf(who), upstream, result, {}))['task'] as { taskId: string }).taskId
  const ask = (method: string, taskId: string, who = 'ada', by = tasks) =>
    by.handle(callOf(who), upstream, { method, params: { taskId } }, client, (result) => result)
  const there = async (taskId: string, who = 'ada') =>
    await ask('tasks/result', taskId, who).then(
      () => true,
      () => false
    )
  return { clock, keys, written, answers, process, end, ask, there }
}

const saying = (text: string): Result => ({ content: [{ type: 'text', text }] })

t.test('a caller has its newest results, whichever process stored them; no other caller loses one', async (t) => {
  const { keys, process, end, ask, there } = await scene(t)
  const bobs = await end(saying("bob's"), 'bob')
  const [one, two] = [process(), process()]
  const ids: string[] = []
  for (let n = 0; n < 100; n++) ids.push(await end(saying(String(n)), 'ada', n % 2 === 0 ? one : two))
  t.same(
    await Promise.all(ids.map((id) => there(id))),
    ids.map((_, n) => n >= 36)
  )
  t.match(await ask('tasks/result', ids[99] ?? ''), saying('99'))
  t.match(await ask('tasks/get', ids[36] ?? ''), { taskId: ids[36], status: 'completed' })
  await t.rejects(ask('tasks/get', ids[35] ?? ''), { code: 'invalid_params', message: /newer ones/ })
  t.ok(await there(bobs, 'bob'))
  t.notOk(await there(bobs), 'an id of somebody else is none')
  t.equal(keys.size, 65)
})

t.test(
  'a person has so many slots whatever the client and the endpoint, each of which sees only its own',
  async (t) => {
    const { keys, answers, end, ask, there } = await scene(t)
    const ids: string[] = []
    for (let n = 0; n < 100; n++) ids.push(await end(saying(String(n)), `ada client-${n} endpoint-${n % 3}`))
    t.equal(keys.size, 64)
    t.notOk(await there(ids[0] ?? '', 'ada client-0 endpoint-0'))
    t.ok(await there(ids[99] ?? '', 'ada client-99 endpoint-0'))
    t.notOk(await there(ids[99] ?? '', 'ada client-98 endpoint-0'), 'of another client')
    t.notOk(await there(ids[99] ?? '', 'ada client-99 endpoint-1'), 'at another endpoint')
    answers.push({ taskId: 'x', status: 'working', createdAt: 'c', lastUpdatedAt: 'l', ttlMs: 60_000 }, {})
    await ask('tasks/cancel', 'as.x', 'ada one')
    t.match(await ask('tasks/get', 'as.x', 'ada one'), { status: 'cancelled' })
    answers.push({ taskId: 'x', status: 'working', createdAt: 'c', lastUpdatedAt: 'l', ttlMs: 60_000 })
    t.match(await ask('tasks/get', 'as.x', 'ada two'), { status: 'working' }, 'another client asks the server')
  }
)

t.test('many results at once take no more slots', async (t) => {
  const { keys, end, there } = await scene(t)
  const ids = await Promise.all(Array.from({ length: 300 }, (_, n) => end(saying(String(n)))))
  t.equal(keys.size, 64)
  t.equal((await Promise.all(ids.map((id) => there(id)))).filter((each) => each).length, 64)
})

t.test('large results have few slots of their own, and replace no small ones', async (t) => {
  const { keys, written, end, there } = await scene(t)
  const small = await end(saying('small'))
  const large: string[] = []
  for (let n = 0; n < 6; n++) large.push(await end(saying('x'.repeat(3 * MiB))))
  t.same(await Promise.all(large.map((id) => there(id))), [false, false, true, true, true, true])
  t.ok(await there(small))
  for (let n = 0; n < 20; n++) await end(saying('x'.repeat(MiB / 2)))
  t.ok(await there(large[5] ?? ''))
  t.equal(keys.size, 1 + 4 + 16)
  t.ok(Math.max(...written) < 4 * MiB)
})

t.test(
  'a result that is too large to be kept is an error that says so, and not that the call should be made again',
  async (t) => {
    const { keys, end, there } = await scene(t)
    t.ok(await there(await end(saying('x'.repeat(4 * MiB - 100)))))
    const before = keys.size
    await t.rejects(end(saying('x'.repeat(4 * MiB))), {
      code: 'upstream_protocol',
      message: /longer than 4 MiB.*without "task"/,
      data: { outcome: 'unknown', upstream: 'up' }
    })
    await t.rejects(end(saying('ü'.repeat(3 * MiB))), { code: 'upstream_protocol' }, 'in bytes')
    t.equal(keys.size, before)
  }
)

t.test('of a cancelled task only what 2025-11-25 defines is stored, not all that its server said', async (t) => {
  const { keys, written, answers, ask } = await scene(t)
  const task = {
    taskId: 'x',
    status: 'working',
    statusMessage: 'y'.repeat(MiB),
    createdAt: 'c',
    lastUpdatedAt: 'l',
    ttlMs: 60_000,
    pollIntervalMs: 20,
    more: 'z'.repeat(MiB)
  }
  for (let n = 0; n < 1_500; n++) {
    answers.push(task, {})
    await ask('tasks/cancel', `as.${n}`)
  }
  t.match(await ask('tasks/get', 'as.1499'), {
    taskId: 'as.1499',
    status: 'cancelled',
    createdAt: 'c',
    ttl: 60_000,
    pollInterval: 20
  })
  t.ok(Math.max(...written) < 2_000)
  t.ok(keys.size <= 1_024)
})
