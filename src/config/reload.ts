// What a running gateway cannot take over from a new configuration.

import { isLoopback } from './loopback.ts'
import type { Snapshot } from './snapshot.ts'

/** Key paths of settings that count from the start of the process, and what to compare of each. */
const fixedSettings: ReadonlyArray<readonly [string, (snapshot: Snapshot) => unknown]> = [
  ['listen', ({ listen }) => JSON.stringify(listen)],
  ['store', ({ store }) => JSON.stringify(store)],
  ['publicUrl', ({ publicUrl }) => publicUrl],
  ['limits.bodyBytes', ({ limits }) => limits.bodyBytes],
  ['limits.processes', ({ limits }) => limits.processes],
  ['limits.processesPerTenant', ({ limits }) => limits.processesPerTenant]
]

/** @returns key paths of what `next` changes, but only a restart can */
export const changedFixedSettings = (current: Snapshot, next: Snapshot): string[] =>
  fixedSettings.filter(([, read]) => read(next) !== read(current)).map(([name]) => name)

/**
 * `next` was checked against the address that it names itself, but the gateway listens where it did at its start.
 * @throws Error where `next` would let callers from beyond this machine in without authentication
 */
export function refuseOpenTenants({ listen, publicUrl }: Snapshot, next: Snapshot): void {
  const open = [...next.tenants.values()].find(({ auth }) => auth.mode === 'none')
  if (open === undefined) return
  if (isLoopback(listen.host) && (publicUrl === undefined || isLoopback(new URL(publicUrl).hostname))) return
  throw new Error(
    `Tenant ${open.id} has auth: none, but this gateway can be reached from beyond this machine. Restart it with ` +
      'listen.host and publicUrl of this machine only, or give the tenant issuers or keys.'
  )
}

/** Identities of all upstream definitions. */
export const upstreamHashes = ({ tenants }: Snapshot): Set<string> =>
  new Set([...tenants.values()].flatMap(({ upstreams }) => [...upstreams.values()].map(({ hash }) => hash)))
