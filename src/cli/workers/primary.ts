// `serve --workers N`: the primary process. It forks the workers, has the embedded store for them, and passes signals
// on. It runs no gateway and opens no connection.

import cluster, { type Worker } from 'node:cluster'
import type { Snapshot } from '../../config/snapshot.ts'
import { memoryOfWorker } from '../../limits/process-memory.ts'
import type { Log } from '../../observe/log.ts'
import { openStore } from '../../store/open-store.ts'
import { createStoreServer } from '../../store/channel/serve-store.ts'
import { wallClock } from '../../time/clock.ts'
import { openChannel } from '../../workers/channel.ts'
import { createConnectionRelay } from '../../workers/connection-relay.ts'
import { closeWithProcess } from '../../workers/worker-end.ts'
import type { PrimaryChannel, ToPrimary, ToWorker } from '../../workers/messages.ts'
import type { Io } from '../commands/command.ts'
import { keepOutOfCrashFiles } from '../crash-files.ts'

export interface PrimaryOptions extends Pick<Io, 'stdout'> {
  readonly count: number
  readonly snapshot: Snapshot
  readonly log: Log
}

/** A worker process, from its start to its end. */
interface Running {
  readonly worker: Worker
  readonly channel: PrimaryChannel
  readonly listens: Promise<string>
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null }>
}

/** @returns the exit code, when all workers have ended. @throws Error where one cannot start */
export async function runPrimary({ count, snapshot, log, stdout }: PrimaryOptions): Promise<number> {
  const isEmbedded = snapshot.store.kind !== 'redis'
  const store = isEmbedded ? await openStore(snapshot.store, wallClock, log) : undefined
  const storeServer = store && createStoreServer(store, log)
  const connections = createConnectionRelay()
  const memoryBytes = memoryOfWorker(snapshot.limits.memoryBytes, count)
  const limited = keepOutOfCrashFiles(log)
  const running = new Map<number, Running>()
  let stopping = false

  function start(number: number): Running {
    const worker = cluster.fork()
    closeWithProcess(worker)
    const channel = openChannel<ToPrimary, ToWorker>(worker)
    storeServer?.serve(channel, number)
    connections.serve(channel)
    channel.on('hello', () => {
      channel.send({ kind: 'start', number, count, memoryBytes, lasting: store?.lasting, isSpeaker: number === 1 })
      if (stopping) channel.send({ kind: 'stop' })
    })
    const { promise: listens, resolve, reject } = Promise.withResolvers<string>()
    listens.catch(() => {})
    channel.on('listening', ({ url }) => resolve(url))
    channel.on('failed', ({ words }) => reject(new Error(words)))
    const ended = new Promise<{ code: number | null; signal: string | null }>((over) => {
      worker.once('exit', (code: number | null, signal: string | null) => {
        running.delete(number)
        const how = signal === null ? `with code ${code}` : `by ${signal}`
        reject(new Error(`Worker ${number} ended ${how} before it was ready.`))
        over({ code, signal })
      })
    })
    const one = { worker, channel, listens, ended }
    running.set(number, one)
    return one
  }

  const stop = (): void => {
    if (stopping) {
      log.warn('second signal: exiting now')
      process.exit(130)
    }
    stopping = true
    for (const { channel } of running.values()) channel.send({ kind: 'stop' })
  }
  const reload = (): void => {
    for (const { channel } of running.values()) channel.send({ kind: 'reload' })
  }
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.removeAllListeners(signal)
  process.on('SIGTERM', stop).on('SIGINT', stop).on('SIGHUP', reload)

  const first = Array.from({ length: count }, (_, at) => start(at + 1))
  const over = Promise.all(first.map(({ ended }) => ended))
  try {
    const [url] = await Promise.all(first.map(({ listens }) => listens))
    if (!stopping) stdout.write(`gatehouse listening on ${url}\n`)
  } catch (error) {
    if (!stopping) {
      for (const { worker } of running.values()) worker.process.kill('SIGKILL')
      await over
      await store?.close()
      throw error
    }
  }
  await limited
  const codes = await over
  await store?.close()
  log.info({ code: 0 }, 'stopped')
  return codes.every(({ code }) => code === 0) ? 0 : 1
}
