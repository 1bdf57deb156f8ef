// Chance with a seed: the same seed makes the same choices. Input number n of a run has a source of its own, so that what
// it is does not depend on what came before it.

export interface Random {
  /** At least 0, less than `end`. */
  below(end: number): number
  chance(probability: number): boolean
  pick<T>(from: readonly T[]): T
}

/** mulberry32, seeded with a hash of the seed and the number. */
export function random(seed: number, n = 0): Random {
  let state = (Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(n + 1, 0xc2b2ae35)) >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  return {
    below: (end) => Math.floor(next() * end),
    chance: (probability) => next() < probability,
    pick: (from) => from[Math.floor(next() * from.length)] as (typeof from)[number]
  }
}

const strings = ['', '0', ' ', '__proto__', 'constructor', 'a\u0000b', '\ud800', '\u2028', '../..', 'x'.repeat(5_000)]
const scalars: readonly unknown[] = [null, true, false, 0, -0, -1, 1.5, 1e21, 2 ** 53, Number.MAX_VALUE, ...strings]

/** Any JSON value, of a few levels. */
export function anyValue(chance: Random, depth = 3): unknown {
  const kind = chance.below(depth === 0 ? 1 : 4)
  if (kind === 2) return Array.from({ length: chance.below(4) }, () => anyValue(chance, depth - 1))
  if (kind < 3) return chance.pick(scalars)
  const names = ['id', 'method', 'params', 'result', '_meta', 'name', 'cursor', '__proto__', 'progressToken', 'x']
  return Object.fromEntries(
    Array.from({ length: chance.below(5) }, () => [chance.pick(names), anyValue(chance, depth - 1)])
  )
}

/** The value with one of its parts, at any depth, replaced, taken away or doubled. */
export function mutated(chance: Random, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || chance.chance(0.15)) return anyValue(chance)
  if (Array.isArray(value)) {
    if (value.length === 0 || chance.chance(0.2)) return [...value, anyValue(chance), ...value]
    const at = chance.below(value.length)
    return value.map((item: unknown, index) => (index === at ? mutated(chance, item) : item))
  }
  const entries = Object.entries(value)
  const at = chance.below(entries.length + 1)
  if (at === entries.length) return { ...value, [chance.pick(strings)]: anyValue(chance) }
  if (chance.chance(0.15)) return Object.fromEntries(entries.filter((_entry, index) => index !== at))
  return Object.fromEntries(entries.map(([name, item], index) => [name, index === at ? mutated(chance, item) : item]))
}

/** JSON text that is broken as text: cut, with foreign bytes, or a flood of something short. */
export function brokenText(chance: Random, text: string, maxBytes: number): Buffer {
  const at = chance.below(text.length + 1)
  const flood = (unit: string): string => unit.repeat(Math.ceil(chance.below(maxBytes) / unit.length))
  const junk = Buffer.from(
    chance.pick([
      () => text.slice(0, at),
      () => `${text.slice(0, at)}${chance.pick(['\0', '"', '{', ',', '\ufeff', '\\u0'])}${text.slice(at)}`,
      () => text + text,
      () => `[${flood('{},')}{}]`,
      () => `{"jsonrpc":"2.0","id":1,"result":{"content":[${flood('1e999,')}1]}}`,
      () => flood('['),
      () => flood('x'),
      () => `{"a":"${flood('\\u0000')}"}`,
      () => flood('\n'),
      () => flood('z\n')
    ])()
  )
  if (junk.length > 0 && chance.chance(0.2)) junk[chance.below(junk.length)] = 0x80 + chance.below(128)
  return junk
}
