// The commands that run a gateway, and those that judge what it would run on.

import { adminOptions } from '../admin/admin-client.ts'
import { listenOptions } from './listen-options.ts'
import { jsonOption, UsageError, type CommandSpec } from './command.ts'

const configOption = { flags: '--config <file>', text: 'the configuration (YAML or JSON; docs/config.md)' }

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
      ...listenOptions
    ],
    text: `
--config is watched: a changed file is applied without a restart, an invalid one is refused and the old one stays in
use. --mcp-json is served as tenant "demo", with an API key that is made once and kept in the data folder.

When ready, it prints one line on standard output: gatehouse listening on http://HOST:PORT
The log goes to standard error, as text on a terminal, else as JSON lines. GATEHOUSE_LOG_FORMAT=text or json decides.
SIGTERM, SIGINT, or the terminal closes: is not ready any more, serves on for limits.readyDelayMs, refuses new requests,
finishes running calls (limits.drainMs), stops child processes, exits with 0. A second SIGTERM or SIGINT exits at once.
SIGHUP otherwise: reads the file of --config again.`,
    examples: ['gatehouse serve --config gatehouse.yaml', 'gatehouse serve --mcp-json ~/.cursor/mcp.json --port 0'],
    async run({ options }, io) {
      const { config, 'mcp-json': mcpJson } = options
      const file = config ?? mcpJson
      if (file === undefined || (config !== undefined && mcpJson !== undefined))
        throw new UsageError('serve needs exactly one of --config FILE and --mcp-json FILE.')
      const [{ runServe }, { listenArguments }] = await Promise.all([import('../serve.ts'), import('../run.ts')])
      return await runServe({ ...io, ...listenArguments(options), file, isMcpJson: config === undefined })
    }
  },
  {
    name: 'check',
    summary: 'validate a configuration, all problems at once; with --connect, try its upstreams',
    operands: '[file]',
    options: [
      configOption,
      { flags: '--connect', text: 'start and ask the upstreams, side by side, and print what each endpoint offers' },
      { flags: '--no-env', text: 'variables that are not set are no problem: for CI, which has no secrets' }
    ],
    text: `
Prints all problems at once: file, line, key path, what is wrong, what to do. Exits with 1 if there are any.

--connect prints for each endpoint how many tools it offers, about how many tokens they take of a model's context, which
names clash or are shortened, and which upstreams, issuers and providers of auth.login cannot be reached, and why: then
it exits with 1, too. A line for each as it answers goes to standard error.

FILE may also be the file of another host, of which it says which servers can be used as they stand.`,
    examples: ['gatehouse check gatehouse.yaml', 'gatehouse check --config gatehouse.yaml --connect'],
    async run({ options, operands }, io) {
      const file = options['config'] ?? operands[0]
      if (file === undefined) throw new UsageError('check needs --config FILE.')
      const { runCheck } = await import('../check.ts')
      const [connects, withoutEnv] = [options['connect'] !== undefined, options['no-env'] !== undefined]
      return await runCheck(file, { connects, withoutEnv }, io)
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
        text: 'also tenants of the configuration file, which has them until it leaves them out'
      },
      ...adminOptions
    ],
    text: `
Without --into-store FILE is an mcp.json: the configuration goes to standard output, and what needs your attention to
standard error.

With --into-store each tenant of FILE becomes as FILE has it: what changes is planned first, told, and then applied as
planned. References such as \${NAME} stay references, and are looked up by the gateway; relative paths are those beside
FILE. What "gatehouse export" wrote changes nothing. Up to 50 tenants are changed at once, all of them or none.`,
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

export const policyCommands: readonly CommandSpec[] = [
  {
    name: 'explain',
    summary: 'why a caller may or may not see and use something, rule by rule',
    options: [
      { ...configOption, text: 'a configuration, in place of a gateway' },
      { flags: '--endpoint <endpoint>', text: '/t/TENANT/mcp, or TENANT/ENDPOINT' },
      { flags: '--tool <upstream/name>', text: "what is asked about, under the upstream's own name" },
      { flags: '--prompt <upstream/name>', text: 'instead of --tool' },
      { flags: '--resource <upstream/uri>', text: 'instead of --tool' },
      { flags: '--template <upstream/uri>', text: 'instead of --tool' },
      {
        flags: '--caller <caller>',
        text:
          '{ subject, issuer, client, scopes, groups, roles } of a token, or { key }, in YAML or JSON. Default: ' +
          'anybody. Without scopes it has those that the tenant requires, or those of its key'
      },
      { flags: '--arguments <arguments>', text: 'those of the call, for conditions' },
      { flags: '--address <ip>', text: 'of the client, for conditions that look at it' },
      { flags: '--at <time>', text: 'when it is made, such as 2026-07-28T09:00:00Z. Default: now' },
      jsonOption,
      ...adminOptions
    ],
    text: `
At a gateway, by the admin API: with tenants that the API made, and what is stopped by kill switches. With --config by a
file alone. Nothing is started.`,
    examples: [
      "gatehouse explain --endpoint acme/files --tool files/delete_page --caller '{ subject: ada }'",
      "gatehouse explain --config g.yaml --endpoint /t/acme/mcp --tool files/delete --caller '{ subject: ada }'"
    ],
    async run(given, io) {
      const { config, ...options } = given.options
      return config === undefined
        ? await (await import('../admin/explain.ts')).runExplainThere(given, io)
        : await (await import('../policy.ts')).runExplain({ ...options, config }, io)
    }
  },
  {
    name: 'policy test',
    summary: 'run the tests of a policy',
    operands: '<file>',
    text: `
The file is YAML or JSON: "config" is the path of the configuration, from the folder of the file, and "tests" a list.
Prints a line for each test, and why, where one fails; then exits with 1.

  config: gatehouse.yaml
  tests:
    - { endpoint: /t/acme/mcp, caller: { groups: [developers] }, tool: files/get_page, expect: allowed }
    - { endpoint: /t/acme/mcp, caller: { key: ci }, tool: files/pay, arguments: { amount: 5 }, expect: refused }

expect: allowed, denied (as if it did not exist), refused (by a condition), needs-scopes, depends (on arguments, which
the test does not give), not-offered (the endpoint does not have it). "at" is the time of the call, "address" that of
the client, "name" a title.`,
    examples: ['gatehouse policy test policy-tests.yaml'],
    run: async ({ operands: [file = ''] }, io) => await (await import('../policy.ts')).runPolicyTests(file, io)
  },
  {
    name: 'admin-key new',
    summary: 'make a key for the admin API',
    options: [
      { flags: '--name <name>', text: 'who holds it' },
      { flags: '--role <role>', text: 'platform-admin, tenant-admin, auditor, viewer or metrics' },
      { flags: '--tenants <tenants>', text: 'the tenants that it is for: acme,globex; needed for tenant-admin' }
    ],
    text: `
Prints the key, once, on standard output, and on standard error the lines for the configuration, which have its
SHA-256 only (docs/admin-api.md).`,
    examples: ['gatehouse admin-key new --name ops --role platform-admin > ops.key'],
    run: async ({ options }, { stdout, stderr }) =>
      (await import('../admin-key.ts')).runAdminKey(options, stdout, stderr)
  },
  {
    name: 'pseudonym',
    summary: 'what somebody is called in the log, where the configuration has pseudonyms',
    operands: '<name>',
    options: [configOption, { flags: '--tenant <id>', text: 'in which they are' }],
    text: `
NAME is the subject of their tokens, or the name of an API key. With the pseudonym requests are found in the log
("gatehouse tail LOG --user PSEUDONYM"), among live calls and in traces (enduser.id).`,
    examples: ['gatehouse pseudonym ada --config gatehouse.yaml --tenant acme'],
    run: async ({ operands: [name = ''], options }, io) =>
      await (await import('../pseudonym.ts')).runPseudonym(name, options, io)
  },
  {
    name: 'audit export',
    summary: 'write the records of the audit log to standard output, as lines of JSON',
    options: [configOption, { flags: '--tenant <id>', text: 'of this one only' }],
    text: `
Of all tenants, removed ones too. The store must be free: a Redis may be in use, a file belongs to the gateway that
runs on it (use audit.file there).`,
    examples: ['gatehouse audit export --config gatehouse.yaml --tenant acme > audit.jsonl'],
    run: async ({ options }, io) => await (await import('../store/audit.ts')).runAuditExport(options, io)
  },
  {
    name: 'audit verify',
    summary: 'find out whether an audit log was altered',
    operands: '<file>',
    options: [
      {
        flags: '--key <key>',
        text: 'the public key that must have signed, as the gateway logs it, or a file with it, or several in lines'
      },
      { flags: '--retention-days <days>', text: 'for how long files are kept, if less than records say; 0: one alone' }
    ],
    text: `
Says whether records were altered, removed, inserted or cut off, and exits with 1 if so. The file is what audit export
wrote, or that of audit.file; - is standard input.`,
    examples: [
      'gatehouse audit verify audit.jsonl',
      'gatehouse audit export --config g.yaml | gatehouse audit verify -'
    ],
    async run({ operands: [file = ''], options }, { stdin = process.stdin, stdout }) {
      return await (await import('../store/audit.ts')).runAuditVerify(file, options, { stdin, stdout })
    }
  }
]
