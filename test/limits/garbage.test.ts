// Garbage counts for the memory of the process, too: where that may use less than its heap could grow to, it is
// collected before it is several times what is in use.

import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const script = fileURLToPath(new URL('replacing.ts', import.meta.url))

/**
 * Of a process that may use so much and holds 64 MB: how large its heap is when all of it is collected, by the median,
 * since a collection is late where the machine does other things.
 */
function heapOf(memoryBytes: number): number {
  const sizes = JSON.parse(String(spawnSync(process.execPath, [script, String(memoryBytes)]).stdout)) as number[]
  // The first comes at the size that the heap begins with.
  const later = sizes.slice(1).toSorted((a, b) => a - b)
  return later[Math.floor(later.length / 2)] ?? 0
}

t.test('a process with little memory keeps less garbage than one with much', (t) => {
  const [little, much] = [heapOf(400_000_000), heapOf(1e12)]
  t.ok(little > 64_000_000, 'the control: it holds what it says')
  t.ok(little < 0.75 * much, `${little} bytes, and ${much} where nothing is bounded`)
  t.end()
})
