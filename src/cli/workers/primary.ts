// `serve --workers N`: the primary process. It forks the workers, has the embedded store for them, passes signals on,
// and replaces a worker that ends. It runs no gateway and takes no connection itself.

import cluster from 'node:cluster'
import { fstatSync } from 'node:fs'
import { fixedSettingsOf } from '../../config/reload/fixed-settings.ts'
import type { Snapshot } from '../../config/snapshot.ts'
import { cutMs } from '../../http/server.ts'
import { limitCollectorThreads } from '../../limits/collector-threads.ts'
import { memoryOfWorker } from '../../limits/process-memory.ts'
import { openStandardError } from '../../observe/lines/standard-error.ts'
import type { Log } from '../../observe/log.ts'
import { createStoreServer } from '../../store/channel/serve-store.ts'
import { openStore } from '../../store/open-store.ts'
import type { Store } from '../../store/port.ts'
import { backoffMs, patientTimer, steadyClock, wallClock } from '../../time/clock.ts'
import { createConnectionRelay } from '../../workers/connection-relay.ts'
import type { Io } from '../commands/command.ts'
import { keepOutOfCrashFiles } from '../crash-files.ts'
import { onSignals } from '../process/signals.ts'
import { createMetricsCollector } from './collect-metrics.ts'
import { forwardLines } from './forward-lines.ts'
import { howEnded, startWorker, type RunningWorker } from './running-worker.ts'

export interface PrimaryOptions extends Pick<Io, 'stdout'> {
  readonly count: number
  readonly snapshot: Snapshot
  readonly log: Log
  /** The configuration as its file says now. */
  readonly current: () => Promise<Snapshot>
  /** Whether the workers read the configuration again on SIGHUP. */
  readonly canReload: boolean
}

/** Until a worker that has ended is replaced: twice as long after each that did not last. */
const replaceDelay = { firstMs: 1_000, maxMs: 30_000 }
/** A worker that ran for so long has started well. */
const wellMs = 60_000
/** How long a worker may take to end after its last connection was closed. */
const endMs = 15_000
/** How long it may take after a second signal. */
const atOnceMs = 1_000

/** `limits.memoryBytes` is no less where one process serves; in bytes. */
const leastWorkerBytes = 268_435_456

/** @returns the exit code, when all workers have ended. @throws Error where one cannot start */
export async function runPrimary({
  count,
  snapshot,
  current,
  log,
  stdout,
  canReload
}: PrimaryOptions): Promise<number> {
  const store = snapshot.store.kind === 'redis' ? undefined : await openStore(snapshot.store, wallClock, log)
  const running = new Map<number, RunningWorker>()
  const start = prepareStarts(count, snapshot, store, running, log)
  const stopped = Promise.withResolvers<void>()
  let stopping = false
  let code = 0

  function begin(number: number, isSpeaker: boolean): RunningWorker {
    const one = start(number, isSpeaker)
    running.set(number, one)
    void one.ended.then(() => running.delete(number))
    return one
  }

  const stop = (): void => {
    stopping = true
    stopped.resolve()
    for (const each of running.values()) each.drain()
    void longestEnd(snapshot, current).then((ms) => patientTimer(steadyClock, ms, killAll))
  }
  const killAll = (): void => {
    for (const { number: worker, kill } of running.values()) {
      log.error({ worker }, 'a worker does not end; it is killed')
      kill()
    }
  }
  const onStop = (): void => {
    if (!stopping) return stop()
    log.warn('second signal: exiting now')
    code = 130
    // A worker that hears it a second time ends at once.
    for (const each of running.values()) each.stop()
    steadyClock.timer(atOnceMs, killAll).unref()
  }
  const onFault = (err: unknown): void => {
    log.fatal({ err }, 'an uncaught error; the workers drain, then all end with code 1')
    code ||= 1
    if (!stopping) stop()
  }
  const reload = (): void => {
    for (const { channel } of running.values()) channel.send({ kind: 'reload' })
  }
  const endSignals = onSignals(onStop, canReload ? reload : undefined)
  process.on('uncaughtException', onFault).on('unhandledRejection', onFault)

  /** Replaces it for as long as none are stopped. */
  async function keep(first: RunningWorker): Promise<void> {
    const { number: worker } = first
    let one: RunningWorker | undefined = first
    for (let failures = 0; ; one = beginAgain(worker)) {
      const began = steadyClock.now()
      const wasReady = await one?.listens.then(
        () => true,
        () => false
      )
      const ended = await one?.ended
      if (stopping) {
        // A terminal ends those that are still starting.
        if (wasReady === true && ended?.code !== 0) code ||= 1
        return
      }
      if (steadyClock.now() - began >= wellMs) failures = 0
      const afterMs = backoffMs(failures++, replaceDelay)
      if (ended !== undefined)
        // With 0: somebody had it end.
        log[ended.code === 0 ? 'info' : 'error'](
          { worker, ...ended, afterMs },
          `a worker ended ${howEnded(ended)}; another one takes its place`
        )
      await waitUnless(stopped.promise, afterMs)
      if (stopping) return
    }
  }

  /** @returns undefined where the system has no process for it now */
  function beginAgain(worker: number): RunningWorker | undefined {
    const notStarted = (err: unknown): void => {
      if (!stopping) log.error({ worker, err }, 'a worker could not start')
    }
    try {
      const one = begin(worker, false)
      one.listens.catch(notStarted)
      return one
    } catch (error) {
      notStarted(error)
      return undefined
    }
  }

  const limited = keepOutOfCrashFiles(log)
  const first: RunningWorker[] = []
  try {
    for (let number = 1; number <= count; number++) first.push(begin(number, number === 1))
    const [url] = await Promise.all(first.map(({ listens }) => listens))
    if (!stopping) stdout.write(`gatehouse listening on ${url}\n`)
  } catch (error) {
    if (!stopping) {
      // They serve nobody yet, and one that still waits for the port would not hear that it should stop.
      stopping = true
      for (const { kill } of running.values()) kill()
      await Promise.all(first.map(({ ended }) => ended))
      await store?.close()
      throw error
    }
  }
  await limited
  await Promise.all(first.map(keep))
  await store?.close()
  endSignals()
  log.info({ code }, 'stopped')
  return code
}

/** @returns after what time a worker that stops has surely ended, in milliseconds */
async function longestEnd({ limits }: Snapshot, current: () => Promise<Snapshot>): Promise<number> {
  // The workers have read it again.
  const next = await current().then(
    (read) => read.limits,
    () => limits
  )
  return cutMs + endMs + Math.max(...[limits, next].flatMap(({ readyDelayMs, drainMs }) => [readyDelayMs, drainMs]))
}

/** @returns what starts a worker */
function prepareStarts(
  count: number,
  snapshot: Snapshot,
  store: Store | undefined,
  running: ReadonlyMap<number, RunningWorker>,
  log: Log
) {
  limitCollectorThreads()
  const standardError = fstatSync(2)
  const isPipe = standardError.isFIFO() || standardError.isSocket()
  const lines = isPipe ? openStandardError() : undefined
  cluster.setupPrimary({ stdio: ['inherit', 'inherit', isPipe ? 'pipe' : 'inherit', 'ipc'] })
  const storeServer = store && createStoreServer(store, log)
  const metrics = createMetricsCollector(running, log)
  const connections = createConnectionRelay()
  const memoryBytes = memoryOfWorker(snapshot.limits.memoryBytes, count)
  const lasting = store?.lasting
  const fixed = fixedSettingsOf(snapshot)
  if (memoryBytes < leastWorkerBytes)
    log.warn(
      { workers: count, memoryBytes },
      'each worker has little memory: start fewer of them, or raise limits.memoryBytes'
    )
  return (number: number, isSpeaker: boolean): RunningWorker => {
    const one = startWorker({ number, count, memoryBytes, lasting, fixed, isSpeaker })
    storeServer?.serve(one.channel, number)
    metrics.serve(one)
    connections.serve(one.channel)
    if (lines === undefined || one.standardError === null) return one
    const forwarded = forwardLines(one.standardError, lines)
    return { ...one, ended: one.ended.then((how) => forwarded.then(() => how)) }
  }
}

/** Keeps the process running meanwhile: there may be no worker then. */
const waitUnless = (stopped: Promise<void>, ms: number): Promise<void> =>
  new Promise((resolve) => {
    const timer = steadyClock.timer(ms, resolve)
    void stopped.then(() => {
      timer.close()
      resolve()
    })
  })
