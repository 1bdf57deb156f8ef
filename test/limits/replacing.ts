// `node replacing.ts MEMORY_BYTES`: replaces what it holds, over and over; prints how large its heap had become, in
// bytes, at each collection of all of it.

import { memoryAccountOfProcess } from '../../src/limits/memory.ts'

memoryAccountOfProcess(Number(process.argv[2]))
const numbers = Array.from({ length: 40_000 }, (_, at) => at)
const held: unknown[] = []
const sizes: number[] = []
let before = 0
for (let at = 0; at < 4_000; at++) {
  held[at % 200] = numbers.slice()
  const now = process.memoryUsage().heapUsed
  if (now < 0.8 * before) sizes.push(before)
  before = now
}
process.stdout.write(JSON.stringify(sizes))
