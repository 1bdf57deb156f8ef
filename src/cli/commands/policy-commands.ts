// The commands about policies, keys, pseudonyms and the audit log, most of which need a configuration only.

import { adminOptions } from '../admin/admin-client.ts'
import { configOption, jsonOption, type CommandSpec } from './command.ts'

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
    options: [jsonOption],
    text: `
The file is YAML or JSON: "config" is the path of the configuration, from the folder of the file, and "tests" a list.
Prints a line for each test, and why, where one fails; then exits with 1, as it does where there are no tests at all.

  config: gatehouse.yaml
  tests:
    - { endpoint: /t/acme/mcp, caller: { groups: [developers] }, tool: files/get_page, expect: allowed }
    - { endpoint: /t/acme/mcp, caller: { key: ci }, tool: files/pay, arguments: { amount: 5 }, expect: refused }

expect: allowed, denied (as if it did not exist), refused (by a condition), needs-scopes, depends (on arguments, which
the test does not give), not-offered (the endpoint does not have it). "at" is the time of the call, "address" that of
the client, "name" a title.

FILE may be a configuration, too: then the tests that stand in its policies ("policy.tests") are run.

--json: { passed, failed, tests: [{ title, isMet, expected, outcome, sentence, rules }] }; the rules as explain --json
has them. "problem" says that there are no tests.`,
    examples: ['gatehouse policy test policy-tests.yaml', 'gatehouse policy test gatehouse.yaml --json'],
    run: async ({ operands: [file = ''], options }, io) =>
      await (await import('../policy.ts')).runPolicyTests(file, options, io)
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
    summary: 'find out whether an audit log was altered or cut off',
    operands: '<file>',
    options: [
      {
        flags: '--key <key>',
        text: 'the public key that must have signed, as the gateway logs it, or a file with it, or several in lines'
      },
      { flags: '--tenant <tenant>', text: 'ask the admin API how far the gateway knows the runs of it' },
      { flags: '--head <file>', text: 'how far they are known: what "audit heads --json" printed' },
      ...adminOptions,
      { flags: '--retention-days <days>', text: 'for how long files are kept, if less than records say; 0: one alone' },
      jsonOption
    ],
    text: `
Says whether records were altered, removed, inserted or cut off, and exits with 1 if so. The file is what audit export
wrote, or that of audit.file; - is standard input.

Whether the newest records were cut off is told by how far the gateway knows its runs: --tenant asks for it before the
file is read, --head has it from a file. What is made after an export is missing in it, too: export it anew, or give a
--head that is as old. --tenant '(gateway)' is the gateway itself.

--json: { records, chains, signatures, keys, problems, notes, isTrusted }: the first three are numbers, keys those that
records name, problems and notes sentences, at most a hundred each; isTrusted: with --key.`,
    examples: [
      'gatehouse audit verify audit.jsonl',
      'gatehouse audit heads acme --json > h.json; gatehouse audit export … | gatehouse audit verify - --head h.json',
      'gatehouse audit export --config g.yaml | gatehouse audit verify -'
    ],
    async run(given, io) {
      return await (await import('../store/verify.ts')).runAuditVerify(given, io)
    }
  }
]
