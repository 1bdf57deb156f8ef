// A set of what is open for a moment: calls, streams. V8's `Set` gets a new table each time its own is full of removed
// members. The old table still holds those of its time, and the next table: once one of them is old, all later ones,
// with all that their members refer to, stay until old objects are collected.

export interface OpenSet<T> extends Iterable<T> {
  /** @returns removes it; idempotent */
  add(member: T): () => void
}

export function createOpenSet<T>(): OpenSet<T> {
  const members: Array<T | undefined> = []
  const free: number[] = []
  return {
    add(member) {
      const place = free.pop() ?? members.length
      members[place] = member
      let removed = false
      return () => {
        if (removed) return
        removed = true
        members[place] = undefined
        free.push(place)
      }
    },
    [Symbol.iterator]: () => present(members)
  }
}

/** Not a function of each set: see `StepQueue` in time/turns.ts. */
function* present<T>(members: ReadonlyArray<T | undefined>): Generator<T> {
  for (const member of members) if (member !== undefined) yield member
}
