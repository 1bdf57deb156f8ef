// What is kept for processes that missed it: one tenant does not push out what is kept for another.

import t from 'tap'
import { createKeptMessages } from '../../src/session/bus/bus-kept.ts'

const mebibyte = 1024 * 1024

function keeper() {
  let now = 0
  const said: string[] = []
  const kept = createKeptMessages({ now: () => now }, (_to, _word, id) => void said.push(id))
  return {
    said,
    pass: (ms: number): void => void (now += ms),
    leaveLater: (tenant: string, id: string, size: number): (() => void) =>
      kept.keep({ id, to: 'one', tenant, word: 'answer', body: id, seq: 1, size }),
    keep: (tenant: string, id: string, size: number): void =>
      kept.keep({ id, to: 'one', tenant, word: 'answer', body: id, seq: 1, size })(),
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
