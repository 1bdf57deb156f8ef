// The replay guard of the bus: no message counts twice, and no caller can fill its memory.

import t from 'tap'
import { createReplayGuard } from '../../src/session/bus/wire/replay-guard.ts'
import { call, wire } from './bus-kit.ts'

t.test('of each process only messages newer than all before are new', async (t) => {
  const clock = { at: 0, now: () => clock.at }
  const isNew = createReplayGuard(clock, 100)
  t.same(
    [1, 2, 2, 1, 5, 4].map((n) => isNew('one', n)),
    [true, true, false, false, true, false]
  )
  t.ok(isNew('two', 1), 'each process has its own numbers')
  clock.at = 99
  t.notOk(isNew('two', 1))
  t.ok(isNew('two', 2))
  clock.at = 100
  t.ok(isNew('one', 1), 'a forgotten number would be too old anyway')
  t.notOk(isNew('two', 2), 'unless the process was heard since')
})

t.test('however many requests one caller sends, those of others are served', async (t) => {
  // The five hundred that come again take their time on a busy machine.
  const setup = await wire(t, { ackMs: 20_000 })
  let served = 0
  setup.two.serve('modern', async () => ++served)
  for (let n = 0; n < 500; n++) await setup.one.request('two', 'modern', { tenant: 'evil', caller: 'e' }, {}, call())
  t.equal(await setup.one.request('two', 'modern', { tenant: 'good', caller: 'g' }, {}, call()), 501)
  const questions = setup.published.filter(
    ([channel, text]) => channel === 'node:two' && setup.sealer.open('bus', ['two'], text)?.includes('"question"')
  )
  t.equal(questions.length, 501)
  for (const [channel, text] of questions) await setup.store.publish(channel, text)
  t.equal(
    await setup.one.request('two', 'modern', { tenant: 'good', caller: 'g' }, {}, call()),
    502,
    'none of the replayed ones counts'
  )
})
