// What is told of a call, and what that costs of CPU time: in this process alone, without a socket, so that the figures
// hold on a busy machine. `npm run bench -- --only telling`.

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import pino from 'pino'
import { createSeries } from '../src/admin/series/series.ts'
import { createUsage } from '../src/admin/live/usage.ts'
import { createCallers } from '../src/admin/callers/callers.ts'
import { createUuids } from '../src/gateway/uuids.ts'
import { noteAnswer, noteAnswered, noteSent, tracedRequest } from '../src/observe/call-notes.ts'
import { type CallObservers, type CallRecord, observe } from '../src/observe/calls.ts'
import { alsoTo, batched, type Log } from '../src/observe/log.ts'
import { createMetrics } from '../src/observe/metrics/metrics.ts'
import { createLogExport } from '../src/observe/otlp/log-export.ts'
import { createShownCaller } from '../src/observe/pseudonyms.ts'
import { createTraces } from '../src/observe/traces/traces.ts'
import type { Request } from '../src/protocol/messages.ts'
import { steadyClock as clock } from '../src/time/clock.ts'

const calls = 4_000
const rounds = 12

const logOf = (level: string): Log => pino({ level, base: null }, batched({ write: () => true }))
const request: Request = { method: 'tools/call', params: { name: 'echo', arguments: { a: 1 } } }
const audit = { required: false, arguments: false, redact: [] }
const principal = { kind: 'token', issuer: 'https://idp.example.com', subject: 'ada', clientId: 'app' }
const call = { request, tenant: { id: 'acme', audit }, endpoint: { name: 'default' }, principal }
/** The catalog's own. */
const route = { upstream: 'up', name: 'echo' }
const definition = { tenant: 'acme', name: 'up', type: 'http' }
const requestId = createUuids()
const recordOf = (): CallRecord => ({
  address: '127.0.0.1',
  requestId: requestId(),
  bodyBytes: 120,
  revision: '2025-11-25',
  software: { name: 'host', version: '1' },
  session: 'session:abcdefghijkl'
})

/** @returns microseconds of CPU time for each call, the lowest of the rounds, by what is told */
export async function telling(): Promise<Readonly<Record<string, number>>> {
  const metrics = createMetrics({ resource: {}, version: '1', database: 'sqlite', clock, wall: Date })
  const nothing = { get: async () => undefined, set: async () => true, append: async () => {}, entries: async () => [] }
  const usage = createUsage({ store: nothing, node: 'bench', clock, wall: Date, log: logOf('silent') })
  const [series, callers] = [createSeries(Date), createCallers(Date)]
  metrics.calls.countedBy((counted) => {
    for (const { call, ended } of counted) {
      usage.meter.callEnded(call, ended)
      series.meter.callEnded(call, ended)
      callers.meter.callEnded(call)
    }
  })
  const countRequest = metrics.requestsTo(definition)
  const collector = fork(join(import.meta.dirname, 'peers/collector.ts'))
  const [origin] = (await once(collector, 'message')) as [string]
  const losses = { lost() {}, delivered() {} }
  const exported = createLogExport({ place: { url: `${origin}/v1/logs`, headers: {} }, resource: {}, losses, clock })
  const exporting = logOf('info')
  alsoTo(exporting, exported)
  const tracesOf = (samplePercent: number) =>
    createTraces({
      place: { url: `${origin}/v1/traces`, headers: {} },
      samplePercent,
      resource: {},
      version: '1',
      losses
    })
  const counted = { clock, log: logOf('info'), metrics }
  const kinds: Readonly<Record<string, CallObservers>> = {
    nothing: { clock, log: logOf('error') },
    'a line of the log': { clock, log: logOf('info') },
    'that, metrics, and what the admin API shows': counted,
    'that, under pseudonyms': { ...counted, shownCaller: createShownCaller({ pseudonyms: { key: 'x'.repeat(32) } }) },
    'that, and the log to a collector': { ...counted, log: exporting },
    'that, and traces of one call in ten': { ...counted, log: exporting, traces: tracesOf(10) },
    'that, and traces of all': { ...counted, log: exporting, traces: tracesOf(100) }
  }
  const lowest: Record<string, number> = {}
  for (let round = 0; round < rounds; round++)
    for (const [name, observers] of Object.entries(kinds)) {
      const before = process.cpuUsage()
      for (let each = 0; each < calls; each++) {
        await tell(observers, observers.metrics && countRequest)
        // As under load: some calls in each turn of the event loop.
        if (each % 32 === 31) await new Promise((resolve) => setImmediate(resolve))
      }
      const { user, system } = process.cpuUsage(before)
      lowest[name] = Math.min(lowest[name] ?? Infinity, (user + system) / calls)
    }
  await Promise.all([usage.close(), metrics.close(), exported.close()])
  collector.kill()
  return lowest
}

/** A call that takes no time, and all that is noted of one. */
async function tell(
  observers: CallObservers,
  countRequest: ReturnType<ReturnType<typeof createMetrics>['requestsTo']> | undefined
): Promise<void> {
  const record = recordOf()
  await observe({ ...call, record }, observers, async () => {
    record.route = route
    const sentAt = noteSent(record, clock)
    tracedRequest(record, request, 'up')
    noteAnswered(record, clock, sentAt)
    countRequest?.({
      revision: '2025-11-25',
      method: 'tools/call',
      name: 'echo',
      error: undefined,
      isToolError: false,
      ms: 1
    })
    noteAnswer(record, request, {}, 1)
  })
}
