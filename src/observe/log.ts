// The log: lines on standard error, of JSON or, on a terminal, of text. Never a token, a session id, a body, a header
// or an argument; arguments and results only where a tenant wants a sample of them (samples).

import pino, { type Logger } from 'pino'
import { GatewayError, RpcError, isObject } from '../protocol/messages.ts'
import { type Clock, createDelay, steadyClock } from '../time/clock.ts'
import { type FieldForm, jsonForm } from './call-text.ts'
import { openStandardError } from './standard-error.ts'
import { textLine } from './text-log.ts'

export type Log = Logger

/** `json`; `text` for people at a terminal; `colours` for text in colours. */
export type LogForm = 'json' | 'text' | 'colours'

export function createLog(level: string, form: LogForm): Log {
  const settings = { level, base: null, formatters: { log: redacted }, serializers: { err: safeError } }
  const standardError = openStandardError()
  if (form !== 'json')
    return pino(settings, { write: (line: string) => standardError.write(textLine(line, form === 'colours')) })
  const lines = batched(standardError)
  process.once('exit', () => lines.end())
  return pino(settings, lines)
}

/** A call, for whoever writes its line in a form of its own. */
export interface LoggedCall {
  /** Milliseconds since the epoch. */
  readonly time: number
  readonly traceId: string | undefined
  /** At once: what is known of the call goes with it. */
  fieldsIn(form: FieldForm): string
}

export interface LineTaker {
  /** @param line of JSON, with a line break */
  take(line: string): void
  /** In place of its line. */
  takeCall(call: LoggedCall): void
}

interface LineWriter {
  write(text: string): unknown
  writeCall?(line: string, call: LoggedCall): void
  flushSync?(): void
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
    writeCall(line, call) {
      destination.write(line)
      taker.takeCall(call)
    },
    flushSync: () => destination.flushSync?.()
  }
  return () => void (inner[pino.symbols.streamSym] = destination)
}

/** A log whose lines go to a function, as they are logged. */
export function createLineLog(level: string, take: (line: Readonly<Record<string, unknown>>) => void): Log {
  const settings = { level, base: null, formatters: { log: redacted }, serializers: { err: safeError } }
  return pino(settings, { write: (line: string) => take(JSON.parse(line) as Record<string, unknown>) })
}

/** Between two writes under load, in milliseconds; and characters that do not wait so long. */
const writeEveryMs = 50
const maxHeldChars = 65_536

/**
 * JSON with further control, format and direction characters as `\uXXXX`: servers and clients decide what some fields
 * say, and a terminal would obey them.
 */
function shown(line: string): string {
  // Which also makes one text of the pieces that a line is put together from: these would outlive many calls.
  if (Buffer.byteLength(line) === line.length) return line
  return line.replace(/[^\P{C}\n]|[\p{Zl}\p{Zp}]/gu, (each) =>
    each
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join('')
  )
}

/**
 * Writes many lines together: a system call costs as much as the text of some twenty lines. Where nothing was written a
 * moment ago, a line goes out with the turn of the event loop that made it.
 */
export function batched(destination: { write(text: string): unknown }, clock: Clock = steadyClock) {
  const delay = createDelay(clock)
  let lines = ''
  let isDue = false
  let writtenAt = -Infinity
  let ended = false
  function flushSync(): void {
    const text = lines
    lines = ''
    isDue = false
    delay.close()
    if (text === '') return
    writtenAt = clock.now()
    destination.write(text)
  }
  return {
    write(line: string): void {
      lines += shown(line)
      if (ended || lines.length > maxHeldChars) return flushSync()
      if (isDue) return
      isDue = true
      if (clock.now() - writtenAt < writeEveryMs) delay.start(writeEveryMs, flushSync)
      else setImmediate(flushSync)
    },
    /** pino calls it after a fatal line. */
    flushSync,
    /** At the exit of the process: writes what is there, and further lines one by one. */
    end(): void {
      ended = true
      flushSync()
    }
  }
}

const infoLevel = pino.levels.values['info']

/**
 * As `log.info` with the message `call`, byte for byte, for the line of each call: pino writes field by field, which
 * costs three times as much.
 * @param fieldsIn each with a comma before it; of names that are no secret
 */
export function writeCall(log: Log, traceId: string | undefined, fieldsIn: (form: FieldForm) => string): void {
  const inner = log as unknown as Readonly<Record<symbol, unknown>>
  const destination = inner[pino.symbols.streamSym] as LineWriter
  const bindings = inner[pino.symbols.chindingsSym] as string
  const time = Date.now()
  const line = `{"level":${infoLevel},"time":${time}${bindings}${fieldsIn(jsonForm)},"msg":"call"}\n`
  if (bindings === '' && destination.writeCall !== undefined) destination.writeCall(line, { time, traceId, fieldsIn })
  else destination.write(line)
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
