// What is kept for processes that missed it: one tenant does not push out what is kept for another.

import pino from 'pino'
import t from 'tap'
import { createKeptMessages } from '../../src/session/bus/bus-kept.ts'
import { createFlow } from '../../src/session/bus/wire/bus-flow.ts'
import { wallClock } from '../../src/time/clock.ts'
import { until } from '../kit/until.ts'
import { ada } from './bus-kit.ts'

const mebibyte = 1024 * 1024

function keeper() {
  let now = 0
  const clock = { now: () => now }
  const flow = createFlow(wallClock, () => Promise.resolve(1))
  const kept = createKeptMessages({ clock, log: pino({ level: 'silent' }) }, () => Promise.resolve(1), flow)
  const leaveLater = (tenant: string, id: string, size: number): (() => void) =>
    kept.keep({ id, to: 'one', whose: { tenant, caller: '' }, word: 'answer', body: id, seq: 1, size })
  return {
    pass: (ms: number): void => void (now += ms),
    leaveLater,
    keep: (tenant: string, id: string, size: number): void => leaveLater(tenant, id, size)(),
    isKept: (id: string): boolean => kept.sayAgain(id, 'one', 0)
  }
}

t.test('beyond what is kept at most, the tenant that has most loses its oldest answer', (t) => {
  const { keep, isKept } = keeper()
  keep('calm', 'calm 1', mebibyte / 2)
  for (let n = 1; n <= 20; n++) keep('noisy', `noisy ${n}`, mebibyte)
  t.ok(isKept('calm 1'))
  t.same(['noisy 17', 'noisy 18', 'noisy 20'].map(isKept), [false, true, true])
  keep('calm', 'calm 2', mebibyte)
  t.same(['calm 1', 'calm 2', 'noisy 18'].map(isKept), [true, true, false])
  t.end()
})

t.test('a lone tenant has all of it, and nothing is kept for longer than five seconds', (t) => {
  const { keep, isKept, pass } = keeper()
  for (let n = 1; n <= 4; n++) keep('calm', `calm ${n}`, mebibyte)
  t.ok(isKept('calm 1'))
  keep('calm', 'too long', 5 * mebibyte)
  t.notOk(isKept('too long'))
  pass(5_000)
  keep('calm', 'calm 5', 1)
  t.same(['calm 1', 'calm 4', 'calm 5'].map(isKept), [false, false, true])
  t.end()
})

t.test('the five seconds begin when it has left', (t) => {
  const { leaveLater, keep, isKept, pass } = keeper()
  const hasLeft = leaveLater('calm', 'long', mebibyte)
  keep('calm', 'short', 1)
  pass(20_000)
  keep('calm', 'next', 1)
  t.same(['long', 'short'].map(isKept), [true, false])
  hasLeft()
  pass(4_999)
  keep('calm', 'other', 1)
  t.ok(isKept('long'))
  pass(1)
  keep('calm', 'last', 1)
  t.notOk(isKept('long'))
  t.end()
})

t.test(
  'what is said again leaves as fast as it is read, in order, and once however often it is asked for',
  async (t) => {
    const sent: string[] = []
    const beats: number[] = []
    const flow = createFlow(wallClock, (_to, beat) => Promise.resolve(beats.push(beat)))
    const sendText = (_to: string, _word: string, id: string, text = ''): Promise<number> => {
      sent.push(`${id} ${text.slice(1, 2)}`)
      return Promise.resolve(1)
    }
    const kept = createKeptMessages({ clock: { now: () => 0 }, log: pino({ level: 'silent' }) }, sendText, flow)
    const keep = (id: string, seq: number, word: 'said' | 'answer', chars: number): void =>
      kept.keep({ id, to: 'one', whose: ada, word, body: String(seq).repeat(chars), seq, size: chars })()
    for (const seq of [1, 2, 3]) keep('a', seq, 'said', mebibyte)
    keep('a', 4, 'said', 1)
    for (const id of ['b', 'c', 'd']) keep(id, 1, 'answer', mebibyte)
    const askForAll = () => ['a', 'b', 'c', 'd'].map((id) => kept.sayAgain(id, 'one', 0))
    t.same(askForAll(), [false, true, true, true])
    t.same(askForAll(), [false, true, true, true])
    await until('the process is asked how far it has read', () => beats.length > 0)
    await until('nothing more leaves', () => sent.length >= 4)
    t.ok(sent.length < 7, `of seven messages, ${sent.length} have left`)
    await until('the rest leaves when it has read them', () => {
      flow.alive('one', beats.at(-1))
      return sent.length === 7
    })
    t.same(
      sent.filter((each) => each.startsWith('a')),
      ['a 1', 'a 2', 'a 3', 'a 4']
    )
    t.same(sent.toSorted(), ['a 1', 'a 2', 'a 3', 'a 4', 'b 1', 'c 1', 'd 1'])
  }
)
