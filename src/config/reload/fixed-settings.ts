// Settings that count from the start of the gateway: a changed file changes them only after a restart.

import { isLoopback } from '../formats.ts'
import { isOwnMachine } from '../rules.ts'
import type { Snapshot } from '../snapshot.ts'

/** Those of a configuration, by key path. Plain data, which may go to another process as JSON. */
export type FixedSettings = ReturnType<typeof fixedSettingsOf>

export const fixedSettingsOf = ({ listen, store, publicUrl, admin, audit, egress, ...rest }: Snapshot) => ({
  listen,
  store,
  publicUrl,
  'admin.listen': admin?.listen,
  audit,
  egress,
  telemetry: rest.telemetry,
  pseudonyms: rest.pseudonyms,
  'limits.memoryBytes': rest.limits.memoryBytes,
  'limits.bodyBytes': rest.limits.bodyBytes,
  'limits.processes': rest.limits.processes,
  'limits.processesPerTenant': rest.limits.processesPerTenant,
  'limits.processBytesPerTenant': rest.limits.processBytesPerTenant
})

/** @returns key paths of what `next` changes, but only a restart can */
export function changedFixedSettings(current: Snapshot, next: Snapshot): string[] {
  const [before, after] = [fixedSettingsOf(current), fixedSettingsOf(next)]
  const keys = Object.keys(before) as Array<keyof FixedSettings>
  return keys.filter((key) => JSON.stringify(before[key]) !== JSON.stringify(after[key]))
}

/**
 * `next` for a process that starts beside others, which started with these settings.
 * @throws Error where it cannot be used with them
 */
export function withFixedSettings<Config extends Snapshot>(next: Config, fixed: FixedSettings): Config {
  const { listen, store, publicUrl, audit, egress, telemetry, pseudonyms, 'admin.listen': adminListen } = fixed
  if (adminListen !== undefined && next.admin === undefined)
    throw new Error(
      'The gateway was started with admin, and the configuration has none any more. Restart it, or put that back.'
    )
  refuseOpenTenants(fixed, next)
  const admin = adminListen && next.admin && { ...next.admin, listen: adminListen }
  const limits = {
    ...next.limits,
    memoryBytes: fixed['limits.memoryBytes'],
    bodyBytes: fixed['limits.bodyBytes'],
    processes: fixed['limits.processes'],
    processesPerTenant: fixed['limits.processesPerTenant'],
    processBytesPerTenant: fixed['limits.processBytesPerTenant']
  } as Snapshot['limits']
  return { ...next, listen, store, publicUrl, audit, egress, telemetry, pseudonyms, admin, limits }
}

/**
 * `next` was checked against the address that it names itself, but the gateway listens where it did at its start.
 * @throws Error where `next` would let callers from beyond this machine in without authentication
 */
export function refuseOpenTenants({ listen, publicUrl }: Pick<Snapshot, 'listen' | 'publicUrl'>, next: Snapshot): void {
  const open = [...next.tenants.values()].find(({ auth }) => auth.mode === 'none')
  if (open === undefined || (isLoopback(listen.host) && isOwnMachine(publicUrl))) return
  throw new Error(
    `Tenant ${open.id} has auth: none, but this gateway can be reached from beyond this machine. Restart it with ` +
      'listen.host and publicUrl of this machine only, or give the tenant issuers or keys.'
  )
}
