// Runs a gateway until a signal: the ready line, reload, drain, exit. Shared by serve and quickstart.

import { availableParallelism } from 'node:os'
import type { Snapshot } from '../config/snapshot.ts'
import { createFetch } from '../egress/fetch.ts'
import { createGateway, type Gateway } from '../gateway.ts'
import { limitCollectorThreads } from '../limits/collector-threads.ts'
import { giveBackWhenIdle } from '../limits/idle-memory.ts'
import { createLog, type Log, type LogForm } from '../observe/log.ts'
import { steadyClock } from '../time/clock.ts'
import type { WorkerProcess } from '../workers/messages.ts'
import { UsageError, type Io } from './commands/command.ts'
import { keepOutOfCrashFiles } from './crash-files.ts'
import { onSignals } from './process/signals.ts'

export interface RunOptions extends Io {
  readonly snapshot: Snapshot
  readonly log: Log
  /** The primary process gives it signals, and prints the ready line. */
  readonly worker?: WorkerProcess | undefined
  /** After the port is open and the ready line is out. */
  readonly onReady?: (
    gateway: Gateway,
    address: { readonly url: string; readonly publicUrl: string }
  ) => Promise<void> | void
  /** After the drain. */
  readonly onClosed?: () => Promise<void> | void
  readonly onHangup?: () => void
}

interface LogOptions extends Pick<Io, 'env' | 'stderr'> {
  readonly worker?: WorkerProcess
}

export const openLog = (options: LogOptions, level: string | undefined): Log =>
  createLog(options.env['GATEHOUSE_LOG_LEVEL'] ?? level ?? 'info', logForm(options), options.worker?.number)

function logForm({ env, stderr }: Pick<Io, 'env' | 'stderr'>): LogForm {
  const wanted = env['GATEHOUSE_LOG_FORMAT'] ?? (stderr.isTTY ? 'text' : 'json')
  if (wanted !== 'text' && wanted !== 'json') {
    throw new Error(
      `GATEHOUSE_LOG_FORMAT is "${wanted}". Set it to text or json, or leave it out: then the log is text on a ` +
        'terminal and JSON elsewhere.'
    )
  }
  return wanted === 'text' && stderr.isTTY && !env['NO_COLOR'] ? 'colours' : wanted
}

/** @param text of `--workers`. @returns how many. @throws UsageError */
export function workerCount(text: string | undefined): number {
  if (text === 'auto') return Math.min(availableParallelism(), maxWorkers)
  const count = Number(text ?? 1)
  if (/^\d+$/.test(text ?? '1') && count >= 1 && count <= maxWorkers) return count
  throw new UsageError(`--workers must be a number from 1 to ${maxWorkers}, or auto, not "${text}".`)
}

export type ListenArguments = ReturnType<typeof listenArguments>

/** @throws UsageError */
export function listenArguments({ host, port, data }: Readonly<Record<string, string | undefined>>) {
  const number = port === undefined ? undefined : Number(port)
  if (port !== undefined && (!/^\d{1,5}$/.test(port) || Number(port) > 65_535))
    throw new UsageError(`--port must be a number from 0 (any free port) to 65535, not "${port}".`)
  return { host, port: number, data }
}

/** Processes of one gateway on one port. */
const maxWorkers = 64
/** How long the end waits for lines of the log to be read. */
const unreadLogMs = 1_000
/** How long whoever has the port may take to say that it is a gateway: on a busy machine more than a second. */
const probeMs = 5_000

/** @returns the exit code, when the gateway has ended */
export async function runGateway({
  snapshot,
  log,
  version,
  env,
  stdout,
  worker,
  onReady,
  onClosed,
  onHangup
}: RunOptions): Promise<number> {
  const ended = Promise.withResolvers<number>()
  let gateway: Gateway | undefined
  let stopping = false

  const stop = (code: number): void => {
    if (stopping) {
      log.warn('second signal: exiting now')
      process.exit(code === 0 ? 130 : code)
    }
    stopping = true
    const { readyDelayMs, drainMs } = snapshot.limits
    log.info({ readyDelayMs, drainMs }, 'stopping: finishing calls in flight; a second signal exits at once')
    // The gateway may still be starting; it is closed as soon as it has started. A start that fails leaves nothing to
    // close.
    made
      .then(
        (late) => late.close(),
        () => {}
      )
      .then(() => onClosed?.())
      .then(
        () => ended.resolve(code),
        (err: unknown) => {
          log.error({ err }, 'the gateway did not stop cleanly')
          ended.resolve(1)
        }
      )
  }
  const onSignal = (): void => stop(0)
  // An uncaught error leaves unknown state: drain, then let the supervisor start a new process.
  const onFault = (err: unknown): void => {
    log.fatal({ err }, 'an uncaught error; draining, then exiting with code 1')
    if (!stopping) stop(1)
  }
  const onExit = (): void => gateway?.killNow()
  limitCollectorThreads()
  const limited = keepOutOfCrashFiles(log)
  const made = createGateway(snapshot, { log, version, env, worker })
  const endSignals = worker === undefined ? onSignals(onSignal, onHangup) : obeyPrimary(worker, onSignal, onHangup)
  process.on('uncaughtException', onFault).on('unhandledRejection', onFault)
  process.on('exit', onExit)

  try {
    gateway = await made
    await limited
    if (!stopping) {
      const address = await gateway.listen()
      if (worker === undefined) stdout.write(`gatehouse listening on ${address.url}\n`)
      else worker.channel.send({ kind: 'listening', url: address.url })
      const { url, publicUrl, adminUrl } = address
      const tenants = snapshot.tenants.size
      log.info({ url, publicUrl, ...(adminUrl !== undefined && { adminUrl }), tenants, version }, 'listening')
      await onReady?.(gateway, address)
    }
  } catch (error) {
    if (!stopping) {
      await gateway?.close().catch((err: unknown) => log.error({ err }, 'the gateway did not stop cleanly'))
      await onClosed?.()
      throw await friendly(error, snapshot)
    }
  }
  const idleMemory = giveBackWhenIdle(steadyClock)
  const code = await ended.promise
  idleMemory.close()
  log.info({ code }, 'stopped')
  endSignals()
  // Node would wait for whoever reads the log, if that takes for ever.
  if (process.stderr.writableLength > 0) steadyClock.timer(unreadLogMs, () => process.exit(code)).unref()
  return code
}

/**
 * Signals that a terminal or a service manager sends to all processes count once: at the primary. It is told of them,
 * since one may be for this process alone.
 */
function obeyPrimary({ channel }: WorkerProcess, stop: () => void, reload: () => void = () => {}): () => void {
  const endSignals = onSignals(
    () => channel.send({ kind: 'signalled' }),
    () => {}
  )
  channel.on('stop', stop)
  channel.on('reload', reload)
  return endSignals
}

async function friendly(error: unknown, { listen, admin }: Snapshot): Promise<unknown> {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  const isAdmin = error instanceof Error && 'port' in error && error.port !== listen.port && error.port !== 0
  const { host, port } = (isAdmin ? admin?.listen : undefined) ?? listen
  const [hostKey, portKey] = isAdmin ? ['admin.listen.host', 'admin.listen.port'] : ['listen.host or --host', '--port']
  const where = `${host.includes(':') ? `[${host}]` : host}:${port}`
  if (code === 'EADDRINUSE') {
    const owner = (await isGateway(`http://${where}`)) ? 'another gateway' : 'another program'
    return new Error(
      `${where} is in use by ${owner}. Stop it, or choose another port with ${portKey} (0 takes any free one).`,
      { cause: error }
    )
  }
  if (code === 'EACCES')
    return new Error(`No permission to listen on ${where}. Choose a port above 1023 with ${portKey}.`, { cause: error })
  if (code === 'EADDRNOTAVAIL')
    return new Error(`This machine has no address ${host}. Correct ${hostKey}.`, { cause: error })
  return error
}

/** Most often it is a quickstart in another terminal that holds the port. */
async function isGateway(url: string): Promise<boolean> {
  try {
    const answer = await createFetch({ timeoutMs: probeMs })(`${url}/health/live`)
    return (await answer.text()) === '{"status":"live"}'
  } catch {
    return false // Whatever it is, it does not answer as a gateway does.
  }
}
