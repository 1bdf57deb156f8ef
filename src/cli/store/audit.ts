// `audit export`: the records of the store, as lines.

import { gatewayItself } from '../../audit/audit.ts'
import { readAudit } from '../../audit/segments.ts'
import { loadConfig } from '../../config/load.ts'
import { createLog } from '../../observe/log.ts'
import { tenantId } from '../../protocol/messages.ts'
import { tenantsKey } from '../../store/keys.ts'
import { openStore } from '../../store/open-store.ts'
import { wallClock } from '../../time/clock.ts'
import { UsageError } from '../commands/command.ts'
import { orProblems } from '../offline.ts'

/** Writes the records of the store, one in a line. @throws UsageError. @returns the exit code */
export async function runAuditExport(
  { config, tenant }: Readonly<Record<string, string | undefined>>,
  { env, stdout }: { readonly env: NodeJS.ProcessEnv; readonly stdout: NodeJS.WritableStream }
): Promise<number> {
  if (config === undefined) throw new UsageError('audit export needs --config FILE.')
  return await orProblems(config, stdout, async () => {
    const snapshot = await loadConfig(config, { env })
    const tenants = [...snapshot.tenants.keys()]
    const store = await openStore(snapshot.store, wallClock, createLog('error', 'text'))
    let isEmpty = true
    try {
      await store.ping()
      // Of tenants that the admin API has made, and of removed ones, too: their records stay until their time is over.
      const known = tenant === undefined ? [...tenants, ...(await store.entries(tenantsKey)), gatewayItself] : [tenant]
      for (const id of new Set(known))
        for await (const lines of readAudit(store, id)) {
          isEmpty = false
          if (!stdout.write(lines)) await new Promise((resolve) => stdout.once('drain', resolve))
        }
    } finally {
      await store.close()
    }
    if (isEmpty && tenant !== undefined && !snapshot.tenants.has(tenantId(tenant)))
      throw new UsageError(`There is no tenant "${tenant}", and no record of one. Known: ${tenants.join(', ')}.`)
    return 0
  })
}
