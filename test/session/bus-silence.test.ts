// A process that hangs while it works for another one, or whose machine is gone: the store still knows it as a listener.

import t from 'tap'
import { ada, call, never, wire } from './bus-kit.ts'

/** For longer than this test runs: what is lost of one request is not what is tested. */
const patient = { ackMs: 100_000_000, silenceMs: 100_000_000 }

t.test('a process that answers nothing while it works ends its calls with an unknown outcome', async (t) => {
  const setup = await wire(t, patient)
  setup.two.serve('modern', () => {
    setup.lose = (channel) => channel === 'node:two'
    return never()
  })
  await t.rejects(setup.one.request('two', 'modern', ada, {}, call()), {
    code: 'upstream_lost',
    data: { outcome: 'unknown' }
  })
  setup.lose = () => false
  setup.two.serve('request', async () => 'done')
  t.equal(await setup.one.request('two', 'request', ada, {}, call()), 'done', 'it is spoken with again')
})

t.test('a process that stalls, and answers before two seconds are over, ends nothing', async (t) => {
  const setup = await wire(t, patient)
  const work = Promise.withResolvers<unknown>()
  let asked = 0
  setup.two.serve('modern', () => {
    // Twice in a row it does not hear that it is asked.
    setup.lose = (channel) => {
      if (channel !== 'node:two') return false
      if (++asked === 5) work.resolve('late')
      return asked <= 2
    }
    return work.promise
  })
  t.equal(await setup.one.request('two', 'modern', ada, {}, call()), 'late')
  t.ok(asked >= 5)
})

t.test('while the store is away nobody counts as hung', async (t) => {
  const setup = await wire(t, patient)
  const work = Promise.withResolvers<unknown>()
  let looks = 0
  setup.two.serve('modern', () => {
    const { promise } = work
    Object.defineProperty(setup, 'live', {
      get: () => {
        if (++looks === 6) work.resolve('late')
        return looks >= 6
      }
    })
    return promise
  })
  t.equal(await setup.one.request('two', 'modern', ada, {}, call()), 'late')
})
