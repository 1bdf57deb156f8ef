// `serve`: runs the gateway on a configuration file, which it watches, or on an mcp.json.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Configuration } from '../config/compile.ts'
import { compileConfig, loadConfig } from '../config/load.ts'
import { importMcpJson } from '../config/mcpjson.ts'
import { ConfigError } from '../config/problems.ts'
import type { Snapshot } from '../config/snapshot.ts'
import { watchConfig } from '../config/watch.ts'
import type { Gateway } from '../gateway.ts'
import type { ListenArguments } from './arguments.ts'
import { banner } from './banner.ts'
import { localApiKey } from './key.ts'
import { printProblems } from './check.ts'
import { openLog, runGateway, type Io } from './run.ts'

export interface ServeOptions extends Io, ListenArguments {
  readonly config: string | undefined
  readonly mcpJson: string | undefined
}

/** @returns the exit code: 0 after a clean stop, 1 for a configuration that cannot be used */
export async function runServe(options: ServeOptions): Promise<number> {
  const { config, mcpJson, stderr } = options
  try {
    if (config !== undefined) return await serveConfig(options, config)
    if (mcpJson !== undefined) return await serveMcpJson(options, mcpJson)
    throw new Error('serve needs --config or --mcp-json')
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    printProblems(error, config ?? mcpJson ?? '', stderr)
    return 1
  }
}

async function serveConfig(options: ServeOptions, file: string): Promise<number> {
  const { env, data, host, port } = options
  const load = (): Promise<Configuration> => loadConfig(file, { env, dataDir: data, host, port })
  const snapshot = await load()
  const log = await openLog(options, snapshot.logLevel)
  const warnOpen = (tenant: string): void =>
    log.warn({ tenant }, 'AUTHENTICATION IS OFF for this tenant: anybody on this machine can use it')
  warnOpenTenants(snapshot, warnOpen)

  const ready = Promise.withResolvers<Gateway>()
  const reload = async (): Promise<void> => {
    try {
      const running = await ready.promise
      const next = await load()
      const { needsRestart } = running.reload(next)
      warnOpenTenants(next, warnOpen)
      log.info({ file, tenants: next.tenants.size }, 'configuration taken')
      if (needsRestart.length > 0) log.warn({ keys: needsRestart }, 'these changes take effect after a restart')
    } catch (error) {
      const problems = error instanceof ConfigError ? error.problems : undefined
      log.error(
        { file, ...(problems === undefined ? { err: error } : { problems }) },
        'the changed configuration is refused; the one before stays in use'
      )
    }
  }
  // One after the other, so that the newest file wins and not the slowest read.
  let last = Promise.resolve()
  const reloadNext = (): void => {
    last = last.then(reload)
  }
  const watcher = watchConfig(file, reloadNext, { log })
  return await runGateway({
    ...options,
    snapshot,
    log,
    onReady: (gateway) => ready.resolve(gateway),
    onHangup: reloadNext,
    onClosed: () => watcher.close()
  })
}

async function serveMcpJson(options: ServeOptions, file: string): Promise<number> {
  const { env, stderr, data = './data', host, port } = options
  const { config, notes } = importMcpJson(
    await readFile(file, 'utf8').catch((cause: unknown) => {
      throw new Error(`${file} cannot be read. Give the path of an mcp.json or claude_desktop_config.json.`, { cause })
    })
  )
  const given = env['GATEHOUSE_KEY']
  const key = given ?? (await localApiKey(data))
  const snapshot = compileConfig(JSON.stringify(config), {
    path: file,
    env: { ...env, GATEHOUSE_KEY: key },
    dataDir: data,
    host,
    port
  })
  const log = await openLog(options, snapshot.logLevel)
  for (const note of notes) log.warn({ file }, note)
  return await runGateway({
    ...options,
    snapshot,
    log,
    async onReady(gateway, address) {
      // Without a terminal, standard error is the log, where a key must not appear.
      if (stderr.isTTY) stderr.write(banner({ ...address, snapshot, key }))
      else
        log.info(
          {
            endpoint: `${address.publicUrl}/t/demo/mcp`,
            apiKeyIs: given === undefined ? `in ${join(data, 'api-key')}` : 'the value of GATEHOUSE_KEY'
          },
          'ready for clients with this API key'
        )
      await gateway.warm()
    }
  })
}

function warnOpenTenants(snapshot: Snapshot, warn: (tenant: string) => void): void {
  for (const tenant of snapshot.tenants.values()) if (tenant.auth.mode === 'none') warn(tenant.id)
}
