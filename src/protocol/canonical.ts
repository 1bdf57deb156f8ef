// One text for equal JSON values: members of objects are sorted by name (after RFC 8785).

import { isObject } from './messages.ts'

/** @param value decoded JSON; members that are undefined are left out */
export function canonicalJsonOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJsonOf).join(',')}]`
  if (!isObject(value)) return JSON.stringify(value) ?? 'null'
  return `{${Object.keys(value)
    .sort()
    .filter((name) => value[name] !== undefined)
    .map((name) => `${JSON.stringify(name)}:${canonicalJsonOf(value[name])}`)
    .join(',')}}`
}
