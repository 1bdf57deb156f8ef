// The lines of the log to a collector, beside standard error. Each is turned at once into the bytes that are sent, so
// that what waits holds no objects. Lines that cannot be sent are dropped and counted.

import { backoffMs, createDelay, type Clock } from '../../time/clock.ts'
import { formOf, putEnded } from '../call-text.ts'
import { LineBytes } from '../lines/line-bytes.ts'
import type { LineTaker } from '../log.ts'
import type { Losses } from './losses.ts'
import {
  attribute,
  type AnyValue,
  type KeyValue,
  type LogRecord,
  type LogsPlace,
  RefusedForGood,
  sendLogs
} from './send-logs.ts'

/** Lines that wait, and their bytes as they are sent. */
const maxWaitingLines = 8_192
const maxWaitingBytes = 16 * 1024 * 1024
const maxLinesAtOnce = 1_024
/** Lines, and bytes of them, that are kept together. */
const linesInPart = 64
const maxPartBytes = 65_536
const sendAfterMs = 1_000
const firstRetryMs = 1_000
const maxRetryMs = 30_000

/** Fields of a line under the names of the semantic conventions; every other one is `gatehouse.NAME`. */
const conventional: Readonly<Record<string, string>> = {
  method: 'mcp.method.name',
  tool: 'gen_ai.tool.name',
  revision: 'mcp.protocol.version',
  code: 'rpc.response.status_code',
  user: 'enduser.id',
  address: 'client.address',
  requestId: 'gatehouse.request_id',
  waitMs: 'gatehouse.wait_ms',
  upstreamMs: 'gatehouse.upstream_ms',
  bytesIn: 'gatehouse.bytes_in',
  bytesOut: 'gatehouse.bytes_out',
  apiKey: 'gatehouse.api_key',
  serverRequests: 'gatehouse.server_requests'
}

/** Levels of a line, as OTLP numbers and names them (Logs Data Model, SeverityNumber). */
const severities: Readonly<Record<number, readonly [number, string]>> = {
  10: [1, 'TRACE'],
  20: [5, 'DEBUG'],
  30: [9, 'INFO'],
  40: [13, 'WARN'],
  50: [17, 'ERROR'],
  60: [21, 'FATAL']
}

/** As attributes of a log record. */
const attributeForm = formOf(
  'otlp',
  (field) => `,{"key":"${conventional[field] ?? `gatehouse.${field}`}","value":`,
  (line, value) => {
    const isInteger = Number.isSafeInteger(value)
    line.text(typeof value === 'string' ? '{"stringValue":' : isInteger ? '{"intValue":"' : '{"doubleValue":')
    line.value(value)
    line.text(isInteger ? '"}}' : '}}')
  }
)

const [callSeverity, callSeverityText] = [9, 'INFO']

export interface LogExportOptions {
  readonly place: LogsPlace
  /** What names this process. */
  readonly resource: Readonly<Record<string, string>>
  readonly losses: Losses
  readonly clock: Clock
}

interface Part {
  readonly bytes: Buffer
  readonly lines: number
}

export function createLogExport({ place, resource, losses, clock }: LogExportOptions): LineTaker & {
  close(): Promise<void>
} {
  const attributes = Object.entries(resource).map(([key, value]) => attribute(key, value))
  const delay = createDelay(clock)
  let parts: Part[] = []
  /** The part that grows: log records, with commas between them. */
  const grown = new LineBytes()
  let grownLines = 0
  /** In all parts, and in the one that grows. */
  let lines = 0
  let bytes = 0
  let failures = 0
  let sending: Promise<void> | undefined

  function put(putRecord: (line: LineBytes) => void): void {
    if (lines >= maxWaitingLines || bytes + grown.length > maxWaitingBytes) return losses.lost(1)
    if (grownLines > 0) grown.text(',')
    putRecord(grown)
    lines++
    grownLines++
    if (grownLines >= linesInPart || grown.length >= maxPartBytes) pack()
    schedule()
  }

  function pack(): void {
    if (grownLines === 0) return
    const part = { bytes: grown.take(), lines: grownLines }
    parts.push(part)
    bytes += part.bytes.length
    grownLines = 0
  }

  /** @returns how many parts make a message */
  function partsAtOnce(): number {
    let count = 0
    for (let sum = 0; count < parts.length; count++) {
      sum += parts[count]?.lines ?? 0
      if (sum > maxLinesAtOnce) break
    }
    return count
  }

  async function sendNext(): Promise<void> {
    pack()
    const sent = parts.slice(0, partsAtOnce())
    const sentLines = sent.reduce((sum, part) => sum + part.lines, 0)
    try {
      const rejected = await sendLogs(place, attributes, 'gatehouse', separated(sent))
      losses.delivered()
      if (rejected > 0) losses.lost(rejected, new Error('the collector has refused lines of the log'))
    } catch (error) {
      if (!(error instanceof RefusedForGood)) {
        if (failures++ === 0) losses.lost(0, error)
        return
      }
      // Sent again and again, they would keep all lines after them from the collector.
      losses.lost(sentLines, error)
    }
    failures = 0
    parts = parts.slice(sent.length)
    lines -= sentLines
    bytes -= sent.reduce((sum, part) => sum + part.bytes.length, 0)
  }

  /** Never rejects. One after the other, so that a slow collector has one at a time. */
  function send(): Promise<void> {
    return (sending ??= sendNext().finally(() => {
      sending = undefined
      if (lines > 0) schedule()
    }))
  }

  function schedule(): void {
    if (sending !== undefined || (delay.pending && lines !== maxLinesAtOnce)) return
    const retryMs = failures > 0 ? backoffMs(failures - 1, { firstMs: firstRetryMs, maxMs: maxRetryMs }) : undefined
    delay.start(retryMs ?? (lines >= maxLinesAtOnce ? 0 : sendAfterMs), () => void send())
  }

  return {
    take: (line) => put((record) => record.text(JSON.stringify(logRecordOf(line)))),
    takeCall(logged) {
      const { time, call } = logged
      const traceId = call.record?.trace?.traceId
      const at = `"timeUnixNano":"${time}000000","observedTimeUnixNano":"${time}000000"`
      const severity = `"severityNumber":${callSeverity},"severityText":"${callSeverityText}"`
      const trace = traceId === undefined ? '' : `,"traceId":"${traceId}"`
      const what = `"eventName":"gatehouse.call","body":{"stringValue":"call"}${trace}`
      put((record) => {
        record.text(`{${at},${severity},${what},"attributes":`)
        const start = record.length
        putEnded(record, logged, attributeForm)
        // In place of the comma before the first one.
        record.put(start, '[')
        record.text(']}')
      })
    },
    /** Sends what waits. Never rejects. */
    async close(): Promise<void> {
      // What cannot be sent at once is lost.
      const isOver = (): boolean => lines === 0 || failures > 0
      while (!isOver()) await send()
      delay.close()
    }
  }
}

const comma = Buffer.from(',')
const separated = (parts: readonly Part[]): Buffer[] =>
  parts.flatMap(({ bytes }, at) => (at === 0 ? [bytes] : [comma, bytes]))

function logRecordOf(line: string): LogRecord {
  const { time, level, msg, traceId, ...fields } = JSON.parse(line) as Record<string, unknown>
  const [severityNumber, severityText] = severities[Number(level)] ?? [9, 'INFO']
  const at = `${Number(time)}000000`
  return {
    timeUnixNano: at,
    observedTimeUnixNano: at,
    severityNumber,
    severityText,
    eventName: msg === 'call' || msg === 'refused' ? `gatehouse.${msg}` : undefined,
    body: { stringValue: String(msg) },
    attributes: Object.entries(fields).map(([name, value]): KeyValue => ({
      key: conventional[name] ?? `gatehouse.${name}`,
      value: anyValueOf(value)
    })),
    traceId: typeof traceId === 'string' ? traceId : undefined
  }
}

function anyValueOf(value: unknown): AnyValue {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  if (typeof value !== 'number') return { stringValue: JSON.stringify(value) }
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value }
}
