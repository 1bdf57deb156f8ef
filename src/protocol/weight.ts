// What a JSON value takes up in memory. Its text does not say: `{},` is three characters, and sixty-four bytes once it is parsed.

import { isObject } from './messages.ts'

/** What V8 needs for an empty object and its place in a list, and more than it needs for any other value beside its text. */
const perValue = 64

/**
 * At least what the value takes up: its text, and a fixed cost for each value and each name of a member.
 * @param value as JSON.parse makes them, nested no deeper than the stack allows
 * @returns bytes; where they are more than `limit`, any number above it, since it is not looked at further
 */
export function weightOf (value: unknown, limit = Infinity): number {
  let weight = 0
  function add (each: unknown): void {
    weight += perValue
    if (typeof each === 'string') weight += Buffer.byteLength(each)
    else if (Array.isArray(each)) {
      for (const element of each) {
        if (weight > limit) return
        add(element)
      }
    } else if (isObject(each)) {
      for (const name of Object.keys(each)) {
        if (weight > limit) return
        add(name)
        add(each[name])
      }
    }
  }
  add(value)
  return weight
}
