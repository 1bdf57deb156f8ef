// Runs a gateway until a signal: the ready line, reload, drain, exit. Shared by serve and quickstart.

import type { Snapshot } from '../config/snapshot.ts'
import { createGateway, type Gateway } from '../gateway.ts'
import { createLog, type Log } from '../observe/log.ts'

export interface Io {
  readonly env: NodeJS.ProcessEnv
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
  readonly version: string
}

export interface RunOptions extends Io {
  readonly snapshot: Snapshot
  readonly log: Log
  /** After the port is open and the ready line is out. */
  readonly onReady?: (
    gateway: Gateway,
    address: { readonly url: string; readonly publicUrl: string }
  ) => Promise<void> | void
  /** After the drain. */
  readonly onClosed?: () => Promise<void> | void
  readonly onHangup?: () => void
}

export const openLog = ({ env, stderr }: Pick<Io, 'env' | 'stderr'>, level: string | undefined): Promise<Log> =>
  createLog(env['GATEHOUSE_LOG_LEVEL'] ?? level ?? 'info', stderr.isTTY)

/** @returns the exit code, when the gateway has ended */
export async function runGateway({
  snapshot,
  log,
  version,
  env,
  stdout,
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
    log.info('stopping: finishing calls in flight; a second signal exits at once')
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
  const onHup = (): void => onHangup?.()
  const onExit = (): void => gateway?.killNow()
  const made = createGateway(snapshot, { log, version, env })
  process.removeAllListeners('SIGTERM') // That of bin/gatehouse.mjs, for the time before this.
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal).on('SIGHUP', onHup)
  process.on('uncaughtException', onFault).on('unhandledRejection', onFault)
  process.on('exit', onExit)

  try {
    gateway = await made
    if (!stopping) {
      const address = await gateway.listen()
      stdout.write(`gatehouse listening on ${address.url}\n`)
      log.info({ url: address.url, publicUrl: address.publicUrl, tenants: snapshot.tenants.size, version }, 'listening')
      await onReady?.(gateway, address)
    }
  } catch (error) {
    if (!stopping) {
      await gateway?.close().catch((err: unknown) => log.error({ err }, 'the gateway did not stop cleanly'))
      await onClosed?.()
      throw friendly(error, snapshot)
    }
  }
  const code = await ended.promise
  log.info({ code }, 'stopped')
  process.off('SIGTERM', onSignal).off('SIGINT', onSignal).off('SIGHUP', onHup)
  return code
}

function friendly(error: unknown, { listen }: Snapshot): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  const where = `${listen.host}:${listen.port}`
  if (code === 'EADDRINUSE')
    return new Error(
      `${where} is in use by another program. Stop it, or choose another port with --port (0 takes any free one).`,
      { cause: error }
    )
  if (code === 'EACCES')
    return new Error(`No permission to listen on ${where}. Choose a port above 1023 with --port.`, { cause: error })
  if (code === 'EADDRNOTAVAIL')
    return new Error(`This machine has no address ${listen.host}. Correct listen.host or --host.`, { cause: error })
  return error
}
