// What is held of tasks of older upstreams: bounded, kept open while it is of use, and let go of.

import t from 'tap'
import pino from 'pino'
import { tenantId, upstreamName } from '../../src/protocol/ids.ts'
import type { Endpoint, UpstreamDefinition } from '../../src/config/snapshot.ts'
import type { Request, Result } from '../../src/protocol/messages.ts'
import type { Upstream } from '../../src/protocol/seams.ts'
import { relatedTask } from '../../src/protocol/tasks.ts'
import { createHeldTasks } from '../../src/relay/modern/held-tasks.ts'
import { until } from '../kit/until.ts'
import { stillClock } from './kit.ts'

const definition = { name: upstreamName('up'), tenant: tenantId('acme'), hash: 'h', idleMs: 60_000 } as UpstreamDefinition
const endpoint = { members: [{ upstream: upstreamName('up') }] } as unknown as Endpoint
const minute = 60_000

function room () {
  const clock = stillClock()
  const touched: string[] = []
  let keys = 0
  const held = createHeldTasks({ clock, touch: (scope) => { touched.push(scope) }, newId: () => String(++keys), log: pino({ level: 'silent' }) })
  const signals: AbortSignal[] = []
  const connection = (): Upstream => ({
    name: definition.name,
    request (_request: Request, _client: unknown, signal: AbortSignal): Promise<Result> {
      signals.push(signal)
      return new Promise(() => {})
    }
  }) as unknown as Upstream
  const connections = new Map<string, Upstream>()
  const at = (scope: string): Upstream => connections.get(scope) ?? connections.set(scope, connection()).get(scope) as Upstream
  const hold = (id: string, owner = 'ada', tenant = 'acme', scope = owner) =>
    held.hold({ key: `${owner} ${id}`, owner, definition: { ...definition, tenant: tenantId(tenant) }, scope, upstream: at(scope), id, endpoint, capabilities: { elicitation: {} } })
  const ask = (id: string, scope = 'ada') => held.ask(at(scope), { method: 'elicitation/create', params: { message: 'x', requestedSchema: { type: 'object', properties: {} }, _meta: { [relatedTask]: { taskId: id } } } }, undefined, () => Promise.resolve('nobody'))
  return { clock, touched, held, hold, ask, signals }
}

t.test('whoever holds too many loses the one that was not asked for longest; nobody else does', async (t) => {
  const { clock, held, hold } = room()
  hold('bob\'s', 'bob')
  for (let n = 0; n < 64; n++) {
    hold(String(n))
    clock.move(1)
  }
  held.find('ada 0')?.seen(true)
  hold('64')
  t.ok(held.find('ada 0'))
  t.notOk(held.find('ada 1'))
  t.ok(held.find('ada 2'))
  t.ok(held.find('bob bob\'s'))
  held.close()
})

t.test('a tenant has its share, and whoever takes more of it than others gives way to them', async (t) => {
  const { held, hold } = room()
  hold('first', 'bob')
  hold('first', 'eve', 'globex')
  const callers = Array.from({ length: 40 }, (_, n) => `caller ${n}`)
  for (const owner of callers) for (let n = 0; n < 64; n++) hold(String(n), owner)
  t.ok(held.find('bob first'), 'who has one has it still')
  t.ok(held.find('eve first'), 'another tenant has nothing to do with it')
  const heldOf = (owner: string): number => Array.from({ length: 64 }, (_, n) => n).filter((n) => held.find(`${owner} ${n}`) !== undefined).length
  t.equal(callers.reduce((sum, owner) => sum + heldOf(owner), 0) + 1, 2_500)
  hold('second', 'bob')
  t.ok(held.find('bob first'), 'nor does it cost the one who has less than the others')
  t.ok(held.find('bob second'))
  held.close()
})

t.test('nor does one tenant take the place of another where all is full', async (t) => {
  const { held, hold } = room()
  hold('first', 'eve', 'globex')
  for (let n = 0; n < 10_000; n++) hold(String(n), `caller ${n % 160}`, `tenant ${n % 5}`)
  t.ok(held.find('eve first'))
  t.equal(Array.from({ length: 10_000 }, (_, n) => held.find(`caller ${n % 160} ${n}`)).filter((task) => task !== undefined).length, 9_999, 'one of the larger ones has given way')
  hold('second', 'eve', 'globex')
  t.ok(held.find('eve first'))
  t.ok(held.find('eve second'))
  held.close()
})

t.test('a task of two callers on one connection: nobody is asked what may be the other\'s, and the end of one is not that of the other', async (t) => {
  const { clock, held, hold, ask } = room()
  const mine = hold('a', 'ada', 'acme', 'common')
  hold('a', 'bob', 'acme', 'common')
  t.equal(await ask('a', 'common'), 'nobody')
  held.drop('bob a')
  const asked = ask('a', 'common')
  const shown = mine.questions(false)
  await until('it is there', () => {
    clock.move(25)
    return clock.waits.length === 1
  })
  t.equal(Object.keys(await shown).length, 1)
  held.close()
  t.same(await asked, { action: 'cancel' })
})

t.test('a connection stays open for an hour after its task was last asked for; that of one that has ended does not', async (t) => {
  const { clock, touched, held, hold } = room()
  hold('a')
  hold('b', 'bob').seen(false)
  for (let n = 0; n < 59; n++) clock.move(minute)
  t.ok(touched.length >= 59)
  t.ok(held.find('ada a'))
  t.notOk(held.find('bob b'))
  t.same(new Set(touched.slice(-10)), new Set(['ada']))
  clock.move(minute)
  clock.move(minute)
  t.notOk(held.find('ada a'))
  const before = touched.length
  clock.move(minute)
  t.equal(touched.length, before)
  t.equal(clock.waits.length, 0, 'nothing is left to look after')
})

t.test('a question goes to the task that it names, on its own connection only, and even if it comes a moment early', async (t) => {
  const { clock, held, hold, ask } = room()
  const early = ask('a')
  const task = hold('a')
  clock.move(25)
  await until('it is there', async () => Object.keys(await task.questions(false)).length === 1)
  const foreign = ask('a', 'bob')
  clock.move(25)
  t.equal(await foreign, 'nobody')
  const [key] = Object.keys(await task.questions(false)) as [string]
  t.throws(() => task.answer({ [key]: 7 }), { code: 'invalid_params' })
  task.answer({ [key]: { action: 'accept' } })
  t.same(await early, { action: 'accept' })
  task.answer({ [key]: { action: 'decline' } })
  t.same(await task.questions(false), {})
  held.close()
})

t.test('the end leaves no question open and waits for no result', async (t) => {
  const { clock, held, hold, ask, signals } = room()
  const task = hold('a')
  const asking = ask('a')
  const questions = task.questions(true)
  await until('it is asked for', () => {
    clock.move(25)
    return signals.length === 1
  })
  let shown: unknown
  questions.then((all) => { shown = all }).catch(() => {})
  await until('they are there', () => {
    clock.move(25)
    return shown
  })
  t.equal(Object.keys(shown as object).length, 1)
  held.close()
  t.same(await asking, { action: 'cancel' })
  t.ok(signals[0]?.aborted)
})
