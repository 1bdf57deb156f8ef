// The commands over the admin API that are more than one request.

import { configOption, jsonOption, type CommandSpec } from '../commands/command.ts'
import { adminOptions } from './admin-client.ts'

export const fileOption = { ...configOption, text: 'a configuration, in place of a gateway' }

export const wholeCommands: readonly CommandSpec[] = [
  {
    name: 'status',
    summary:
      'the state of upstreams: transport, tools, processes, last error, stray output; exits with 1 if one is away',
    options: [{ flags: '--tenant <tenant>', text: 'of this one only' }, fileOption, jsonOption, ...adminOptions],
    text: `
With --config the upstreams of the file are started for this command and then stopped. A gateway that runs with the same
file is not asked.`,
    examples: ['gatehouse status', 'gatehouse status --tenant acme --json', 'gatehouse status --config gatehouse.yaml'],
    run: async (given, io) =>
      given.options['config'] === undefined
        ? await (await import('./status.ts')).runStatus(given, io)
        : await (await import('./own-gateway.ts')).runStatusOfFile(given, io)
  },
  {
    name: 'export',
    summary: 'the tenants that the admin API manages, as a configuration file has them',
    options: [
      { flags: '--tenant <tenant>', text: 'this one only' },
      { flags: '--references', text: 'write ${NAME} for each secret, which no gateway gives away, for use as a file' },
      ...adminOptions
    ],
    text: `
Secrets are written as { secret: true }, and "gatehouse import --into-store" leaves such secrets unchanged. With
--references they are written as variables, which the file lists at its beginning: it can then be used as a
configuration, or be imported into another store. A note tells the tenants without an issuer or a key, which a
configuration file needs.`,
    examples: ['gatehouse export > tenants.yaml', 'gatehouse export --tenant acme --references > gatehouse.yaml'],
    run: async (given, io) => await (await import('./transfer.ts')).runExport(given, io)
  }
]
