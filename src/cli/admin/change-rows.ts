// The table form of commands over the admin API: the request, and the columns of its output. With the rows of the
// commands about catalogs of callers, versions, and kill switches.

import type { CommandSpec, OptionSpec } from '../commands/command.ts'
import type { FileAnswer } from './file-lists.ts'

export interface AdminRow {
  readonly name: string
  readonly summary: string
  readonly operands?: string
  readonly options?: readonly OptionSpec[]
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** `{0}` is the first operand; `*` at its end: all pages. */
  readonly path: string
  /** The operand that is a file (- is standard input) whose content is sent, or how the body is made of options. */
  readonly body?: 'file' | 'tenants' | 'key' | 'version' | 'catalog' | 'options'
  /** Options that are sent by their names: in the query, or with `body: options` in the body. */
  readonly sent?: readonly string[]
  /** Members of each entry that make the columns of a table; without, the answer is printed as YAML. */
  readonly columns?: readonly string[]
  /** The text to print if the response is empty. */
  readonly done?: string
  readonly text?: string
  readonly example: string
  /** With --config the command reads a configuration file and asks no gateway. */
  readonly ofFile?: FileAnswer
  /** The command without any operand: it asks no gateway. */
  readonly offline?: Pick<CommandSpec, 'run' | 'examples'> & { readonly options: readonly OptionSpec[] }
}

const killTargets = [
  ['tool', '<tenant> <upstream> <tool>', 'tools/{1}/{2}', 'acme files delete_page'],
  ['upstream', '<tenant> <upstream>', 'upstreams/{1}', 'acme files'],
  ['principal', '<tenant> <issuer> <subject>', 'principals/{1}/{2}', 'acme https://idp.example.com ada'],
  ['key', '<tenant> <key>', 'keys/{1}', 'acme ci'],
  ['tenant', '<tenant>', 'tenant', 'acme']
] as const

const killRows = killTargets.map(([what, operands, path, example]): AdminRow => ({
  name: `kill ${what}`,
  summary: `stop ${/^[aeiou]/.test(what) ? 'an' : 'a'} ${what}, calls in flight included, at every process`,
  operands,
  options: [
    { flags: '--undo', text: 'take it back' },
    ...(what === 'tool' || what === 'principal' ? [{ flags: '--force', text: 'also one that nobody has seen' }] : [])
  ],
  sent: ['force'],
  method: 'PUT',
  path: `/v1/tenants/{0}/kills/${path}`,
  done: 'stopped',
  text:
    'It holds until it is taken back with --undo, also after a restart. What else stops with it, and what leads to ' +
    'the same server and goes on, is said.',
  example: `kill ${what} ${example}`
}))

const whose = [
  { flags: '--issuer <issuer>', text: 'of people: the iss of their tokens; urn:gatehouse:key for API keys' },
  { flags: '--subject <subject>', text: 'of one person of this issuer: sub, or the name of the API key' },
  { flags: '--upstream <upstream>', text: 'of this upstream only' }
]

export const grantRows: readonly AdminRow[] = [
  {
    name: 'grant list',
    summary: 'accounts and secrets that people have connected for upstreams, with their state',
    operands: '<tenant>',
    options: whose,
    sent: ['issuer', 'subject', 'upstream'],
    method: 'GET',
    path: '/v1/tenants/{0}/connections*',
    columns: ['subject', 'issuer', 'upstream', 'kind', 'state', 'reason', 'provider', 'connectedAt', 'lastUsedAt'],
    text: 'Tokens and secrets are never shown.',
    example: 'grant list acme --upstream github'
  },
  {
    name: 'grant revoke',
    summary: 'end connections of people: of one person, to one upstream, or all of a tenant',
    operands: '<tenant>',
    options: [...whose, { flags: '--all', text: 'all of the tenant, in place of the others' }],
    sent: ['issuer', 'subject', 'upstream', 'all'],
    method: 'POST',
    path: '/v1/tenants/{0}/connections/revoke',
    body: 'options',
    text: 'At every process. Calls of these people are refused until they connect again.',
    example: 'grant revoke acme --issuer https://idp.example.com --subject ada'
  }
]

const recordColumns = [
  ...['time', 'kind', 'actor', 'subject', 'action', 'target'],
  ...['method', 'upstream', 'name', 'outcome']
]
const headColumns = ['chain', 'seq', 'time', 'hash']

export const changeRows: readonly AdminRow[] = [
  {
    name: 'catalog',
    summary: 'what a caller sees at an endpoint',
    operands: '<tenant> [endpoint]',
    options: [
      {
        flags: '--caller <caller>',
        text: '{ subject, issuer, client, scopes, groups, roles } or { key }. Default: anybody'
      },
      { flags: '--kind <kind>', text: 'default: tool', choices: ['tool', 'prompt', 'resource', 'template'] }
    ],
    method: 'POST',
    path: '/v1/tenants/{0}/endpoints/{1}/catalog',
    body: 'catalog',
    columns: ['name', 'upstream', 'upstreamName'],
    example: "catalog acme default --caller '{ subject: ada }'"
  },
  {
    name: 'audit list',
    summary: 'audit records of a tenant, the newest first',
    operands: '<tenant>',
    method: 'GET',
    path: '/v1/tenants/{0}/audit*',
    columns: recordColumns,
    example: 'audit list acme'
  },
  {
    name: 'audit heads',
    summary: 'how far the gateway knows the runs of a tenant: for "audit verify --head"',
    operands: '<tenant>',
    method: 'GET',
    path: '/v1/tenants/{0}/audit/heads*',
    columns: headColumns,
    text: 'Keep the output of --json elsewhere: who can cut off the records here could also change what this prints.',
    example: 'audit heads acme --json'
  },
  {
    name: 'trail list',
    summary: 'whose audit records there are: of the gateway itself, of tenants, of removed ones',
    method: 'GET',
    path: '/v1/audit/trails*',
    columns: ['trail', 'of'],
    example: 'trail list'
  },
  {
    name: 'trail records',
    summary: 'audit records that no tenant has now, the newest first',
    operands: '<trail>',
    method: 'GET',
    path: '/v1/audit/trails/{0}*',
    columns: recordColumns,
    text: '(gateway) is the trail of the gateway itself; that of a removed tenant has its id.',
    example: "trail records '(gateway)'"
  },
  {
    name: 'trail heads',
    summary: 'the same as audit heads, of any trail',
    operands: '<trail>',
    method: 'GET',
    path: '/v1/audit/trails/{0}/heads*',
    columns: headColumns,
    example: "trail heads '(gateway)' --json"
  },
  {
    name: 'versions',
    summary: 'who changed what, the newest first',
    method: 'GET',
    path: '/v1/versions*',
    columns: ['version', 'at', 'actor', 'role', 'action', 'tenants'],
    example: 'versions'
  },
  {
    name: 'plan',
    summary: 'what a change of tenants would do, and who gains and loses what; changes nothing',
    operands: '<file>',
    method: 'POST',
    path: '/v1/plan',
    body: 'tenants',
    text:
      'FILE has "tenants", an object as in the configuration; null removes one. - is standard input. With --config ' +
      'it is planned against that file in place of a gateway, whose upstreams are started and asked for it; FILE may ' +
      'then be the whole changed configuration, too, which removes the tenants that it does not name.',
    ofFile: 'plan',
    example: 'plan change.yaml'
  },
  {
    name: 'apply',
    summary: 'change several tenants at once: all of it, or nothing',
    operands: '<file>',
    options: [
      { flags: '--version <version>', text: 'the version of the plan; the change is refused if it is not the newest' }
    ],
    method: 'POST',
    path: '/v1/apply',
    body: 'tenants',
    text:
      'FILE has "tenants", an object as in the configuration; null removes one. - is standard input. Without ' +
      '--version whatever is there is changed.',
    example: 'apply change.yaml --version 12'
  },
  {
    name: 'rollback',
    summary: 'take up an earlier version again, of one tenant or of all',
    operands: '<version>',
    options: [{ flags: '--tenant <tenant>', text: 'of this one only' }],
    method: 'POST',
    path: '/v1/rollback',
    body: 'version',
    example: 'rollback 11 --tenant acme'
  },
  {
    name: 'kill list',
    summary: 'what is stopped in a tenant',
    operands: '<tenant>',
    method: 'GET',
    path: '/v1/tenants/{0}/kills*',
    columns: ['kind', 'upstream', 'tool', 'issuer', 'subject', 'key', 'also', 'besides', 'by', 'at'],
    example: 'kill list acme'
  },
  ...killRows
]
