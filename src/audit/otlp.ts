// Audit records to a collector as OTLP logs over HTTP, in JSON (OpenTelemetry Protocol 1.x, "OTLP/HTTP"): a log record
// for each, whose body is the record to the letter.

import type { OtlpLogsConfig } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import { isObject } from '../protocol/messages.ts'
import { timeoutSignal } from '../time/clock.ts'
import { readRecord } from './record-fields.ts'
import type { WriteLines } from './writes.ts'

/** How long the collector may take to answer, in milliseconds. */
const maxAnswerMs = 5_000
/** Bytes of its answer that are read. */
const maxAnswerBytes = 65_536
/** SeverityNumber INFO. */
const severityNumber = 9

const attribute = (key: string, stringValue: string) => ({ key, value: { stringValue } })

function logRecordOf(line: string, nowMs: number) {
  const { time, kind, tenant } = readRecord(line)
  return {
    timeUnixNano: `${Date.parse(time)}000000`,
    observedTimeUnixNano: `${nowMs}000000`,
    severityNumber,
    severityText: 'INFO',
    eventName: `gatehouse.audit.${kind}`,
    body: { stringValue: line },
    attributes: [attribute('gatehouse.tenant', tenant)]
  }
}

export const createOtlpWriter =
  ({ url, headers }: OtlpLogsConfig, wall: { now(): number }, log: Log): WriteLines =>
  async (lines) => {
    const records = lines.split('\n').filter(Boolean)
    const logRecords = records.map((line) => logRecordOf(line, wall.now()))
    const resource = { attributes: [attribute('service.name', 'gatehouse')] }
    const body = { resourceLogs: [{ resource, scopeLogs: [{ scope: { name: 'gatehouse.audit' }, logRecords }] }] }
    const answer = await fetch(url, {
      method: 'POST',
      headers: { ...headers, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
      // Its headers are for the collector alone.
      redirect: 'error',
      signal: timeoutSignal(maxAnswerMs)
    })
    const text = await textOf(answer)
    if (!answer.ok) throw new Error(`the collector answers ${answer.status}`)
    // "Partial Success": what it refuses is not sent again.
    const rejected = rejectedOf(text)
    if (rejected > 0) log.error({ place: 'otlp', rejected }, 'the collector has refused audit records')
  }

async function textOf(answer: Response): Promise<string> {
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of answer.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true })
    if (text.length > maxAnswerBytes) break
  }
  return text
}

function rejectedOf(text: string): number {
  try {
    const answer = JSON.parse(text === '' ? '{}' : text) as unknown
    const partial = isObject(answer) ? answer['partialSuccess'] : undefined
    return isObject(partial) ? Number(partial['rejectedLogRecords'] ?? 0) : 0
  } catch {
    return 0 // It has taken them, whatever it says.
  }
}
