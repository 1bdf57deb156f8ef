// Every command, in the order of the help.

import { adminCommands } from '../admin/admin-commands.ts'
import { clientCommands } from './client-commands.ts'
import type { CommandGroup } from './command.ts'
import { completionCommands } from './completion.ts'
import { gatewayCommands } from './gateway-commands.ts'
import { policyCommands } from './policy-commands.ts'
import { vaultCommands } from './vault-commands.ts'

const groups: readonly CommandGroup[] = [
  { heading: 'Run a gateway:', commands: gatewayCommands },
  { heading: 'Use it, and find out what is wrong:', commands: clientCommands },
  { heading: 'Over the admin API (docs/admin-api.md):', commands: adminCommands },
  { heading: 'Policies, keys, the vault and the audit log:', commands: [...policyCommands, ...vaultCommands] }
]

export const commandGroups: readonly CommandGroup[] = [
  ...groups,
  { heading: 'The shell:', commands: completionCommands(groups) }
]
