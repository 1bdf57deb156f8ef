// Loaded into a gateway by `--import`: records which functions of src run, in the order of their first call, between
// the messages `start` and `stop` of the parent process. Each is answered with a list of `file function`.

import { AsyncLocalStorage } from 'node:async_hooks'
import { registerHooks } from 'node:module'
import { fileURLToPath } from 'node:url'
import { parseSync, Visitor } from 'oxc-parser'

const src = fileURLToPath(new URL('../../src/', import.meta.url))
const seen = new Set<string>()
let recording = false

/** What a timer does that was started before the call is none of its path. */
const background = new AsyncLocalStorage<true>()
const { setTimeout: startTimer } = globalThis

Object.assign(globalThis, {
  recordCall(site: string) {
    if (recording && background.getStore() === undefined) seen.add(site)
  },
  setTimeout(run: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) {
    if (recording) return startTimer(run, ms, ...args)
    return startTimer(() => background.run(true, () => run(...args)), ms)
  }
})

process.on('message', (message) => {
  recording = message === 'start'
  if (recording) seen.clear()
  // Also at the start, which has to be over before the call begins.
  process.send?.([...seen])
})
// The test ends the gateway by a signal: the channel alone keeps no process alive.
process.channel?.unref()

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context)
    if (!url.startsWith('file:') || !fileURLToPath(url).startsWith(src) || !url.endsWith('.ts')) return loaded
    const file = fileURLToPath(url).slice(src.length)
    return { ...loaded, source: instrumented(file, String(loaded.source)) }
  }
})

/** The same program with a call of `recordCall` at the beginning of each function. */
function instrumented(file: string, source: string): string {
  const edits: Array<readonly [offset: number, text: string]> = []
  const begin = ({
    start,
    body
  }: {
    start: number
    body: { type: string; start: number; end: number } | null
  }): void => {
    if (body === null) return
    const line = source.slice(0, start).split('\n').length
    const record = `recordCall(${JSON.stringify(`${file} ${line}`)})`
    if (body.type === 'BlockStatement') edits.push([body.start + 1, `${record};`])
    else {
      edits.push([body.start, `(${record}, (`])
      edits.push([body.end, '))'])
    }
  }
  new Visitor({
    FunctionDeclaration: begin,
    FunctionExpression: begin,
    ArrowFunctionExpression: begin
  }).visit(parseSync(file, source).program)
  // At one offset, what closes an inner function comes before what closes an outer one: a stable sort keeps their
  // order.
  const sorted = edits.map((edit, at) => ({ edit, at })).toSorted((a, b) => b.edit[0] - a.edit[0] || b.at - a.at)
  return sorted.reduce((text, { edit: [offset, added] }) => text.slice(0, offset) + added + text.slice(offset), source)
}
