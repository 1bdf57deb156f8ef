// The command line and its help. Every mistake is reported in one sentence, with what to write instead.

import { parseArgs } from 'node:util'

/** A mistake in the command line; the message says what to write. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

const optionsOf = {
  serve: ['config', 'mcp-json', 'host', 'port', 'data'],
  quickstart: ['host', 'port', 'data'],
  check: ['config', 'connect'],
  explain: ['config', 'endpoint', 'caller', 'tool', 'prompt', 'resource', 'template', 'arguments', 'at', 'json'],
  'policy test': [],
  'admin-key new': ['name', 'role', 'tenants'],
  'audit export': ['config', 'tenant'],
  'audit verify': ['key'],
  import: [],
  schema: [],
  version: [],
  help: []
} as const

/** Options without a value, which are '' where they are given. */
const flags: ReadonlySet<string> = new Set(['json', 'connect'])

const aliases: Readonly<Record<string, string>> = {
  '-h': 'help',
  '--help': 'help',
  '-v': 'version',
  '--version': 'version'
}

/**
 * @returns the command, its options, and the file or topic after it
 * @throws UsageError
 */
export function readArguments(argv: readonly string[]) {
  const [first = 'help', ...rest] = argv
  const isLong = isCommand(`${first} ${rest[0]}`)
  const command = isLong ? `${first} ${rest[0]}` : (aliases[first] ?? first)
  const args = isLong ? rest.slice(1) : rest
  if (!isCommand(command))
    throw new UsageError(`There is no command "${first}". Commands: ${Object.keys(optionsOf).join(', ')}.`)
  const nothing: Readonly<Record<string, string | undefined>> = {}
  if (first in aliases || argv.length === 0) return { command, options: nothing }
  if (args.includes('--help') || args.includes('-h'))
    return { command: 'help' as const, options: nothing, operand: command }
  const names = optionsOf[command]
  try {
    const { values, positionals } = parseArgs({
      args,
      options: Object.fromEntries(
        names.map((name) => [name, { type: flags.has(name) ? ('boolean' as const) : ('string' as const) }] as const)
      ),
      allowPositionals: ['import', 'check', 'help', 'policy test', 'audit verify'].includes(command)
    })
    if (command === 'help') return { command, options: nothing, operand: positionals.join(' ') || undefined }
    if (positionals.length > 1) throw new UsageError(`${command} takes one file, not ${positionals.length}.`)
    const options = Object.fromEntries(
      Object.entries(values).map(([name, value]) => [name, typeof value === 'string' ? value : ''])
    )
    return { command, options, operand: positionals[0] }
  } catch (error) {
    if (error instanceof UsageError) throw error
    const known = names.map((name) => `--${name}`).join(', ')
    throw new UsageError(`${command}: ${firstSentence(error)} Options: ${known === '' ? 'none' : known}.`)
  }
}

const isCommand = (name: string): name is keyof typeof optionsOf => Object.hasOwn(optionsOf, name)

const firstSentence = (error: unknown): string => {
  const [sentence = ''] = (error instanceof Error ? error.message : String(error)).split('. ')
  return sentence.endsWith('.') ? sentence : sentence + '.'
}

export type ListenArguments = ReturnType<typeof listenArguments>

/** @throws UsageError */
export function listenArguments({ host, port, data }: Readonly<Record<string, string | undefined>>) {
  const number = port === undefined ? undefined : Number(port)
  if (port !== undefined && (!/^\d{1,5}$/.test(port) || Number(port) > 65_535))
    throw new UsageError(`--port must be a number from 0 (any free port) to 65535, not "${port}".`)
  return { host, port: number, data }
}

const topics: Readonly<Record<string, string>> = {
  serve: `gatehouse serve --config FILE [--host H] [--port P] [--data DIR]
gatehouse serve --mcp-json FILE [--host H] [--port P] [--data DIR]

Runs the gateway. --config takes a gatehouse configuration (YAML or JSON; see docs/config.md) and watches it: a changed
file is applied without a restart, an invalid one is refused and the old one stays in use. --mcp-json takes an mcp.json
or claude_desktop_config.json and serves it as tenant "demo", with an API key that is created once and kept in the data
folder.

  --host H     listen address, instead of listen.host
  --port P     listen port, instead of listen.port; 0 picks a free one
  --data DIR   folder for the SQLite file (and the key of --mcp-json); with --config only if store is a file.
               Default: ./data

When ready, it prints one line on standard output: gatehouse listening on http://HOST:PORT
The log goes to standard error, as text on a terminal, else as JSON lines. GATEHOUSE_LOG_FORMAT=text or json decides.
SIGTERM, SIGINT, or the terminal closes: is not ready any more, serves on for limits.readyDelayMs, refuses new requests,
finishes running calls (limits.drainMs), stops child processes, exits with 0. A second SIGTERM or SIGINT exits at once.
SIGHUP otherwise: reads the file of --config again.
`,
  quickstart: `gatehouse quickstart [--host H] [--port P] [--data DIR]      (this is what "npm start" runs)

Runs the gateway with a demo tenant that has two upstreams over stdio (everything, memory) and one over Streamable HTTP
(remote). Creates an API key once, keeps it in the data folder, and prints what you need to connect a host.

  --host H     listen address. Default: 127.0.0.1
  --port P     listen port; 0 picks a free one. Default: 8080
  --data DIR   folder for the key and the SQLite file, of this gateway alone. Default: ./data

Ctrl+C stops it, and so does closing its terminal, with everything that it started.
`,
  check: `gatehouse check --config FILE [--connect]

Checks a configuration and prints all problems at once: key path, line, what is wrong, what to do. Exits with 1 if there
are any.

  --connect    starts and asks the upstreams, and prints for each endpoint how many tools it offers, about how many
               tokens they take of a model's context, which names clash or are shortened, and which upstreams cannot be
               reached, and why: then it exits with 1, too
`,
  explain: `gatehouse explain --config FILE --endpoint /t/TENANT/mcp --tool UPSTREAM/NAME [--caller CALLER]
    [--arguments ARGUMENTS] [--at TIME] [--json]

Says why a caller can or cannot see and call something, rule by rule. --prompt, --resource, --template stand for
--tool; NAME is the upstream's own name or URI. Nothing is started.

  --caller CALLER        { subject, issuer, client, scopes, groups, roles } of a token, or { key }, in YAML or JSON.
                         Default: anybody. Without scopes it has those that the tenant requires, or those of its key
  --arguments ARGUMENTS  those of the call, for conditions
  --at TIME              when it is made, such as 2026-07-28T09:00:00Z. Default: now
  --json                 as data

Example: gatehouse explain --config gatehouse.yaml --endpoint /t/acme/mcp --tool files/delete_page \\
           --caller '{ subject: ada, groups: [developers] }'
`,
  'policy test': `gatehouse policy test FILE

Runs the tests of a policy. FILE is YAML or JSON: "config" is the path of the configuration, from the folder of FILE,
and "tests" a list. Prints a line for each test, and why, where one fails; then exits with 1.

  config: gatehouse.yaml
  tests:
    - { endpoint: /t/acme/mcp, caller: { groups: [developers] }, tool: files/get_page, expect: allowed }
    - { endpoint: /t/acme/mcp, caller: { key: ci }, tool: files/pay, arguments: { amount: 5 }, expect: refused }

expect: allowed, denied (as if it did not exist), refused (by a condition), needs-scopes, depends (on arguments, which
the test does not give), not-offered (the endpoint does not have it). "at" is the time of the call, "name" a title.
`,
  'admin-key new': `gatehouse admin-key new --name NAME --role ROLE [--tenants TENANT,TENANT]

Makes a key for the admin API (docs/admin-api.md). Prints the key, once, on standard output, and on standard error the
lines for the configuration, which have its SHA-256 only.

  --name NAME     who holds it
  --role ROLE     platform-admin, tenant-admin, auditor or viewer
  --tenants T,T   the tenants that it is for; needed for tenant-admin

Example: gatehouse admin-key new --name ops --role platform-admin > ops.key
`,
  'audit export': `gatehouse audit export --config FILE [--tenant ID]

Writes the audit log of all tenants, removed ones too, or of one, to standard output, a record in each line, as JSON.
The store must be free: a Redis may be in use, a file belongs to the gateway that runs on it (use audit.file there).
`,
  'audit verify': `gatehouse audit verify FILE [--key KEY]

Says whether records of an audit log were altered, removed, inserted or cut off, and exits with 1 if so. FILE is what
audit export wrote, or the file of audit.file; - is standard input.

  --key KEY    the public key that must have signed them, as the gateway logs it at its start, or a file with it; where
               it was changed, with each of them, one in a line
`,
  import: `gatehouse import FILE

Converts an mcp.json or claude_desktop_config.json to a gatehouse configuration on standard output. What needs your
attention goes to standard error. Example: gatehouse import ~/.cursor/mcp.json > gatehouse.yaml
`,
  schema: `gatehouse schema

Prints the JSON Schema of the configuration, for editors and CI.
`,
  version: `gatehouse version

Prints the version.
`
}

/** The overview, or the page of one command. Unknown topics show the overview. */
export function help(topic: string | undefined): string {
  const page = topic === undefined ? undefined : topics[topic]
  return (
    page ??
    `Gatehouse: many MCP servers behind one authenticated endpoint.

Usage: gatehouse COMMAND [OPTIONS]        (from a clone: npm run gatehouse -- COMMAND [OPTIONS])

  quickstart    demo tenant with three real upstreams; no configuration needed (npm start)
  serve         run the gateway on a configuration or on an existing mcp.json
  check         validate a configuration, all problems at once
  explain       why a caller may or may not use something
  policy test   run the tests of a policy
  admin-key new make a key for the admin API
  audit export  write the records of the audit log
  audit verify  find out whether an audit log was altered
  import        make a configuration from an mcp.json
  schema        print the JSON Schema of the configuration
  version       print the version
  help [CMD]    this page, or the page of a command

Documentation: README.md and the folder docs.
`
  )
}
