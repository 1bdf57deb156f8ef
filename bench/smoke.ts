// What pure functions of the message path cost, as a multiple of what the engine alone takes for the same bytes in the
// same run, against figures that are kept beside this file: the only bench that can fail. It is made for a busy machine:
// short slices take turns, of each the fastest counts, and it fails only where none of several attempts is fast enough.
// Like is compared with like, because neighbours on a machine slow down what needs memory more than what does not.

import { readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { readRequestHead } from '../src/http/direct/request-head.ts'
import { finished } from '../src/protocol/json-steps.ts'
import { textOfMessage } from '../src/protocol/json-text.ts'
import { parseJson } from '../src/protocol/json.ts'
import { classifyMessage, responseMessage, type Result } from '../src/protocol/messages.ts'
import { shapeToolResult } from '../src/protocol/translate/revision-shape.ts'
import { rewriteToolResult } from '../src/protocol/translate/rewrite.ts'
import { SseReader } from '../src/upstream/http/sse-reader.ts'
import { decodeSteps } from '../src/upstream/rpc/decode-json.ts'
import { isBusy } from './cpu.ts'
import { table } from './figures.ts'
import { largeBytes, toolCall, toolsOf } from './messages.ts'

/** Slower than the kept figure by more than this, it fails. */
const tolerance = 1.2
const slices = 60
/** Short enough to run between two others on a busy core; long enough for the clock. */
const sliceMs = 1.5

const wasBusy = isBusy()

const { values } = parseArgs({
  options: {
    write: { type: 'boolean', default: false },
    add: { type: 'boolean', default: false },
    /** Another file of figures. */
    kept: { type: 'string', default: join(import.meta.dirname, 'smoke.json') },
    attempts: { type: 'string', default: '12' },
    /** Judges whatever else the machine does. */
    'any-load': { type: 'boolean', default: false }
  }
})
const keptFile = values.kept
const attempts = Number(values.attempts)

const bytesOf = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))
const call = Buffer.from(toolCall(7, 'json__echo'))
const line = 'Line of a large document.\n'
const text = line.repeat(Math.ceil(largeBytes / line.length))
const large = bytesOf({ jsonrpc: '2.0', id: 7, result: { content: [{ type: 'text', text }] } })
const page = bytesOf({ jsonrpc: '2.0', id: 7, result: { tools: toolsOf(40) } })
const links: Result = {
  content: Array.from({ length: 40 }, (_, at) => ({
    type: 'resource_link',
    uri: `file:///docs/${at}.md`,
    name: 'page'
  }))
}
const event = bytesOf({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 1, progress: 1 } })
const events = Buffer.from(`event: message\nid: 1\ndata: ${event.toString()}\n\n`.repeat(10))
const head = [
  'POST /t/acme/mcp HTTP/1.1',
  'Host: gateway.example',
  `Authorization: Bearer ${'x'.repeat(300)}`,
  'Content-Type: application/json',
  'Accept: application/json, text/event-stream',
  'Mcp-Session-Id: 0123456789abcdef0123456789abcdef0123456789a',
  'MCP-Protocol-Version: 2025-11-25',
  'Content-Length: 150'
].join('\r\n')

/** Each returns something of its work, so that none can be left out. */
const works: Readonly<Record<string, () => unknown>> = {
  'a small call is parsed and classified': () => classifyMessage(parseJson(call)).kind,
  'a head is read': () => readRequestHead(head)?.url,
  'a page of 40 tools is read': () => finished(decodeSteps(page)),
  'a result of 64 KiB is read and passed on': () => {
    const { result } = finished(decodeSteps(large)) as { result: Result }
    return textOfMessage(responseMessage(8, result)).length
  },
  'links of a result are rewritten': () => rewriteToolResult(links, (uri) => `up+${uri}`),
  'a result is shaped for the oldest revision': () => shapeToolResult(links, '2024-11-05'),
  'ten events are read': () => finished(new SseReader(100_000, { message() {} }).push(events))
}

/** The same bytes in the hands of the engine alone: decoded, parsed, written. */
const parsed = (bytes: Buffer): unknown => JSON.parse(bytes.toString())
const eventTexts = (): unknown =>
  events
    .toString()
    .split('\n\n')
    .map((each) => each.split('\n').at(-1)?.slice(6))
    .map((data) => (data === undefined || data === '' ? undefined : (JSON.parse(data) as unknown)))
const yardsticks: Readonly<Record<string, () => unknown>> = {
  'a small call is parsed and classified': () => parsed(call),
  'a head is read': () => new Map(head.split('\r\n').map((each) => [each.slice(0, each.indexOf(':')), each])).size,
  'a page of 40 tools is read': () => parsed(page),
  'a result of 64 KiB is read and passed on': () => JSON.stringify(parsed(large)).length,
  'links of a result are rewritten': () => JSON.stringify(links).length,
  'a result is shaped for the oldest revision': () => JSON.stringify(links).length,
  'ten events are read': eventTexts
}

/** @returns microseconds of one, as the fastest of the slices has it */
function createMeter(work: () => unknown): () => number {
  let count = 1
  const slice = (): number => {
    const startedAt = performance.now()
    for (let at = 0; at < count; at++) if (work() === undefined && count === 0) throw new Error('never')
    return performance.now() - startedAt
  }
  // Until it is compiled, and fills a slice.
  for (let warm = 0; warm < 40; warm++) {
    const ms = slice()
    count = Math.max(1, Math.min(count * 2, Math.round((count * sliceMs) / Math.max(ms, 0.001))))
  }
  return () => (slice() * 1000) / count
}

const meters = Object.entries(works).map(([name, work]) => ({
  name,
  meter: createMeter(work),
  yard: createMeter(yardsticks[name] ?? work)
}))

/** @returns of each work: how many times its yardstick it takes */
function measure(): Map<string, number> {
  return new Map(
    meters.map(({ name, meter, yard }) => {
      let [own, reference] = [Infinity, Infinity]
      for (let at = 0; at < slices; at++) {
        reference = Math.min(reference, yard())
        own = Math.min(own, meter())
      }
      return [name, own / reference]
    })
  )
}

const best = new Map<string, number>()
const keep = values.write
/** Ratios of one processor are not those of another: on another one the figures are shown, and nothing fails. */
const processor = cpus()[0]?.model ?? 'unknown'
interface Kept {
  readonly processor?: string
  readonly figures: Readonly<Record<string, number>>
}
const { processor: ofProcessor, figures: kept }: Kept = keep
  ? { figures: {} }
  : (JSON.parse(readFileSync(keptFile, 'utf8')) as Kept)
const isSlow = (name: string): boolean => (best.get(name) ?? Infinity) > (kept[name] ?? 0) * tolerance
for (let attempt = 0; attempt < attempts; attempt++) {
  for (const [name, ratio] of measure()) best.set(name, Math.min(ratio, best.get(name) ?? Infinity))
  if (!keep && !Object.keys(works).some(isSlow)) break
}
const rows = [...best].map(([name, ratio]) => [
  name,
  ratio.toFixed(3),
  kept[name]?.toFixed(3) ?? '',
  isSlow(name) && !keep ? 'slower' : ''
])
process.stdout.write(table(['x of the engine alone', 'now', 'kept', ''], rows))
if (keep) {
  // The largest of several runs: which code the engine has compiled how differs from process to process.
  const before = readFileSync(keptFile, 'utf8')
  const known: Kept['figures'] = values.add ? (JSON.parse(before) as Kept).figures : {}
  const figures = Object.fromEntries(
    [...best].map(([name, ratio]) => [name, Number(Math.max(ratio, known[name] ?? 0).toFixed(4))])
  )
  writeFileSync(keptFile, `${JSON.stringify({ processor, figures }, undefined, 2)}\n`)
} else if (ofProcessor !== processor) {
  process.stdout.write(
    `The figures of bench/smoke.json are of another processor (${ofProcessor}, not ${processor}): none is judged.\n`
  )
} else if (Object.keys(works).some(isSlow) && !values['any-load'] && wasBusy) {
  process.stdout.write('The machine had other work: none is judged.\n')
} else if (Object.keys(works).some(isSlow)) {
  process.stderr.write(
    `More than ${Math.round((tolerance - 1) * 100)} % slower than the figures of ${basename(keptFile)}. Find out why; ` +
      'where it is meant, keep the new figures with "npm run bench:smoke -- --write", and say so in the commit.\n'
  )
  process.exitCode = 1
}
