// What every cell of the matrix has to be, as data. The first rule of a feature that fits a cell holds; a cell without
// a rule fails.

import type { Revision } from '../../src/protocol/messages.ts'
import type { Kind, Seen, Transport } from './cell.ts'

export interface Expected {
  readonly kind: Kind
  /** How it is translated, or why it is impossible; for docs/protocol-eras.md. */
  readonly text?: string
  readonly error?: Seen['error']
}

export interface Rule {
  readonly client?: readonly [first: Revision, last: Revision]
  readonly server?: readonly [first: Revision, last: Revision]
  readonly transport?: Transport
  readonly eras?: 'same' | 'crossed'
  /** Only where the server's revision is the newer one. */
  readonly newer?: 'server'
  readonly is: Expected
}

const passes: Expected = { kind: 'passes' }
const translated = (text: string): Expected => ({ kind: 'translated', text })
const impossible = (error: NonNullable<Seen['error']>, text: string): Expected => ({ kind: 'impossible', error, text })

const always: readonly Rule[] = [{ is: passes }]
const upTo = (last: Revision): readonly [Revision, Revision] => ['2024-11-05', last]
const newer = (first: Revision): readonly [Revision, Revision] => [first, '2026-07-28']
const modern = newer('2026-07-28')
const legacy = upTo('2025-11-25')

/** Servers of these revisions cannot have it: there is no such tool. */
const none = (server: readonly [Revision, Revision], what: string): Rule => ({
  server,
  is: impossible(-32_602, `servers of these revisions have no ${what}`)
})

/** One way for each era, and nothing is lost between them. */
const perEra = (toLegacy: string, toModern: string): readonly Rule[] => [
  { eras: 'same', is: passes },
  { client: legacy, is: translated(toLegacy) },
  { client: modern, is: translated(toModern) }
]

/** Entries are cut to what the client's revision knows. */
const cut = (...floors: ReadonlyArray<readonly [server: Revision, what: string]>): readonly Rule[] => [
  ...floors.map(([server, what]): Rule => ({
    client: upTo(before[server] ?? '2024-11-05'),
    server: newer(server),
    newer: 'server',
    is: translated(what)
  })),
  { is: passes }
]
const before: Readonly<Partial<Record<Revision, Revision>>> = {
  '2025-03-26': '2024-11-05',
  '2025-06-18': '2025-03-26',
  '2025-11-25': '2025-06-18',
  '2026-07-28': '2025-11-25'
}

const leftOut =
  "what came after the client's revision is left out: annotations (2025-03-26), title, output schema and _meta (2025-06-18), icons and execution (2025-11-25)"
const entriesLeftOut =
  "what came after the client's revision is left out: title and _meta (2025-06-18), icons (2025-11-25)"

const asked = perEra(
  "the input that the server's result asks for is requested of the client during the call; then the call is sent again with the answers",
  "the server's request is held open while the call ends with input_required; the client's retry answers it, and the call goes on"
)
const cannotBeAsked = (what: string): Expected =>
  impossible(
    'isError',
    `clients of these revisions cannot be asked in ${what}; the server is declared so, and its refusal (error -32021 included) reaches the model as a result with isError`
  )
const followed = translated('the gateway follows the task, and answers the call with its result')
const taskOnly = impossible(
  -32_601,
  'the server runs the tool as a task only, and the client, which could ask for one, has not'
)
const changed = perEra(
  "the gateway listens at the server; the client hears of it on its session's stream",
  "what the server's session says goes to the listen streams that asked for it"
)

export const table: Readonly<Record<string, readonly Rule[]>> = {
  handshake: perEra(
    'the gateway answers initialize from what server/discover said',
    'the gateway answers server/discover from what initialize said'
  ),
  'tools/list': [
    {
      client: ['2025-11-25', '2025-11-25'],
      server: modern,
      is: translated('an output schema that is no object is wrapped, as its values are')
    },
    {
      client: modern,
      server: ['2025-11-25', '2025-11-25'],
      is: translated('execution is left out, for 2026-07-28 has none')
    },
    ...cut(['2025-03-26', leftOut], ['2025-06-18', leftOut], ['2025-11-25', leftOut])
  ],
  'tools/call': always,
  'content types': cut(
    ['2025-06-18', 'links to resources become text; for 2024-11-05 audio becomes an embedded blob'],
    ['2025-03-26', 'audio becomes an embedded blob']
  ),
  'structured content': [
    none(upTo('2025-03-26'), 'structured content'),
    {
      client: upTo('2025-03-26'),
      is: translated('left out; the result has a text block of the same meaning, made if there was none')
    },
    { is: passes }
  ],
  'structured content that is no object': [
    none(legacy, 'structured content that is no object'),
    { client: modern, is: passes },
    { client: upTo('2025-03-26'), is: translated('left out, with its schema; the text stays') },
    { is: translated('wrapped as {"result": …}, and its schema with it') }
  ],
  errors: always,
  progress: cut(['2025-03-26', 'without its message, which 2024-11-05 does not have']),
  cancellation: perEra(
    'notifications/cancelled closes the request at the server (over stdio: is one of ours)',
    'closing the response is notifications/cancelled at the server'
  ),
  'log messages': perEra(
    'the level of the session goes along with each request',
    'the level of the request is set at the server; only what comes during the call, from the level on that it asked for, is passed on'
  ),
  resources: cut(['2025-06-18', entriesLeftOut], ['2025-11-25', entriesLeftOut]),
  'resource not found': perEra('error -32602 becomes -32002', 'error -32002 becomes -32602'),
  'resource templates': cut(['2025-06-18', entriesLeftOut], ['2025-11-25', entriesLeftOut]),
  prompts: cut(
    ['2025-06-18', `${entriesLeftOut}; links to resources become text below 2025-06-18`],
    ['2025-11-25', entriesLeftOut]
  ),
  completion: always,
  paging: always,
  'large results': always,
  'concurrent calls': always,
  sampling: asked,
  'elicitation: form': [
    none(upTo('2025-03-26'), 'elicitation'),
    { client: upTo('2025-03-26'), is: cannotBeAsked('a form') },
    ...asked
  ],
  'elicitation: URL': [
    none(upTo('2025-06-18'), 'elicitation by URL'),
    { client: upTo('2025-06-18'), is: cannotBeAsked('a web page') },
    ...asked
  ],
  'elicitation: URL first (-32042)': [
    none(upTo('2025-06-18'), 'error -32042'),
    { server: modern, is: impossible(-32_602, '2026-07-28 has no error -32042; its servers ask by elicitation') },
    { client: upTo('2025-06-18'), is: cannotBeAsked('a web page') },
    {
      client: modern,
      is: translated('error -32042 becomes input_required; the retry is sent to the server as a new call')
    },
    { is: passes }
  ],
  'a server request that the client has not declared': [
    none(upTo('2025-06-18'), 'sampling with tools'),
    {
      client: modern,
      server: modern,
      is: impossible(-32_021, 'the server names the capability, and so does the gateway')
    },
    {
      is: impossible(
        'isError',
        'the server is declared what the client declares, and nothing else; its refusal (error -32021 included) reaches the model as a result with isError'
      )
    }
  ],
  roots: asked,
  'several server requests': asked,
  'server requests of prompts and resources': asked,
  subscribe: perEra(
    'the gateway opens a listen stream at the server',
    'the gateway subscribes at the server for as long as the listen stream is open'
  ),
  'resources/updated': perEra(
    "from the listen stream at the server to the client's session",
    "from the session at the server to the client's listen stream"
  ),
  'tools/list_changed': changed,
  'prompts/list_changed': changed,
  'resources/list_changed': changed,
  tasks: [
    none(upTo('2025-06-18'), 'tasks'),
    { eras: 'same', client: newer('2025-11-25'), is: passes },
    {
      client: modern,
      is: translated('a task of 2025-11-25 is shown as one of the extension io.modelcontextprotocol/tasks')
    },
    {
      client: ['2025-11-25', '2025-11-25'],
      is: translated('a task of the extension io.modelcontextprotocol/tasks is shown as one of 2025-11-25')
    },
    { is: followed }
  ],
  'tasks that the client has not asked for': [
    none(upTo('2025-06-18'), 'tasks'),
    { client: modern, server: modern, is: passes },
    { client: ['2025-11-25', '2025-11-25'], server: ['2025-11-25', '2025-11-25'], is: taskOnly },
    { is: followed }
  ]
}

const within = (revision: Revision, range: readonly [Revision, Revision] | undefined): boolean =>
  range === undefined || (revision >= range[0] && revision <= range[1])
const isModern = (revision: Revision): boolean => revision === '2026-07-28'

export function expected(
  feature: string,
  client: Revision,
  server: Revision,
  transport: Transport
): Expected | undefined {
  return table[feature]?.find(
    (rule) =>
      within(client, rule.client) &&
      within(server, rule.server) &&
      (rule.transport === undefined || rule.transport === transport) &&
      (rule.eras === undefined || (rule.eras === 'same') === (isModern(client) === isModern(server))) &&
      (rule.newer === undefined || server > client)
  )?.is
}
