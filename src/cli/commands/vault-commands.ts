// The commands about the vault.

import type { CommandSpec } from './command.ts'

export const vaultCommands: readonly CommandSpec[] = [
  {
    name: 'vault rotate',
    summary: 'bring the keys of all tenants under the first key of the vault',
    options: [{ flags: '--config <file>', text: 'the configuration, with the key before and the new one first' }],
    text: `
Opens the key of each tenant, wraps it with the first of vault.keys, and says which of the others are needed no more
(docs/connections.md#the-vault). Exits with 1 where one cannot be opened. It may be run again, and while gateways serve
on the same Redis; a gateway on a file does the same by itself when it reads the changed configuration.`,
    examples: ['gatehouse vault rotate --config gatehouse.yaml'],
    run: async ({ options }, io) => await (await import('../store/vault.ts')).runVaultRotate(options, io)
  }
]
