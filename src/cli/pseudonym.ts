// `pseudonym`: what somebody is called in the log of a gateway whose configuration has pseudonyms.

import { loadConfig } from '../config/load.ts'
import { shownName } from '../observe/pseudonyms.ts'
import { tenantId } from '../protocol/messages.ts'
import { UsageError } from './commands/command.ts'
import { orProblems, type Output } from './offline.ts'

/** @returns the exit code */
export async function runPseudonym(
  name: string,
  { config, tenant }: Readonly<Record<string, string | undefined>>,
  { env, stdout, stderr }: { readonly env: NodeJS.ProcessEnv; readonly stdout: Output; readonly stderr: Output }
): Promise<number> {
  if (config === undefined || tenant === undefined)
    throw new UsageError('pseudonym needs --config FILE and --tenant ID.')
  return await orProblems(config, stderr, async () => {
    const snapshot = await loadConfig(config, { env })
    if (snapshot.pseudonyms === undefined)
      throw new Error(`${config} has no "pseudonyms": people are in the log by their names.`)
    if (!snapshot.tenants.has(tenantId(tenant)))
      stderr.write(`${config} has no tenant "${tenant}": this is right if the admin API made it.\n`)
    stdout.write(`${shownName(snapshot, tenant, name)}\n`)
    return 0
  })
}
