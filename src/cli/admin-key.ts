// `admin-key new`: a key for the admin API, which is shown once, and what the configuration needs of it.

import { hash, randomBytes } from 'node:crypto'
import { stringify } from 'yaml'
import { adminRoles } from '../config/schema/admin.ts'
import { UsageError } from './commands/command.ts'
import type { Output } from './offline.ts'

const namePattern = /^[A-Za-z0-9][A-Za-z0-9_.@-]{0,62}$/

/** The key goes to `stdout`, so that it can go to a file unseen. @returns the exit code. @throws UsageError */
export function runAdminKey(
  { name, role, tenants }: Readonly<Record<string, string | undefined>>,
  stdout: Output,
  stderr: Output
): number {
  if (name === undefined || !namePattern.test(name))
    throw new UsageError('admin-key new needs --name NAME, of letters, digits, "_", ".", "@" and "-".')
  if (role === undefined || !adminRoles.some((each) => each === role))
    throw new UsageError(`admin-key new needs --role ROLE, one of ${adminRoles.join(', ')}.`)
  const named = tenants?.split(',').filter((each) => each !== '')
  if (role === 'tenant-admin' && (named === undefined || named.length === 0))
    throw new UsageError('A tenant-admin needs --tenants, the tenants that it may change: --tenants acme,globex.')
  if ((role === 'platform-admin' || role === 'metrics') && named !== undefined)
    throw new UsageError(`The role ${role} is for all tenants: leave --tenants out.`)
  const key = `gha_${randomBytes(32).toString('base64url')}`
  const entry = { name, sha256: hash('sha256', key), role, ...(named !== undefined && { tenants: named }) }
  stdout.write(`${key}\n`)
  stderr.write(
    `This is the only time that the key is shown. Put this into the configuration:\n\n` +
      stringify({ admin: { keys: [entry] } }, { lineWidth: 0 })
  )
  return 0
}
