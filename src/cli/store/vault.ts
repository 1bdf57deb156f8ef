// `vault rotate`: the keys of all tenants come under the first key of the vault, and it is said which keys are needed
// no more. It opens each of them, so that what cannot be opened is known before a key is taken out.

import { loadConfig } from '../../config/load.ts'
import { countOf } from '../../config/problems.ts'
import { createLog } from '../../observe/log.ts'
import { GatewayError, tenantId } from '../../protocol/messages.ts'
import { tenantsKey } from '../../store/keys.ts'
import { openStore } from '../../store/open-store.ts'
import { steadyClock, wallClock } from '../../time/clock.ts'
import { createVaultKeys, type RotatedKeys } from '../../vault/wrapping/vault-keys.ts'
import { UsageError } from '../commands/command.ts'
import { orProblems, type Output } from '../offline.ts'

/** @returns the exit code: 1 where the key of a tenant could not be opened, or not be wrapped anew */
export async function runVaultRotate(
  { config }: Readonly<Record<string, string | undefined>>,
  { env, stdout }: { readonly env: NodeJS.ProcessEnv; readonly stdout: Output }
): Promise<number> {
  if (config === undefined) throw new UsageError('vault rotate needs --config FILE.')
  return await orProblems(config, stdout, async () => {
    const snapshot = await loadConfig(config, { env })
    const { vault, tenants } = snapshot
    if (vault === undefined) throw new UsageError(`${config} has no "vault": there are no keys to change.`)
    // What cannot be done is said below, in words for whoever typed it.
    const log = createLog('silent', 'text')
    const store = await openStore(snapshot.store, wallClock, log)
    try {
      await store.ping()
      // Of tenants that the admin API has made, too.
      const all = async () => new Set([...tenants.keys(), ...(await store.entries(tenantsKey)).map(tenantId)])
      // Keys of tenants that are there are wrapped, none is made: nobody asks for an epoch.
      const epochs = { epochOf: () => Promise.resolve(0), isCurrentEpoch: () => true }
      const keys = createVaultKeys({ store, snapshot: () => snapshot, epochs, clock: steadyClock, log })
      const result = await keys.rotate(all)
      const others = vault.keys.slice(1).map(({ id }) => id)
      stdout.write(textOfRotation(result, others))
      return result.failed.length === 0 ? 0 : 1
    } finally {
      await store.close()
    }
  })
}

function textOfRotation({ first, anew, before, failed }: RotatedKeys, others: readonly string[]): string {
  const lines = failed.map(({ tenant, error }) => `tenant ${tenant}: ${reasonOf(error)}`)
  lines.push(
    `${countOf(anew, 'tenant')} wrapped anew with the key ${first}, ${before} had it before, ${failed.length} failed`
  )
  if (failed.length > 0) lines.push('Leave all keys in the configuration, mend what is said above, and run this again.')
  else if (others.length > 0) lines.push(`Needed no more, and can be taken out: ${others.join(', ')}`)
  return `${lines.join('\n')}\n`
}

/** The cause as well: whoever runs this may know what callers may not. */
function reasonOf(error: unknown): string {
  const { message } = error as Error
  const cause = error instanceof GatewayError && error.cause instanceof Error ? ` (${error.cause.message})` : ''
  return message + cause
}
