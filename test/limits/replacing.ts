// `node replacing.ts MEMORY_BYTES`: replaces what it holds, over and over; prints the largest its heap was, in bytes.

import { memoryAccountOfProcess } from '../../src/limits/memory.ts'

memoryAccountOfProcess(Number(process.argv[2]))
const numbers = Array.from({ length: 40_000 }, (_, at) => at)
const held: unknown[] = []
let most = 0
for (let at = 0; at < 3_000; at++) {
  held[at % 200] = numbers.slice()
  if (at % 20 === 0) most = Math.max(most, process.memoryUsage().heapUsed)
}
process.stdout.write(String(most))
