// Entries in groups, such as connections by network, of which the largest group gives one up. Each change takes the
// same time however many groups there are: whoever opens connections from thousands of networks must not make each
// further one dear.

export function createLargestGroup<T>() {
  const groups = new Map<string, Set<T>>()
  /** The keys of groups, by how many entries they have. */
  const bySize: Array<Set<string>> = [new Set()]
  /** How many entries the largest group has. */
  let largest = 0

  function move(key: string, from: number, to: number): void {
    bySize[from]?.delete(key)
    if (to > 0) (bySize[to] ??= new Set()).add(key)
    largest = Math.max(largest, to)
    // A group shrinks by one entry at a time.
    if (bySize[largest]?.size === 0) largest--
  }

  return {
    add(key: string, entry: T): void {
      const group = groups.get(key) ?? new Set()
      if (group.has(entry)) return
      groups.set(key, group.add(entry))
      move(key, group.size - 1, group.size)
    },
    delete(key: string, entry: T): void {
      const group = groups.get(key)
      if (group?.delete(entry) !== true) return
      if (group.size === 0) groups.delete(key)
      move(key, group.size + 1, group.size)
    },
    /**
     * @param asking the group that wants to add an entry: it gives up its own where no group is larger
     * @returns the entry that was added first of the largest group; undefined where there is none
     */
    toGiveUp(asking: string): T | undefined {
      if (largest === 0) return undefined
      const own = groups.get(asking)
      const [key = ''] = bySize[largest] ?? []
      const [first] = own?.size === largest ? own : (groups.get(key) ?? [])
      return first
    }
  }
}
