// Patterns of policies, endpoints and limits: only `*` means something, and no pattern or name makes a match take long.
// A matcher that goes back would not end within the time of this file.

import t from 'tap'
import { anyMatcher } from '../../src/protocol/glob.ts'
import { random } from '../fuzz/random.ts'
import { runs } from '../kit/runs.ts'

const matches = (pattern: string, text: string): boolean => anyMatcher([pattern])(text)

/** By a table of all prefixes: slow, and too simple to be wrong. */
function oracle(pattern: string, text: string): boolean {
  let row = Array.from({ length: text.length + 1 }, (_, at) => at === 0)
  for (const sign of pattern) {
    const before = row
    row = []
    for (let at = 0; at <= text.length; at++)
      row.push(
        sign === '*'
          ? before[at] === true || (at > 0 && row[at - 1] === true)
          : before[at - 1] === true && text[at - 1] === sign
      )
  }
  return row[text.length] === true
}

t.test('it matches what the rule says, for any pattern and text', async (t) => {
  const dice = random(7)
  const word = (signs: string): string =>
    Array.from({ length: dice.below(9) }, () => signs[dice.below(signs.length)] ?? '').join('')
  let matched = 0
  for (let n = 0; n < runs(20_000); n++) {
    const [pattern, text] = [word('ab**/'), word('ab/')]
    const is = matches(pattern, text)
    if (is !== oracle(pattern, text)) t.fail(`${pattern} and ${text}: ${is}`)
    if (is) matched++
  }
  t.ok(matched > 500, `${matched} matched`)
})

t.test('signs of regular expressions, of shells and of paths stand for themselves', async (t) => {
  for (const pattern of ['(a+)+$', 'a|b', '[ab]', 'a?', '.', 'a{1,2}', '!(a)', '@(a|b)', '\\', '^a$', '../a', '**/a']) {
    const literal = pattern.replaceAll('*', '')
    t.ok(matches(pattern, literal), pattern)
    t.notOk(matches(pattern, 'aaaa'), pattern)
  }
})

t.test('many stars and a long name that nearly fits are judged at once', async (t) => {
  const name = 'a'.repeat(10_000)
  for (const pattern of [
    'a*'.repeat(200),
    `${'*a'.repeat(250)}b`,
    `${'*'.repeat(500)}b`,
    `${'a*'.repeat(120)}ab*b`,
    '*'.repeat(512)
  ]) {
    const is = anyMatcher([pattern])
    for (let n = 0; n < 200; n++) is(name)
    t.equal(is(name), !pattern.includes('b'), pattern.slice(0, 20))
  }
  const thousand = anyMatcher(Array.from({ length: 1_000 }, (_, n) => `${'*a'.repeat(100)}${n}`))
  t.equal(thousand(name), false)
  t.equal(thousand(`${name}999`), true)
})
