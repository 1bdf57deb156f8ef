// `status` and `plan` of a configuration file: the command starts a temporary gateway, which nobody else can reach,
// asks its upstreams, and stops it. The temporary gateway stores nothing, serves no endpoint and sends no telemetry.

import { hash, randomBytes } from 'node:crypto'
import { stringify } from 'yaml'
import { compileConfig, loadConfig } from '../../config/load.ts'
import { stringOrNone, treeOf, type Tree } from '../../config/shape.ts'
import { readSource } from '../../config/source.ts'
import { changedFixedSettings } from '../../config/reload/fixed-settings.ts'
import { createGateway } from '../../gateway.ts'
import { isObject, type JsonObject } from '../../protocol/messages.ts'
import type { Given, Io } from '../commands/command.ts'
import { orProblems } from '../offline.ts'
import { jsonText, visibleLines } from '../printed.ts'
import { startMs, toldAsTheyAnswer } from '../try-out.ts'
import { openAdminApi, type AdminApi } from './admin-client.ts'
import { inFile, orRefusal, textOfFile } from './run-admin.ts'
import { runStatusOf } from './status.ts'
import { batchesOf, tenantsIn } from './transfer.ts'

/** The same as of a gateway that runs. @returns the exit code: 1 where an upstream is away. @throws UsageError */
export const runStatusOfFile = async (given: Given, io: Io): Promise<number> =>
  await withGatewayOf(given, io, undefined, async (api, warm) => {
    await warm()
    return await runStatusOf(api, given, io)
  })

/**
 * Prints what a change would do to a gateway with this configuration.
 * @returns the exit code: 1 where one of the two cannot be used. @throws UsageError
 */
export async function runPlanOfFile(given: Given, io: Io): Promise<number> {
  const { config = '', json } = given.options
  const [change = ''] = given.operands
  const [before, value] = [tenantsIn(await textOfFile(config), config), readSource(await textOfFile(change)).value]
  const isWhole = Object.keys(treeOf(value)).some((name) => name !== 'tenants')
  const wanted = tenantsIn(await textOfFile(change), change)
  const removed = isWhole ? Object.keys(before).filter((id) => !Object.hasOwn(wanted, id)) : []
  const tenants = { ...Object.fromEntries(removed.map((id) => [id, null])), ...wanted }
  const settings = isWhole ? await afterRestart(config, change, io) : undefined
  if (typeof settings === 'number') return settings
  const allowedCommands = [before, wanted].flatMap(commandsIn)
  return await withGatewayOf(given, io, { tenants: {}, allowedCommands }, async (api, warm) => {
    for (const batch of batchesOf(Object.entries(before)))
      await inFile(config, api.send('POST', '/v1/apply', { tenants: batch }, '*'))
    await warm()
    const { body } = await inFile(change, api.send('POST', '/v1/plan', { tenants }))
    const { version: _ofNoGateway, ...plan } = body as JsonObject
    const told = { ...plan, ...(settings !== undefined && { afterRestart: settings }) }
    io.stdout.write(json === undefined ? visibleLines(stringify(told, { lineWidth: 0 })) : jsonText(told))
    return 0
  })
}

/** @returns the settings that a gateway takes at a restart only, or the exit code where the change cannot be used */
async function afterRestart(config: string, change: string, io: Io): Promise<readonly string[] | number> {
  let settings: readonly string[] = []
  const code = await orProblems(change, io.stdout, async () => {
    settings = changedFixedSettings(await loadConfig(config, io), await loadConfig(change, io))
    return 0
  })
  return code === 0 ? settings : code
}

const commandsIn = (tenants: Tree): string[] =>
  Object.values(tenants)
    .flatMap((tenant) => Object.values(treeOf(treeOf(tenant)['upstreams'])))
    .flatMap((upstream) => stringOrNone(treeOf(upstream)['command']) ?? [])

/**
 * @param made its tenants, which its admin API makes, and their programs; undefined: they are those of the file
 * @param act `warm` waits for the upstreams, and tells of each
 */
async function withGatewayOf(
  { options: { config = '', json } }: Given,
  io: Io,
  made: { readonly tenants: Tree; readonly allowedCommands: readonly string[] } | undefined,
  act: (api: AdminApi, warm: () => Promise<void>) => Promise<number>
): Promise<number> {
  const key = `gha_${randomBytes(32).toString('base64url')}`
  const keys = [{ name: 'command-line', role: 'platform-admin', sha256: hash('sha256', key) }]
  const run = async (): Promise<number> => {
    // Loaded first, so that faults are reported for the original file.
    await loadConfig(config, io)
    const { telemetry: _sent, ...written } = treeOf(readSource(await textOfFile(config)).value)
    const own = { listen: { host: '127.0.0.1', port: 0 }, store: 'memory:', admin: { listen: { port: 0 }, keys } }
    const audit = isObject(written['audit']) ? { audit: {} } : {}
    const tenants = made?.tenants ?? written['tenants']
    const text = JSON.stringify({ ...written, ...audit, ...own, tenants })
    const compiled = compileConfig(text, { ...io, path: config })
    const allowedCommands = made?.allowedCommands.map((command) => ({ command })) ?? []
    const snapshot = { ...compiled, admin: compiled.admin && { ...compiled.admin, allowedCommands } }
    const limits = { ...snapshot.limits, coldStartMs: startMs, readyDelayMs: 0 }
    const isOfOneTenant = Object.keys(treeOf(written['tenants'])).length === 1
    const log = toldAsTheyAnswer(isOfOneTenant, io)
    const gateway = await createGateway({ ...snapshot, limits }, { log, version: io.version, env: io.env })
    const kill = (): void => gateway.killNow()
    process.on('exit', kill)
    try {
      const admin = await gateway.listenAdmin()
      const api = await openAdminApi(
        { options: { ...(admin !== undefined && { admin }) } },
        { GATEHOUSE_ADMIN_KEY: key }
      )
      return await orRefusal(io, async () => await act(api, gateway.warm))
    } finally {
      await gateway.close()
      process.off('exit', kill)
    }
  }
  return await orProblems(config, io.stdout, run, json === undefined ? 'text' : 'json')
}
