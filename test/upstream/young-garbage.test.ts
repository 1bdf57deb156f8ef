// What a long message leaves behind is collected with the young objects. A hidden class that V8 makes for one message
// alone is an old object, and holds all of it until the old objects are collected: many times the work, and the memory.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { finished } from '../../src/protocol/json-steps.ts'
import { SseReader } from '../../src/upstream/http/sse-reader.ts'
import { decodeSteps } from '../../src/upstream/rpc/decode-json.ts'

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as (options: { type: 'minor' | 'major' }) => void

const usedBytes = (): number => process.memoryUsage().heapUsed
const text = 'a line\n'.repeat(12_000)
const json = JSON.stringify({ jsonrpc: '2.0', id: 1, result: { content: [{ type: 'text', text }], isError: false } })
const bytes = Buffer.from(json)
const event = Buffer.from(`data: ${json}\n\n`)

const works: Readonly<Record<string, () => unknown>> = {
  'a message that is read': () => finished(decodeSteps(bytes)),
  'an event that is read': () => finished(new SseReader(1_000_000, { message() {} }).push(event))
}

/** While V8 marks old objects, what dies meanwhile stays until it is through: that is no fault, and rare. */
const maxTries = 5
const rounds = 60

/** @returns in bytes, of each round */
function leftBy(work: () => unknown): number {
  gc({ type: 'major' })
  const before = usedBytes()
  for (let round = 0; round < rounds; round++) work()
  // The first moves what it finds to where the second looks.
  gc({ type: 'minor' })
  gc({ type: 'minor' })
  return (usedBytes() - before) / rounds
}

for (const [what, work] of Object.entries(works))
  t.test(what, async (t) => {
    for (let round = 0; round < rounds; round++) work()
    let left = Infinity
    for (let tries = 0; tries < maxTries && left >= text.length / 2; tries++) left = leftBy(work)
    t.ok(left < text.length / 2, `${Math.round(left)} bytes of each are left`)
  })

t.test('what is held is seen', async (t) => {
  const before = usedBytes()
  const held = Array.from({ length: 60 }, () => finished(decodeSteps(bytes)))
  gc({ type: 'minor' })
  gc({ type: 'minor' })
  t.ok((usedBytes() - before) / held.length > text.length / 2)
})
