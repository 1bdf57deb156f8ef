// Audit records to a collector as OTLP logs: a log record for each, whose body is the record to the letter.

import type { OtlpLogsConfig } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import { attribute, type LogRecord, sendLogs } from '../observe/otlp/send-logs.ts'
import { readRecord } from './record-fields.ts'
import type { WriteLines } from './writes.ts'

/** SeverityNumber INFO. */
const severityNumber = 9

function logRecordOf(line: string, nowMs: number): LogRecord {
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
  (place: OtlpLogsConfig, wall: { now(): number }, log: Log): WriteLines =>
  async (lines) => {
    const records = lines.split('\n').filter(Boolean)
    const logRecords = Buffer.from(records.map((line) => JSON.stringify(logRecordOf(line, wall.now()))).join(','))
    const rejected = await sendLogs(place, [attribute('service.name', 'gatehouse')], 'gatehouse.audit', [logRecords])
    if (rejected > 0) log.error({ place: 'otlp', rejected }, 'the collector has refused audit records')
  }
