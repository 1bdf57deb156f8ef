// Freezes values deeply. Object.freeze does not protect the contents of maps and sets, so their mutators are replaced.

const refuse = (): never => {
  throw new TypeError('a snapshot of the configuration does not change')
}

function lock<T extends object>(collection: T, methods: readonly string[]): T {
  for (const method of methods) Object.defineProperty(collection, method, { value: refuse })
  return Object.freeze(collection)
}

/** Values are frozen too. */
export function frozenMap<K, V>(entries: Iterable<readonly [K, V]>): ReadonlyMap<K, V> {
  const map = new Map(entries)
  map.forEach(deepFreeze)
  return lock(map, ['set', 'delete', 'clear'])
}

export function frozenSet<T>(values: Iterable<T>): ReadonlySet<T> {
  return lock(new Set(values), ['add', 'delete', 'clear'])
}

/** Freezes plain objects and arrays all the way down; maps and sets are expected to be frozen already. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  Object.freeze(value)
  Object.values(value).forEach(deepFreeze)
  return value
}
