// What JSON values take up in memory.

import t from 'tap'
import { jsonSizeOf, jsonSizeSteps } from '../../src/limits/limits.ts'
import { finished } from '../../src/protocol/json-steps.ts'

t.test('each value costs, each name does, and so do the bytes of both', async (t) => {
  for (const value of [null, true, 1.5, {}, [], '']) t.equal(jsonSizeOf(value), 64, JSON.stringify(value))
  t.equal(jsonSizeOf('abc'), 67)
  t.equal(jsonSizeOf('€'), 67, 'bytes, not characters')
  t.equal(jsonSizeOf([1, [2]]), 4 * 64)
  t.equal(jsonSizeOf({ a: { bc: 'd' } }), 5 * 64 + 4)
  t.equal(jsonSizeOf(JSON.parse('{"__proto__":{"x":1}}')), 5 * 64 + 10)
  t.equal(jsonSizeOf(undefined), 64, 'params that are none')
})

t.test('what is heavier than anybody wants to know is not looked at further', async (t) => {
  let looked = 0
  const value = Array.from({ length: 1_000 }, () => ({
    get x() {
      return ++looked
    }
  }))
  const weight = jsonSizeOf(value, 1_000)
  t.ok(weight > 1_000 && weight < 1_300, `${weight}`)
  t.ok(looked < 10)
  t.equal(jsonSizeOf(value), 64 + 1_000 * 3 * 64 + 1_000)
})

t.test('as deep as messages of upstreams may be nested', async (t) => {
  t.equal(jsonSizeOf(JSON.parse('['.repeat(512) + ']'.repeat(512))), 512 * 64)
})

t.test('a long text takes two bytes a character where one of them is none of Latin-1', async (t) => {
  const length = 300_000
  for (const [text, bytes] of [
    ['x', 1],
    ['é', 1],
    ['語', 2]
  ] as const) {
    t.equal(finished(jsonSizeSteps(text.repeat(length))), 64 + length * bytes, text)
    const [value] = JSON.parse(JSON.stringify([text.repeat(length)])) as [string]
    t.equal(finished(jsonSizeSteps({ value })), 3 * 64 + 5 + length * bytes, `${text} that was read`)
  }
})
