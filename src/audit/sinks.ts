// The places outside of the store to which audit records go, too. What a place cannot take waits, within the limits of
// writes.ts: it stops no call, unless the tenant requires its audit log.

import type { AuditConfig } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import type { Clock } from '../time/clock.ts'
import { createFileWriter } from './file.ts'
import { createOtlpWriter } from './otlp.ts'
import { createSyslogSink } from './syslog.ts'
import type { WriteLines } from './writes.ts'

export interface Sinks {
  /** The places by their names in the log. */
  readonly places: Readonly<Record<string, WriteLines>>
  close(): void
}

export function createSinks(config: AuditConfig, clock: Clock, wall: Pick<Clock, 'now'>, log: Log): Sinks {
  const syslog = config.syslog && createSyslogSink(config.syslog, clock)
  return {
    places: {
      ...(config.file !== undefined && { file: createFileWriter(config.file) }),
      ...(syslog && { syslog: syslog.write }),
      ...(config.otlp && { otlp: createOtlpWriter(config.otlp, wall, log) })
    },
    close: () => syslog?.close()
  }
}
