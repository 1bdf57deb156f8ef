// Estimates the memory that a JSON value takes, which its text does not tell: `{},` has three characters and takes 64
// bytes once parsed.

import { isObject } from '../protocol/messages.ts'

/** Bytes: an empty object and its slot in an array in V8; other values take less beside their text. */
const perValue = 64

/**
 * An upper estimate: the text of the value, and a fixed cost for each value and each member name.
 * @param value as JSON.parse returns it, nested no deeper than the stack allows
 * @returns bytes; above `limit` any larger number, because counting stops there
 */
export function jsonSizeOf(value: unknown, limit = Infinity): number {
  let size = 0
  function add(each: unknown): void {
    size += perValue
    if (typeof each === 'string') size += Buffer.byteLength(each)
    else if (Array.isArray(each)) {
      for (const element of each) {
        if (size > limit) return
        add(element)
      }
    } else if (isObject(each)) {
      for (const name of Object.keys(each)) {
        if (size > limit) return
        add(name)
        add(each[name])
      }
    }
  }
  add(value)
  return size
}
