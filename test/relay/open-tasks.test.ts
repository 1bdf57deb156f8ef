// Tasks of legacy upstreams that modern clients poll: bounded, with their connections open while they are of use.

import t from 'tap'
import pino from 'pino'
import { type Request, type Result, tenantId, upstreamName } from '../../src/protocol/messages.ts'
import type { Endpoint, UpstreamDefinition } from '../../src/config/snapshot.ts'
import type { Upstream } from '../../src/protocol/seams.ts'
import { relatedTaskKey } from '../../src/protocol/translate/tasks.ts'
import { createOpenTasks } from '../../src/relay/tasks/open-tasks.ts'
import { until } from '../kit/until.ts'
import { stillClock } from './kit.ts'

const definition = {
  name: upstreamName('up'),
  tenant: tenantId('acme'),
  hash: 'h',
  idleMs: 60_000
} as UpstreamDefinition
const endpoint = { members: [{ upstream: upstreamName('up') }] } as unknown as Endpoint
const minute = 60_000

function setUp() {
  const clock = stillClock()
  const touched: string[] = []
  let keys = 0
  const openTasks = createOpenTasks(
    clock,
    { touch: (scope) => void touched.push(scope) },
    () => String(++keys),
    pino({ level: 'silent' })
  )
  const signals: AbortSignal[] = []
  const connection = (): Upstream =>
    ({
      name: definition.name,
      request(_request: Request, _client: unknown, signal: AbortSignal): Promise<Result> {
        signals.push(signal)
        return new Promise(() => {})
      }
    }) as unknown as Upstream
  const connections = new Map<string, Upstream>()
  const at = (scope: string): Upstream =>
    connections.get(scope) ?? (connections.set(scope, connection()).get(scope) as Upstream)
  const track = (id: string, owner = 'ada', tenant = 'acme', scope = owner) =>
    openTasks.track({
      key: `${owner} ${id}`,
      owner,
      caller: { issuer: 'https://login.example', subject: owner },
      definition: { ...definition, tenant: tenantId(tenant) },
      scope,
      upstream: at(scope),
      id,
      endpoint,
      capabilities: { elicitation: {} }
    })
  const ask = (id: string, scope = 'ada') =>
    openTasks.ask(
      at(scope),
      {
        method: 'elicitation/create',
        params: {
          message: 'x',
          requestedSchema: { type: 'object', properties: {} },
          _meta: { [relatedTaskKey]: { taskId: id } }
        }
      },
      undefined,
      () => Promise.resolve('nobody')
    )
  return { clock, touched, openTasks, track, ask, signals }
}

t.test(
  'a caller with too many tasks loses the one that it has not polled for longest; no other caller loses one',
  async (t) => {
    const { clock, openTasks, track } = setUp()
    track("bob's", 'bob')
    for (let n = 0; n < 64; n++) {
      track(String(n))
      clock.move(1)
    }
    openTasks.find('ada 0')?.seen(true)
    track('64')
    t.ok(openTasks.find('ada 0'))
    t.notOk(openTasks.find('ada 1'))
    t.ok(openTasks.find('ada 2'))
    t.ok(openTasks.find("bob bob's"))
    openTasks.close()
  }
)

t.test('a tenant has a limit, within which the caller with most tasks loses one first', async (t) => {
  const { openTasks, track } = setUp()
  track('first', 'bob')
  track('first', 'eve', 'globex')
  const callers = Array.from({ length: 40 }, (_, n) => `caller ${n}`)
  for (const owner of callers) for (let n = 0; n < 64; n++) track(String(n), owner)
  t.ok(openTasks.find('bob first'), 'who has one has it still')
  t.ok(openTasks.find('eve first'), 'another tenant has nothing to do with it')
  const heldOf = (owner: string): number =>
    Array.from({ length: 64 }, (_, n) => n).filter((n) => openTasks.find(`${owner} ${n}`) !== undefined).length
  t.equal(callers.reduce((sum, owner) => sum + heldOf(owner), 0) + 1, 2_500)
  track('second', 'bob')
  t.ok(openTasks.find('bob first'), 'nor does it cost the one who has less than the others')
  t.ok(openTasks.find('bob second'))
  openTasks.close()
})

t.test('where all is full, the tenant with most tasks loses one first', async (t) => {
  const { openTasks, track } = setUp()
  track('first', 'eve', 'globex')
  for (let n = 0; n < 10_000; n++) track(String(n), `caller ${n % 160}`, `tenant ${n % 5}`)
  t.ok(openTasks.find('eve first'))
  t.equal(
    Array.from({ length: 10_000 }, (_, n) => openTasks.find(`caller ${n % 160} ${n}`)).filter(
      (task) => task !== undefined
    ).length,
    9_999,
    'one of the larger ones has given way'
  )
  track('second', 'eve', 'globex')
  t.ok(openTasks.find('eve first'))
  t.ok(openTasks.find('eve second'))
  openTasks.close()
})

t.test(
  "a task of two callers on one connection: nobody is asked what may be the other's, and the end of one is not that of the other",
  async (t) => {
    const { clock, openTasks, track, ask } = setUp()
    const mine = track('a', 'ada', 'acme', 'common')
    track('a', 'bob', 'acme', 'common')
    t.equal(await ask('a', 'common'), 'nobody')
    openTasks.drop('bob a')
    const asked = ask('a', 'common')
    const shown = mine.inputRequests(false)
    await until('it is there', () => {
      clock.move(25)
      return clock.waits.length === 1
    })
    t.equal(Object.keys(await shown).length, 1)
    openTasks.close()
    t.same(await asked, { action: 'cancel' })
  }
)

t.test(
  'a connection stays open for an hour after its task was last asked for; that of one that has ended does not',
  async (t) => {
    const { clock, touched, openTasks, track } = setUp()
    track('a')
    track('b', 'bob').seen(false)
    for (let n = 0; n < 59; n++) clock.move(minute)
    t.ok(touched.length >= 59)
    t.ok(openTasks.find('ada a'))
    t.notOk(openTasks.find('bob b'))
    t.same(new Set(touched.slice(-10)), new Set(['ada']))
    clock.move(minute)
    clock.move(minute)
    t.notOk(openTasks.find('ada a'))
    const before = touched.length
    clock.move(minute)
    t.equal(touched.length, before)
    t.equal(clock.waits.length, 0, 'nothing is left to look after')
  }
)

t.test(
  'a question goes to the task that it names, on its own connection only, and even if it comes a moment early',
  async (t) => {
    const { clock, openTasks, track, ask } = setUp()
    const early = ask('a')
    const task = track('a')
    clock.move(25)
    await until('it is there', async () => Object.keys(await task.inputRequests(false)).length === 1)
    const foreign = ask('a', 'bob')
    clock.move(25)
    t.equal(await foreign, 'nobody')
    const [key] = Object.keys(await task.inputRequests(false)) as [string]
    t.throws(() => task.answer({ [key]: 7 }), { code: 'invalid_params' })
    task.answer({ [key]: { action: 'accept' } })
    t.same(await early, { action: 'accept' })
    task.answer({ [key]: { action: 'decline' } })
    t.same(await task.inputRequests(false), {})
    openTasks.close()
  }
)

t.test('closing leaves no server request open and waits for no result', async (t) => {
  const { clock, openTasks, track, ask, signals } = setUp()
  const task = track('a')
  const asking = ask('a')
  const questions = task.inputRequests(true)
  await until('it is asked for', () => {
    clock.move(25)
    return signals.length === 1
  })
  let shown: unknown
  questions
    .then((all) => {
      shown = all
    })
    .catch(() => {})
  await until('they are there', () => {
    clock.move(25)
    return shown
  })
  t.equal(Object.keys(shown as object).length, 1)
  openTasks.close()
  t.same(await asking, { action: 'cancel' })
  t.ok(signals[0]?.aborted)
})
