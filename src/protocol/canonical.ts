// One text for one value: the order of members, which JSON gives no meaning to, is taken out.

import { isObject } from './messages.ts'

/** JSON with the members of all objects in the order of their names. @param value decoded JSON */
export function canonical (value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (!isObject(value)) return JSON.stringify(value) ?? 'null'
  return `{${Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(',')}}`
}
