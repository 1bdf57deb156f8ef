// The log: lines on standard error, of JSON or, on a terminal, of text. Never a token, a session id, a body, a header
// or an argument; arguments and results only where a tenant wants a sample of them (samples).

import pino, { type Logger } from 'pino'
import { GatewayError, RpcError, isObject } from '../protocol/messages.ts'
import { type Clock, createDelay, steadyClock } from '../time/clock.ts'
import { fetchCall, jsonForm, putEnded } from './call-text.ts'
import type { EndedCall } from './calls.ts'
import { escapedJson, LineBytes } from './lines/line-bytes.ts'
import { type LineDestination, openStandardError } from './lines/standard-error.ts'
import { textLine } from './text-log.ts'

export type Log = Logger

/** `json`; `text` for people at a terminal; `colours` for text in colours. */
export type LogForm = 'json' | 'text' | 'colours'

/** @param worker its number, where several processes write to one log: each line has it */
export function createLog(level: string, form: LogForm, worker?: number): Log {
  const base = worker === undefined ? null : { worker }
  const settings = { level, base, formatters: { log: redacted }, serializers: { err: safeError } }
  const standardError = openStandardError()
  if (form !== 'json')
    return pino(settings, {
      write: (line: string) => standardError.write(Buffer.from(textLine(line, form === 'colours')))
    })
  const lines = batched(standardError)
  process.once('exit', () => lines.end())
  return pino(settings, lines)
}

/** A call, for whoever writes its line in a form of its own: at once, since what is known of it goes with it. */
export interface LoggedCall extends EndedCall {
  /** Milliseconds since the epoch. */
  readonly time: number
  /** Fields of the log itself, as pino keeps them. */
  readonly bindings: string
}

export interface LineTaker {
  /** @param line of JSON, with a line break */
  take(line: string): void
  /** In place of its line. */
  takeCall(call: LoggedCall): void
}

interface LineWriter {
  write(text: string): unknown
  writeCall?(call: LoggedCall, mayWait: boolean): void
  /** A line that is put together when it is written. */
  later?(call: LoggedCall): void
  flushSync?(): void
  afterWrites?(run: () => void): void
}

/** Each line that the log and its children write goes to the taker, too. @returns what ends it */
export function alsoTo(log: Log, taker: LineTaker): () => void {
  const inner = log as unknown as Record<symbol, LineWriter>
  const destination = inner[pino.symbols.streamSym]
  if (destination === undefined) return () => {}
  inner[pino.symbols.streamSym] = {
    write(text) {
      destination.write(text)
      taker.take(text)
    },
    writeCall(call, mayWait) {
      writeLine(destination, call, mayWait)
      taker.takeCall(call)
    },
    flushSync: () => destination.flushSync?.()
  }
  return () => void (inner[pino.symbols.streamSym] = destination)
}

/** Calls `run` after each write of lines: what else is told of their calls costs less while these are in the caches. */
export const afterWrites = (log: Log, run: () => void): void =>
  (log as unknown as Record<symbol, LineWriter>)[pino.symbols.streamSym]?.afterWrites?.(run)

/** A log whose lines go to a function, as they are logged. */
export function createLineLog(level: string, take: (line: Readonly<Record<string, unknown>>) => void): Log {
  const settings = { level, base: null, formatters: { log: redacted }, serializers: { err: safeError } }
  return pino(settings, { write: (line: string) => take(JSON.parse(line) as Record<string, unknown>) })
}

/** Between two writes under load, in milliseconds; and characters that do not wait so long. */
const writeEveryMs = 50
const maxHeldChars = 131_072
/** What the line of a call counts as while it is not made. */
const callLineChars = 512

/**
 * Writes many lines together: a system call costs as much as the text of some twenty lines. Where nothing was written a
 * moment ago, a line goes out with the turn of the event loop that made it.
 */
export function batched(destination: LineDestination, clock: Clock = steadyClock) {
  const delay = createDelay(clock)
  const bytes = new LineBytes()
  let lines: Array<string | LoggedCall> = []
  let chars = 0
  let isDue = false
  let writtenAt = -Infinity
  let ended = false
  const after: Array<() => void> = []
  function flushSync(): void {
    const held = lines
    lines = []
    chars = 0
    isDue = false
    delay.close()
    if (held.length === 0) return
    writtenAt = clock.now()
    for (const each of held) if (typeof each !== 'string') fetchCall(each)
    for (const each of held)
      if (typeof each === 'string') bytes.text(escapedJson(each))
      else putLine(bytes, each)
    destination.write(bytes.view())
    bytes.clear()
    for (const run of after) run()
  }
  function hold(line: string | LoggedCall, length: number): void {
    lines.push(line)
    chars += length
    if (ended || chars > maxHeldChars) return flushSync()
    if (isDue) return
    isDue = true
    if (clock.now() - writtenAt < writeEveryMs) delay.start(writeEveryMs, flushSync)
    else setImmediate(flushSync)
  }
  return {
    write: (line: string): void => hold(line, line.length),
    /** Many at once cost less than half of what each does between calls, whose code and data are others. */
    later: (call: LoggedCall): void => hold(call, callLineChars),
    /** pino calls it after a fatal line. */
    flushSync,
    afterWrites: (run: () => void): void => void after.push(run),
    /** At the exit of the process: writes what is there, and further lines one by one. */
    end(): void {
      ended = true
      flushSync()
    }
  }
}

const beforeTime = Buffer.from(`{"level":${pino.levels.values['info']},"time":`)
const afterFields = Buffer.from(',"msg":"call"}\n')

/**
 * As `log.info` with the message `call`, byte for byte, for the line of each call: pino writes field by field, which
 * costs three times as much.
 * @param mayWait what is known of the call is small: its line is made when it is written
 */
export function writeCall(log: Log, { call, ended }: EndedCall, mayWait: boolean): void {
  const inner = log as unknown as Readonly<Record<symbol, unknown>>
  const destination = inner[pino.symbols.streamSym] as LineWriter
  const bindings = inner[pino.symbols.chindingsSym] as string
  const logged = { call, ended, time: Date.now(), bindings }
  if (bindings === '' && destination.writeCall !== undefined) destination.writeCall(logged, mayWait)
  else writeLine(destination, logged, mayWait)
}

function writeLine(destination: LineWriter, call: LoggedCall, mayWait: boolean): void {
  if (mayWait && destination.later !== undefined) return destination.later(call)
  const line = new LineBytes()
  putLine(line, call)
  destination.write(line.view().toString())
}

function putLine(line: LineBytes, logged: LoggedCall): void {
  line.part(beforeTime)
  line.time(logged.time)
  if (logged.bindings !== '') line.text(logged.bindings)
  putEnded(line, logged, jsonForm)
  line.part(afterFields)
}

// Defence in depth: fields of these names are never logged, whatever a caller passes.
const secret = new Set(['authorization', 'token', 'key', 'secret', 'password'])

/**
 * @returns the line without values of these fields, in itself and in the objects right under it; the same object where
 * it has none. The wildcards of pino's own `redact` cost three times as much as the rest of a line.
 */
export function redacted(line: Readonly<Record<string, unknown>>, levels = 1): Record<string, unknown> {
  let safe: Record<string, unknown> = line
  for (const name of Object.keys(line)) {
    const value = line[name]
    const shown = secret.has(name)
      ? '[Redacted]'
      : levels > 0 && isObject(value) && !(value instanceof Error)
        ? redacted(value, levels - 1)
        : value
    if (shown === value) continue
    if (safe === line) safe = { ...line }
    safe[name] = shown
  }
  return safe
}

function safeError(error: unknown): unknown {
  const short = shortError(error)
  return isObject(short) ? redacted(short, 0) : short
}

/**
 * Errors of the gateway, upstreams and the system explain themselves; any other is a fault of ours, and needs its
 * stack.
 */
export function shortError(error: unknown): unknown {
  if (error instanceof GatewayError) {
    return {
      code: error.code,
      message: error.message,
      ...(error.cause === undefined ? {} : { cause: shortError(error.cause) })
    }
  }
  if (error instanceof RpcError) return { code: error.error.code, message: error.message.slice(0, 500) }
  if (error instanceof Error && 'code' in error) return { code: error.code, message: error.message }
  return error instanceof Error ? pino.stdSerializers.err(error) : error
}
