// The lines of the log to a collector, beside standard error: whoever logs pays for one entry of a list. Lines that
// cannot be sent are dropped and counted.

import { backoffMs, createDelay, type Clock } from '../../time/clock.ts'
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

/** Lines that wait, and characters of them. */
const maxWaitingLines = 8_192
const maxWaitingChars = 8 * 1024 * 1024
const maxLinesAtOnce = 256
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

export interface LogExportOptions {
  readonly place: LogsPlace
  /** What names this process. */
  readonly resource: Readonly<Record<string, string>>
  readonly losses: Losses
  readonly clock: Clock
}

export function createLogExport({ place, resource, losses, clock }: LogExportOptions) {
  const attributes = Object.entries(resource).map(([key, value]) => attribute(key, value))
  const delay = createDelay(clock)
  let waiting: string[] = []
  let chars = 0
  let failures = 0
  let sending: Promise<void> | undefined

  async function sendNext(): Promise<void> {
    const lines = waiting.slice(0, maxLinesAtOnce)
    try {
      const rejected = await sendLogs(place, attributes, 'gatehouse', lines.map(logRecordOf))
      losses.delivered()
      if (rejected > 0) losses.lost(rejected, new Error('the collector has refused lines of the log'))
    } catch (error) {
      if (!(error instanceof RefusedForGood)) {
        if (failures++ === 0) losses.lost(0, error)
        return
      }
      // Sent again and again, they would keep all lines after them from the collector.
      losses.lost(lines.length, error)
    }
    failures = 0
    waiting = waiting.slice(lines.length)
    chars -= lines.reduce((sum, { length }) => sum + length, 0)
  }

  /** Never rejects. One after the other, so that a slow collector has one at a time. */
  function send(): Promise<void> {
    return (sending ??= sendNext().finally(() => {
      sending = undefined
      if (waiting.length > 0) schedule()
    }))
  }

  function schedule(): void {
    if (delay.pending || sending !== undefined) return
    const retryMs = failures > 0 ? backoffMs(failures - 1, { firstMs: firstRetryMs, maxMs: maxRetryMs }) : undefined
    delay.start(retryMs ?? (waiting.length >= maxLinesAtOnce ? 0 : sendAfterMs), () => void send())
  }

  return {
    /** @param line of JSON, as it is written */
    take(line: string): void {
      if (waiting.length >= maxWaitingLines || chars + line.length > maxWaitingChars) return losses.lost(1)
      waiting.push(line)
      chars += line.length
      schedule()
    },
    /** Sends what waits. Never rejects. */
    async close(): Promise<void> {
      // What cannot be sent at once is lost.
      const isOver = (): boolean => waiting.length === 0 || failures > 0
      while (!isOver()) await send()
      delay.close()
    }
  }
}

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
