// The commands that run a gateway, and those that judge what it would run on.

import { adminOptions } from '../admin/admin-client.ts'
import { listenOptions } from './listen-options.ts'
import { configOption, jsonOption, UsageError, type CommandSpec } from './command.ts'

export const gatewayCommands: readonly CommandSpec[] = [
  {
    name: 'quickstart',
    summary: 'run a demo tenant with three real upstreams; no configuration needed (npm start)',
    options: listenOptions,
    text: `
The demo tenant has two upstreams over stdio (everything, memory) and one over Streamable HTTP (remote). Makes an API
key once, keeps it in the data folder, and prints what you need to connect a host.

Ctrl+C stops it, and so does closing its terminal, with everything that it started.`,
    examples: ['gatehouse quickstart', 'gatehouse quickstart --port 9000 --data /tmp/demo'],
    async run({ options }, io) {
      const [{ runQuickstart }, { listenArguments }] = await Promise.all([
        import('../quickstart.ts'),
        import('../run.ts')
      ])
      return await runQuickstart({ ...io, ...listenArguments(options) })
    }
  },
  {
    name: 'serve',
    summary: 'run the gateway on a configuration or on an existing mcp.json',
    options: [
      configOption,
      { flags: '--mcp-json <file>', text: 'an mcp.json or another file of a host that "gatehouse import" reads' },
      ...listenOptions,
      {
        flags: '--workers <number>',
        text: 'processes that share the port: a number, or auto: one for each core. Default: 1'
      }
    ],
    text: `
--workers runs so many gateways on the port, on Redis or the store in a file. Memory is divided among them; signals
are for the process that was started. SIGTERM at a worker has that one end in order, and it is replaced.

--config is watched: a changed file is applied without a restart, an invalid one is refused and the old one stays in
use. --mcp-json is served as tenant "demo", with an API key that is made once and kept in the data folder.

When ready, it prints one line on standard output: gatehouse listening on http://HOST:PORT
The log goes to standard error, as text on a terminal, else as JSON lines. GATEHOUSE_LOG_FORMAT=text or json decides.
On SIGTERM, SIGINT, or when its terminal closes, the gateway answers that it is not ready, serves for another
limits.readyDelayMs, refuses new requests, finishes running calls (limits.drainMs), stops child processes and exits with
0. A second SIGTERM or SIGINT exits at once. SIGHUP in any other case reads the file of --config again.`,
    examples: ['gatehouse serve --config gatehouse.yaml', 'gatehouse serve --mcp-json ~/.cursor/mcp.json --port 0'],
    async run({ options }, io) {
      const { config, 'mcp-json': mcpJson } = options
      const file = config ?? mcpJson
      if (file === undefined || (config !== undefined && mcpJson !== undefined))
        throw new UsageError('serve needs exactly one of --config FILE and --mcp-json FILE.')
      const [{ runServe }, { listenArguments, workerCount }] = await Promise.all([
        import('../serve.ts'),
        import('../run.ts')
      ])
      const workers = workerCount(options['workers'])
      return await runServe({ ...io, ...listenArguments(options), file, isMcpJson: config === undefined, workers })
    }
  },
  {
    name: 'check',
    summary: 'validate a configuration, all problems at once; with --connect, try its upstreams',
    operands: '[file]',
    options: [
      configOption,
      { flags: '--connect', text: 'start and ask the upstreams, side by side, and print what each endpoint offers' },
      {
        flags: '--no-env',
        text: 'accept variables that are not set, and files of ${file:PATH} that are not there: for CI'
      },
      jsonOption
    ],
    text: `
Prints all problems at once: file, line, key path, what is wrong, what to do. Exits with 1 if there are any.

--connect prints for each endpoint how many tools it offers, about how many tokens they take of a model's context, which
names are shortened or clash, and which upstreams, issuers and providers of auth.login cannot be reached, and why: then,
and where names clash, it exits with 1, too. Upstreams that are in no endpoint are named. A line for each as it answers
goes to standard error.

FILE may also be the file of another host: then it says which of its servers can be used as they are.

--json: { file, problems: [{ path, line, message, suggestion }] } of what cannot be used. Else there are also kind
(configuration, or mcp.json, whose problems have a message alone), notes (sentences), unset (variables, and files
as file:PATH, without which it was judged), upstreams (how many) and endpoints (paths); with --connect tried: { issuers:
[{ kind, issuer, isWell, said }], unused: [TENANT/UPSTREAM], endpoints: [{ path, counts, toolTokens, parts, clashes,
shortened, missing: [{ upstream, reason }] }] }. What is to be set up at identity providers is in the text only.`,
    examples: ['gatehouse check gatehouse.yaml', 'gatehouse check --config gatehouse.yaml --connect --json'],
    async run({ options, operands }, io) {
      const file = options['config'] ?? operands[0]
      if (file === undefined) throw new UsageError('check needs a FILE: a configuration, or the file of another host.')
      const { runCheck } = await import('../check.ts')
      const connects = options['connect'] !== undefined
      const withoutEnv = options['no-env'] !== undefined
      return await runCheck(file, { connects, withoutEnv, form: options['json'] === undefined ? 'text' : 'json' }, io)
    }
  },
  {
    name: 'import',
    summary: 'make a configuration from the file of another host; or put the tenants of a configuration into the store',
    operands: '<file>',
    options: [
      { flags: '--into-store', text: 'FILE is a gatehouse configuration: its tenants go to the admin API' },
      { flags: '--dry-run', text: 'say what would change, and change nothing' },
      { flags: '--prune', text: 'remove tenants of the store that FILE does not have' },
      {
        flags: '--behind-file',
        text: 'also write tenants of the configuration file; they take effect once that file leaves them out'
      },
      ...adminOptions
    ],
    text: `
Without --into-store FILE is an mcp.json: the configuration goes to standard output, and what needs your attention to
standard error.

With --into-store each tenant of FILE gets the configuration in FILE: the changes are planned, printed, and then
applied as planned. References such as \${NAME} stay references, and are looked up by the gateway; relative paths are
those beside FILE. What "gatehouse export" wrote changes nothing. Up to 50 tenants are changed at once, all or none.`,
    examples: [
      'gatehouse import ~/.cursor/mcp.json > gatehouse.yaml',
      'gatehouse import tenants.yaml --into-store --prune --dry-run'
    ],
    async run(given, io) {
      const [file = ''] = given.operands
      if (given.options['into-store'] === undefined)
        return await (await import('../offline.ts')).runImport(file, io.stdout, io.stderr)
      return await (await import('../admin/transfer.ts')).runStoreImport(file, given, io)
    }
  },
  {
    name: 'schema',
    summary: 'print the JSON Schema of the configuration, for editors and CI',
    examples: ['gatehouse schema > gatehouse.schema.json'],
    async run(_given, { stdout }) {
      const { configJsonSchema } = await import('../offline.ts')
      stdout.write(`${JSON.stringify(configJsonSchema(), null, 2)}\n`)
      return 0
    }
  },
  {
    name: 'version',
    summary: 'print the version',
    examples: ['gatehouse version'],
    run(_given, { stdout, version }) {
      stdout.write(`${version}\n`)
      return 0
    }
  }
]
