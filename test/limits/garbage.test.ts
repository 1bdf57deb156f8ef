// Garbage counts for the memory of the process, too: where that may use less than its heap could grow to, it is
// collected before it is several times what is in use.

import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const script = fileURLToPath(new URL('replacing.ts', import.meta.url))

/**
 * Of a process that may use so much and holds 64 MB: the largest heap. It collects in its own thread: how far others
 * come meanwhile depends on what else the machine does.
 */
const heapOf = (memoryBytes: number): number =>
  Number(spawnSync(process.execPath, ['--single-threaded-gc', script, String(memoryBytes)]).stdout)

t.test('a process with little memory keeps less garbage than one with much', (t) => {
  const [little, much] = [heapOf(400_000_000), heapOf(1e12)]
  t.ok(little > 64_000_000, 'the control: it holds what it says')
  t.ok(little < 0.85 * much, `${little} bytes, and ${much} where nothing is bounded`)
  t.end()
})
