// The commands over the admin API. Each but `status` and `export` is a row of a table.

import { jsonOption, UsageError, type CommandSpec } from '../commands/command.ts'
import { adminOptions } from './admin-client.ts'
import { changeRows, grantRows, type AdminRow } from './change-rows.ts'
import { fileOption, wholeCommands } from './whole-commands.ts'

const file = 'FILE is YAML or JSON, as the API takes it (docs/admin-api.md); - is standard input.'
const replaced =
  'It replaces what is there. If somebody else changes it at the same time, one of the two changes is refused.'
const tenantColumns = ['id', 'managedBy', 'authentication', 'upstreams', 'endpoints', 'policyRules', 'version']
const upstreamColumns = ['name', 'type', 'state', 'target', 'isolation', 'connections', 'calls', 'lastError']
const endpointColumns = ['name', 'path', 'upstreams', 'maxTools', 'policyRules', 'managedBy']

const deletion = (what: string, summary: string, operands: string, path: string, example: string): AdminRow => ({
  name: `${what} delete`,
  summary,
  operands,
  method: 'DELETE',
  path,
  done: 'removed',
  example: `${what} delete ${example}`
})

const part = (what: string, plural: string, columns: readonly string[]): readonly AdminRow[] => [
  {
    name: `${what} list`,
    summary: `the ${plural} of a tenant`,
    operands: '<tenant>',
    method: 'GET',
    path: `/v1/tenants/{0}/${plural}*`,
    columns,
    ...(plural === 'upstreams' || plural === 'endpoints' ? { ofFile: plural } : {}),
    example: `${what} list acme`
  },
  {
    name: `${what} get`,
    summary: `one ${what} of a tenant`,
    operands: '<tenant> <name>',
    method: 'GET',
    path: `/v1/tenants/{0}/${plural}/{1}`,
    ...(what === 'upstream' || what === 'endpoint' ? { ofFile: what } : {}),
    example: `${what} get acme files`
  },
  {
    name: `${what} put`,
    summary: `make or replace one ${what} of a tenant`,
    operands: '<tenant> <name> <file>',
    method: 'PUT',
    path: `/v1/tenants/{0}/${plural}/{1}`,
    body: 'file',
    text: `${file} ${replaced}`,
    example: `${what} put acme files ${what}.yaml`
  },
  deletion(what, `remove one ${what} of a tenant`, '<tenant> <name>', `/v1/tenants/{0}/${plural}/{1}`, 'acme files')
]

const adminRows: readonly AdminRow[] = [
  {
    name: 'tenant list',
    summary: 'all tenants',
    method: 'GET',
    path: '/v1/tenants*',
    columns: tenantColumns,
    ofFile: 'tenants',
    example: 'tenant list'
  },
  {
    name: 'tenant get',
    summary: 'one tenant, with its configuration',
    operands: '<tenant>',
    method: 'GET',
    path: '/v1/tenants/{0}',
    ofFile: 'tenant',
    example: 'tenant get acme'
  },
  {
    name: 'tenant put',
    summary: 'make or replace a tenant',
    operands: '<tenant> <file>',
    method: 'PUT',
    path: '/v1/tenants/{0}',
    body: 'file',
    text: `${file} ${replaced}`,
    example: 'tenant put acme acme.yaml'
  },
  deletion('tenant', 'remove a tenant', '<tenant>', '/v1/tenants/{0}', 'acme'),
  ...part('upstream', 'upstreams', upstreamColumns),
  {
    name: 'upstream discover',
    summary: 'look at the MCP server at a URL as an upstream, and add nothing',
    operands: '<tenant> <name> <file>',
    method: 'POST',
    path: '/v1/tenants/{0}/upstreams/{1}/discover',
    body: 'file',
    text: `${file} Tells each hop, which login it wants, and what it lists.`,
    example: 'upstream discover acme files upstream.yaml'
  },
  {
    name: 'upstream stderr',
    summary: 'the last lines that the processes of an upstream wrote to standard error, secrets masked',
    operands: '<tenant> <name>',
    method: 'GET',
    path: '/v1/tenants/{0}/upstreams/{1}/stderr*',
    columns: ['at', 'text'],
    text: 'At the process that answers; also once they have ended.',
    example: 'upstream stderr acme files'
  },
  ...part('endpoint', 'endpoints', endpointColumns),
  ...part('issuer', 'issuers', ['issuer', 'jwksUri', 'requireTyp', 'audiences', 'managedBy']),
  ...part('limit', 'limits', ['name', 'per', 'perSecond', 'perMinute', 'perDay', 'perMonth', 'concurrent']),
  {
    name: 'problems',
    summary: 'what is wrong now, the worst first, at the process that answers',
    method: 'GET',
    path: '/v1/problems*',
    columns: ['severity', 'sentence', 'remedy'],
    example: 'problems'
  },
  {
    name: 'usage',
    summary: 'how much a tenant uses, now and in seven days',
    operands: '<tenant>',
    method: 'GET',
    path: '/v1/tenants/{0}/usage',
    example: 'usage acme'
  },
  {
    name: 'key list',
    summary: 'the API keys of a tenant, or of a configuration file',
    operands: '[tenant]',
    method: 'GET',
    path: '/v1/tenants/{0}/keys*',
    columns: ['name', 'scopes', 'endpoints', 'expires'],
    text: 'With --config and without a tenant: those of the file, with what each may and when it ends. Never the keys.',
    example: 'key list acme',
    offline: {
      options: [fileOption],
      examples: ['gatehouse key list --config gatehouse.yaml'],
      async run({ options: { config } }, io) {
        if (config === undefined) throw new UsageError('key list needs a tenant, or --config FILE.')
        return await (await import('../api-key.ts')).runListKeys(config, Date.now(), io)
      }
    }
  },
  {
    name: 'key new',
    summary: 'make an API key, and print it, once',
    operands: '[tenant] [name]',
    options: [
      { flags: '--scopes <scopes>', text: 'what the holder may do: mcp,admin. Default: mcp' },
      {
        flags: '--endpoints <endpoints>',
        text: 'the endpoints that the key opens: support,files. Default: all of the tenant'
      },
      { flags: '--expires <days>', text: 'after so many days it is refused: 90d' }
    ],
    method: 'POST',
    path: '/v1/tenants/{0}/keys',
    body: 'key',
    text: `
With a tenant and a name, over the admin API. Without, for a configuration file: prints the key, once, on standard
output, and on standard error the lines for the configuration, which have its SHA-256 only; it has the scopes that are
given, and no others.`,
    example: 'key new acme ci',
    offline: {
      options: [
        { flags: '--name <name>', text: 'who holds it; for a configuration file' },
        { flags: '--replaces <sha256>', text: 'the previous key of the same holder, which stays valid for --overlap' },
        { flags: '--overlap <days>', text: 'for how many days the previous key stays valid. Default: 7d' }
      ],
      examples: ['gatehouse key new --name ci --scopes mcp --endpoints support --expires 90d > ci.key'],
      run: async ({ options }, { stdout, stderr }) =>
        (await import('../api-key.ts')).runNewKey(options, Date.now(), stdout, stderr)
    }
  },
  {
    name: 'key revoke',
    summary: 'take an API key away; calls and streams of its holder end',
    operands: '<tenant> <name>',
    method: 'DELETE',
    path: '/v1/tenants/{0}/keys/{1}',
    done: 'revoked',
    example: 'key revoke acme ci'
  },
  {
    name: 'session list',
    summary: 'open sessions of a tenant, the newest first',
    operands: '<tenant>',
    method: 'GET',
    path: '/v1/tenants/{0}/sessions*',
    columns: ['id', 'endpoint', 'subject', 'client', 'software', 'revision', 'openedAt', 'lastUsedAt'],
    example: 'session list acme'
  },
  {
    name: 'session end',
    summary: 'end a session at every process',
    operands: '<tenant> <session>',
    method: 'DELETE',
    path: '/v1/tenants/{0}/sessions/{1}',
    done: 'ended',
    example: 'session end acme 5f2c9a'
  },
  ...grantRows,
  ...changeRows
]

export const adminCommands: readonly CommandSpec[] = [
  ...wholeCommands,
  ...adminRows.map((row): CommandSpec => {
    const { name, summary, operands, options = [], text, example, offline, ofFile } = row
    const fileOptions = ofFile === undefined ? (offline?.options ?? []) : [fileOption]
    const fileExamples = ofFile === undefined ? [] : [`gatehouse ${example} --config gatehouse.yaml`]
    return {
      name,
      summary,
      ...(operands !== undefined && { operands }),
      options: [...options, ...fileOptions, jsonOption, ...adminOptions],
      ...(text !== undefined && { text }),
      examples: [`gatehouse ${example}`, ...(offline?.examples ?? []), ...fileExamples],
      async run(given, io) {
        const isOfFile = given.options['config'] !== undefined
        if (ofFile === 'plan' && isOfFile) return await (await import('./own-gateway.ts')).runPlanOfFile(given, io)
        if (ofFile !== undefined && ofFile !== 'plan' && isOfFile)
          return await (await import('./file-lists.ts')).runOfFile(ofFile, given, io)
        if (offline !== undefined && given.operands.length === 0) return await offline.run(given, io)
        return await (await import('./run-admin.ts')).runAdminRow(row, given, io)
      }
    }
  })
]
