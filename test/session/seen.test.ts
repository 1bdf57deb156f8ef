// What a process remembers of questions that others have sent it: enough that none counts twice, and nothing that anybody could fill.

import t from 'tap'
import { createSeen } from '../../src/session/seen.ts'
import { call, wire } from './bus-kit.ts'

t.test('of each process only what is newer than all before counts', async (t) => {
  const clock = { at: 0, now: () => clock.at }
  const seen = createSeen(clock, 100)
  t.same([1, 2, 2, 1, 5, 4].map((n) => seen.isNew('one', n)), [true, true, false, false, true, false])
  t.ok(seen.isNew('two', 1), 'another one counts for itself')
  clock.at = 99
  t.notOk(seen.isNew('two', 1))
  t.ok(seen.isNew('two', 2))
  clock.at = 100
  t.ok(seen.isNew('one', 1), 'what is forgotten would be too old')
  t.notOk(seen.isNew('two', 2), 'unless it was heard since')
})

t.test('however many questions one caller sends, and however long they are remembered, those of others are served', async (t) => {
  const room = await wire(t)
  let served = 0
  room.two.serve(async () => ++served)
  for (let n = 0; n < 500; n++) await room.one.ask('two', { tenant: 'evil', caller: 'e' }, {}, call())
  t.equal(await room.one.ask('two', { tenant: 'good', caller: 'g' }, {}, call()), 501)
  const questions = room.published.filter(([channel, text]) => channel === 'node:two' && room.sealer.open('bus', ['two'], text)?.includes('"question"'))
  t.equal(questions.length, 501)
  for (const [channel, text] of questions) await room.store.publish(channel, text)
  t.equal(await room.one.ask('two', { tenant: 'good', caller: 'g' }, {}, call()), 502, 'none of them counts twice')
})
