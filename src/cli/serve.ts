// `serve`: runs the gateway on a configuration file, which it watches, or on an mcp.json.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Configuration } from '../config/compile.ts'
import { configDigest, loadConfig } from '../config/load.ts'
import { loadConfigInWorker } from '../config/load-in-worker.ts'
import { ConfigError } from '../config/problems.ts'
import { changedFixedSettings, withFixedSettings } from '../config/reload/fixed-settings.ts'
import type { Snapshot } from '../config/snapshot.ts'
import { watchConfig } from '../config/watch.ts'
import type { Gateway } from '../gateway.ts'
import { steadyClock, type Timer } from '../time/clock.ts'
import { banner, localApiKey, localVaultKey } from './key.ts'
import { compileMcpJson } from './mcp-json.ts'
import { orProblems } from './offline.ts'
import { isFaultOfGateway } from '../upstream/stdio/start-error.ts'
import type { Io } from './commands/command.ts'
import { type ListenArguments, openLog, runGateway } from './run.ts'
import type { WorkerProcess } from '../workers/messages.ts'

export interface ServeOptions extends Io, ListenArguments {
  readonly file: string
  readonly isMcpJson: boolean
  /** How many processes serve; 1: this one. */
  readonly workers: number
  readonly worker?: WorkerProcess
}

/** Until a configuration is read again for which there was no descriptor, or no thread. In milliseconds. */
const retryMs = 1_000

/** @returns the exit code: 0 after a clean stop, 1 for a configuration that cannot be used */
export function runServe(options: ServeOptions): Promise<number> {
  const { file, stderr, workers } = options
  return orProblems(file, stderr, async () => {
    if (workers === 1) return await serveAlone(options)
    const { serveWithWorkers } = await import('./workers/serve-with-workers.ts')
    return await serveWithWorkers(options)
  })
}

export const serveAlone = (options: ServeOptions): Promise<number> =>
  options.isMcpJson ? serveMcpJson(options) : serveConfig(options)

/** The configuration that these options name. @throws ConfigError */
export async function readServed(options: ServeOptions): Promise<Configuration> {
  const { file, env, data, host, port } = options
  if (options.isMcpJson) return (await readMcpJson(options)).snapshot
  return await loadConfig(file, { env, dataDir: data, host, port })
}

async function serveConfig(options: ServeOptions): Promise<number> {
  const { file, env, data, host, port, worker } = options
  const given = { env, dataDir: data, host, port }
  const read = await loadConfig(file, given)
  const snapshot = fixedFor(worker, read)
  const log = openLog(options, snapshot.logLevel)
  const warnOpenTenants = ({ tenants }: Snapshot): void => {
    for (const { id, auth } of tenants.values())
      if (auth.mode === 'none')
        log.warn({ tenant: id }, 'AUTHENTICATION IS OFF for this tenant: anybody on this machine can use it')
  }
  const warnNeedsRestart = (keys: readonly string[]): void => {
    if (keys.length > 0) log.warn({ keys }, 'these changes take effect after a restart')
  }
  warnOpenTenants(snapshot)
  warnNeedsRestart(changedFixedSettings(snapshot, read))

  const ready = Promise.withResolvers<Gateway>()
  let again: Timer | undefined
  let isPutOff = false
  let digest = configDigest(read)
  const refuse = (error: unknown): void => {
    isPutOff = false
    log.error(
      { file, ...(error instanceof ConfigError ? { problems: error.problems } : { err: error }) },
      'the changed configuration is refused; the one before stays in use'
    )
  }
  /** The file would not be read again before its next change. */
  const putOff = (err: unknown): void => {
    if (isPutOff) log.debug({ file, err }, 'the changed configuration still cannot be read')
    else log.warn({ file, err }, 'the changed configuration cannot be read now; it is tried again')
    isPutOff = true
    again = steadyClock.timer(retryMs, reloadNext)
    again.unref()
  }
  const reload = async (): Promise<void> => {
    isDue = false
    again?.close()
    const running = await ready.promise
    try {
      const next = await loadConfigInWorker(file, given)
      const { needsRestart } = running.reload(next)
      isPutOff = false
      if (configDigest(next) === digest) return log.info({ file }, 'configuration read again: it is the one in use')
      digest = configDigest(next)
      warnOpenTenants(next)
      log.info({ file, tenants: next.tenants.size }, 'configuration taken')
      warnNeedsRestart(needsRestart)
    } catch (error) {
      if (isPassing(error)) putOff(error)
      else refuse(error)
    }
  }
  // One after the other, so that the newest file wins and not the slowest read.
  let last = Promise.resolve()
  let isDue = false
  const reloadNext = (): void => {
    if (!isDue) last = last.then(reload)
    isDue = true
  }
  const watcher = watchConfig(file, reloadNext, log)
  return await runGateway({
    ...options,
    snapshot,
    log,
    onReady: (gateway) => ready.resolve(gateway),
    onHangup: reloadNext,
    onClosed() {
      watcher.close()
      again?.close()
    }
  })
}

/** A worker may start long after the others. @throws Error where it cannot serve beside them */
const fixedFor = <Config extends Snapshot>(worker: WorkerProcess | undefined, read: Config): Config =>
  worker === undefined ? read : withFixedSettings(read, worker.fixed)

/** Whether the gateway had no descriptor or no thread at that moment: the file is not to blame. */
const isPassing = (error: unknown): boolean =>
  isFaultOfGateway(error) || (error as { readonly code?: unknown }).code === 'ERR_WORKER_INIT_FAILED'

async function readMcpJson({ file, env, data = './data', host, port }: ServeOptions) {
  const text = await readFile(file, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    const why = cause.code === 'ENOENT' ? 'there is no such file' : `it cannot be read (${cause.code})`
    throw new Error(`${file}: ${why}. Give the path of an mcp.json or claude_desktop_config.json.`, { cause })
  })
  const given = env['GATEHOUSE_KEY']
  const key = given ?? (await localApiKey(data))
  const { importMcpJson } = await import('../config/hosts/mcpjson.ts')
  const imported = importMcpJson(text, file, process.cwd())
  const vaultKey = 'vault' in imported.config ? (env['GATEHOUSE_VAULT_KEY'] ?? (await localVaultKey(data))) : undefined
  const compiled = compileMcpJson(imported, {
    path: file,
    env: { ...env, GATEHOUSE_KEY: key, ...(vaultKey !== undefined && { GATEHOUSE_VAULT_KEY: vaultKey }) },
    dataDir: data,
    host,
    port
  })
  return { ...compiled, key, keyIs: given === undefined ? `in ${join(data, 'api-key')}` : 'the value of GATEHOUSE_KEY' }
}

async function serveMcpJson(options: ServeOptions): Promise<number> {
  const { file, stderr, worker } = options
  const { snapshot: read, notes, leftOut, key, keyIs } = await readMcpJson(options)
  const snapshot = fixedFor(worker, read)
  const log = openLog(options, snapshot.logLevel)
  const isSpeaker = worker?.isSpeaker ?? true
  if (isSpeaker) for (const line of leftOut) log.warn(line)
  if (isSpeaker) for (const note of notes) log.warn({ file }, note)
  return await runGateway({
    ...options,
    snapshot,
    log,
    async onReady(gateway, address) {
      const endpoint = `${address.publicUrl}/t/demo/mcp`
      // Without a terminal, standard error is the log, where a key must not appear.
      if (isSpeaker && stderr.isTTY) stderr.write(banner(address.publicUrl, snapshot, key))
      else if (isSpeaker) log.info({ endpoint, apiKeyIs: keyIs }, 'ready for clients with this API key')
      await gateway.warm()
    }
  })
}
