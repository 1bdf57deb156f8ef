// The rules of docs/architecture.md, held against every file of src: who may import whom, how large things may grow,
// and where timers and codes stand.

import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { parseSync, Visitor } from 'oxc-parser'
import t from 'tap'

const src = join(import.meta.dirname, '..', 'src')

/**
 * Each group imports only from the groups before it; members of one group never import each other. Type imports count.
 */
const roomOrder: readonly (readonly string[])[] = [
  ['protocol'],
  ['time'],
  ['limits'],
  ['egress'],
  ['config'],
  ['observe'],
  ['workers'],
  ['store'],
  ['auth', 'session', 'upstream', 'audit', 'control', 'hosts'],
  ['policy', 'login', 'vault'],
  ['relay'],
  ['http', 'admin'],
  ['gateway'],
  ['gateway.ts'],
  ['cli'],
  ['main.ts']
]

/** The same within the two rooms that have a path of their own. */
const subRoomOrder: Readonly<Record<string, readonly (readonly string[])[]>> = {
  relay: [
    ['call'],
    ['client'],
    ['catalog'],
    ['connections'],
    ['tasks'],
    ['subscriptions'],
    ['bridge'],
    ['methods'],
    ['legacy-relay.ts', 'modern-relay.ts']
  ],
  upstream: [['rpc'], ['modern'], ['http', 'stdio', 'listing'], ['connect'], ['pool']]
}

/** Packages beyond `node:*` that a room may import. `protocol` may import neither. */
const packages: Readonly<Record<string, readonly string[]>> = {
  config: ['typebox', 'yaml', 'jsonc-parser', 'smol-toml', '@marcbachmann/cel-js'],
  observe: [
    'pino',
    '@opentelemetry/api',
    '@opentelemetry/exporter-metrics-otlp-http',
    '@opentelemetry/exporter-trace-otlp-http',
    '@opentelemetry/resources',
    '@opentelemetry/sdk-metrics',
    '@opentelemetry/sdk-trace'
  ],
  store: ['ioredis'],
  egress: ['undici'],
  auth: ['jose', 'oauth4webapi', 'lru-cache'],
  login: ['jose', 'oauth4webapi', 'oidc-provider'],
  vault: ['@aws-sdk/client-kms', 'oauth4webapi', 'jose', 'lru-cache'],
  session: ['lru-cache'],
  upstream: ['eventsource-parser'],
  policy: ['lru-cache'],
  relay: ['lru-cache'],
  http: ['fastify', '@fastify/cors'],
  admin: ['fastify', 'lru-cache', 'typebox'],
  hosts: ['eventsource-parser', 'smol-toml', 'yaml'],
  cli: ['commander', 'eventsource-parser', 'jsonc-parser', 'smol-toml', 'yaml']
}

const maxFilesPerFolder = 16
const maxFileLines = 250
const maxFunctionLines = 150
const maxColumns = 120
const maxOptionMembers = 8
const maxOptionFunctions = 4

/** What breaks a rule, and why it may: `rule: subject` -> reason. */
const exceptions: Readonly<Record<string, string>> = {}

const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => file.split(sep).join('/'))
const sources = new Map(files.map((file) => [file, readFileSync(join(src, file), 'utf8')]))

interface Scan {
  readonly imports: readonly string[]
  readonly exportedNames: readonly string[]
  readonly longFunctions: readonly string[]
  readonly wideOptions: readonly string[]
  readonly timers: readonly string[]
  readonly codes: readonly string[]
}

const scans = new Map([...sources].map(([file, text]) => [file, scan(file, text)]))

function scan(file: string, text: string): Scan {
  const { program, module } = parseSync(file, text)
  const lineOf = (offset: number): number => text.slice(0, offset).split('\n').length
  const imports = [
    ...module.staticImports.map(({ moduleRequest }) => moduleRequest.value),
    ...module.staticExports.flatMap(({ entries }) =>
      entries.flatMap(({ moduleRequest }) => moduleRequest?.value ?? [])
    ),
    ...module.dynamicImports.map(({ moduleRequest }) => text.slice(moduleRequest.start + 1, moduleRequest.end - 1))
  ]
  const exportedNames = new Set(
    module.staticExports.flatMap(({ entries }) =>
      entries.flatMap(({ exportName, moduleRequest }) => (moduleRequest === null ? (exportName.name ?? []) : []))
    )
  )
  const longFunctions: string[] = []
  const wideOptions: string[] = []
  const timers: string[] = []
  const codes: string[] = []
  const judgeFunction = ({ start, end }: { start: number; end: number }): void => {
    const lines = lineOf(end) - lineOf(start) + 1
    if (lines > maxFunctionLines) longFunctions.push(`${file}:${lineOf(start)} has a function of ${lines} lines`)
  }
  new Visitor({
    FunctionDeclaration: judgeFunction,
    FunctionExpression: judgeFunction,
    ArrowFunctionExpression: judgeFunction,
    TSInterfaceDeclaration({ id, body }) {
      if (!id.name.endsWith('Options')) return
      const functions = body.body.filter(
        (member) =>
          member.type === 'TSMethodSignature' ||
          (member.type === 'TSPropertySignature' && member.typeAnnotation?.typeAnnotation.type === 'TSFunctionType')
      )
      if (body.body.length > maxOptionMembers || functions.length > maxOptionFunctions) {
        wideOptions.push(`${id.name} has ${body.body.length} members, ${functions.length} of them functions`)
      }
    },
    CallExpression({ callee, start }) {
      const timer = callee.type === 'Identifier' && /^(?:setTimeout|setInterval)$/.test(callee.name)
      const signal =
        callee.type === 'MemberExpression' && text.slice(callee.start, callee.end).endsWith('AbortSignal.timeout')
      if (timer || signal) timers.push(`${file}:${lineOf(start)}`)
    },
    UnaryExpression({ operator, argument, start }) {
      if (operator !== '-' || argument.type !== 'Literal' || typeof argument.value !== 'number') return
      if (argument.value >= 32_000 && argument.value < 33_000) codes.push(`${file}:${lineOf(start)}`)
    }
  }).visit(program)
  return { imports, exportedNames: [...exportedNames], longFunctions, wideOptions, timers, codes }
}

const roomOf = (file: string): string => file.split('/')[0] ?? file
const rankIn = (order: readonly (readonly string[])[], name: string): number =>
  order.findIndex((group) => group.includes(name))

/** Why `file` may not import `specifier`; undefined where it may. */
function importOffence(file: string, specifier: string, order = roomOrder): string | undefined {
  const room = roomOf(file)
  if (specifier.startsWith('node:')) return room === 'protocol' ? `${file} imports ${specifier}` : undefined
  if (!specifier.startsWith('.')) {
    const allowed = packages[room]?.some((name) => specifier === name || specifier.startsWith(`${name}/`)) === true
    return allowed ? undefined : `${file} imports ${specifier}`
  }
  const target = relative(src, resolve(src, dirname(file), specifier))
    .split(sep)
    .join('/')
  const targetRoom = roomOf(target)
  if (targetRoom !== room) {
    return rankIn(order, targetRoom) < rankIn(order, room) ? undefined : `${file} imports ${target}`
  }
  const subRooms = subRoomOrder[room]
  const [from, to] = [file.split('/')[1] ?? '', target.split('/')[1] ?? '']
  if (subRooms === undefined || from === to || rankIn(subRooms, to) < rankIn(subRooms, from)) return undefined
  return `${file} imports ${target}`
}

const importOffences = (order = roomOrder): string[] =>
  [...scans].flatMap(([file, { imports }]) =>
    imports.flatMap((specifier) => importOffence(file, specifier, order) ?? [])
  )

/** The offences that no exception covers, and the exceptions that cover none. */
function unexcused(rule: string, offences: readonly string[]): string[] {
  const own = Object.keys(exceptions).filter((key) => key.startsWith(`${rule}: `))
  const subjects = own.map((key) => key.slice(rule.length + 2))
  const left = offences.filter((offence) => !subjects.some((subject) => offence.includes(subject)))
  const idle = subjects.filter((subject) => !offences.some((offence) => offence.includes(subject)))
  return [...left, ...idle.map((subject) => `no longer needs its exception: ${subject}`)]
}

t.test('every file stands in a room that the table of rooms knows', async (t) => {
  t.ok(files.length > 100, 'the walk finds the sources')
  t.same(
    files.filter((file) => rankIn(roomOrder, roomOf(file)) === -1),
    []
  )
  for (const [room, order] of Object.entries(subRoomOrder)) {
    const inside = files.filter((file) => roomOf(file) === room).map((file) => file.split('/')[1] ?? '')
    t.same([...new Set(inside)].sort(), order.flat().sort(), room)
  }
})

t.test('imports, type imports included, go only from a later room to an earlier one', async (t) => {
  t.same(unexcused('import', importOffences()), [])
})

t.test('the import check finds an import against the order', async (t) => {
  t.ok(importOffences(roomOrder.toReversed()).length > 100)
})

t.test('the official SDKs are test peers and never part of the message path', async (t) => {
  t.same(
    [...scans].filter(([, { imports }]) => imports.some((specifier) => specifier.startsWith('@modelcontextprotocol/'))),
    []
  )
})

t.test(`no folder holds more than ${maxFilesPerFolder} files`, async (t) => {
  const counts = new Map<string, number>()
  for (const file of files) counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1)
  const crowded = [...counts].filter(([, count]) => count > maxFilesPerFolder)
  t.same(
    unexcused(
      'folder',
      crowded.map(([folder, count]) => `${folder} holds ${count} files`)
    ),
    []
  )
})

t.test(`no file has more than ${maxFileLines} lines, no line more than ${maxColumns} columns`, async (t) => {
  const lines = [...sources].map(([file, text]) => [file, text.trimEnd().split('\n')] as const)
  const long = lines.filter(([, each]) => each.length > maxFileLines)
  t.same(
    unexcused(
      'file',
      long.map(([file, each]) => `${file} has ${each.length} lines`)
    ),
    []
  )
  const wide = lines.flatMap(([file, each]) =>
    each.flatMap((line, at) => (line.length > maxColumns ? `${file}:${at + 1} has ${line.length} columns` : []))
  )
  t.same(unexcused('column', wide), [])
})

t.test(`no function has more than ${maxFunctionLines} lines, factories included`, async (t) => {
  t.same(
    unexcused(
      'function',
      [...scans.values()].flatMap(({ longFunctions }) => longFunctions)
    ),
    []
  )
})

t.test('an options interface has few members and fewer functions', async (t) => {
  t.same(
    unexcused(
      'options',
      [...scans.values()].flatMap(({ wideOptions }) => wideOptions)
    ),
    []
  )
})

t.test('no two files export the same name', async (t) => {
  const owners = new Map<string, string[]>()
  for (const [file, { exportedNames }] of scans) {
    for (const name of exportedNames) owners.set(name, [...(owners.get(name) ?? []), file])
  }
  const twice = [...owners].filter(([, where]) => where.length > 1)
  t.same(
    unexcused(
      'name',
      twice.map(([name, where]) => `${name} is exported by ${where.join(' and ')}`)
    ),
    []
  )
})

t.test('timers are set in time/, in the composition root and in the command line only', async (t) => {
  const allowed = new Set(['time', 'gateway', 'gateway.ts', 'cli'])
  const timers = [...scans].filter(([file]) => !allowed.has(roomOf(file))).flatMap(([, { timers }]) => timers)
  t.same(unexcused('timer', timers), [])
})

t.test(
  'nothing imports more than types of node:http, which would load what nobody uses (limits/node-http.ts)',
  async (t) => {
    const loads = /^import (?!type\b)[^\n]*'node:http'|import\('node:http'\)/m
    t.same(
      [...sources].filter(([, text]) => loads.test(text)).map(([file]) => file),
      []
    )
    t.match("import { createServer } from 'node:http'", loads, 'the control')
  }
)

t.test('numbers of JSON-RPC errors stand in protocol/messages.ts only', async (t) => {
  const codes = [...scans].filter(([file]) => file !== 'protocol/messages.ts').flatMap(([, { codes }]) => codes)
  t.same(unexcused('code', codes), [])
})

/** The console runs in browsers: its modules stand apart from all rooms. Its words are a table of any length. */
const consoleFiles = readdirSync(join(src, 'console'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.js'))
  .map((file) => file.split(sep).join('/'))
const consolePackages = new Set(['preact', 'preact/hooks', '@preact/signals', 'htm', 'uplot', 'uqr'])

t.test('the console imports its own modules and five packages, in files and functions of the same sizes', async (t) => {
  t.ok(consoleFiles.length > 10)
  for (const file of consoleFiles) {
    const text = readFileSync(join(src, 'console', file), 'utf8')
    const { imports, longFunctions } = scan(file, text)
    for (const specifier of imports) {
      const target = relative(src, resolve(src, 'console', dirname(file), specifier))
      const isOwn = specifier.startsWith('.') && roomOf(target.split(sep).join('/')) === 'console'
      t.ok(isOwn || consolePackages.has(specifier), `${file} imports ${specifier}`)
    }
    t.same(longFunctions, [])
    if (file !== 'text.js') t.ok(text.trimEnd().split('\n').length <= maxFileLines, `${file} is not too long`)
  }
})

t.test('exceptions from the rules are fewer than ten, each with its reason', async (t) => {
  t.ok(Object.keys(exceptions).length < 10)
  t.ok(Object.values(exceptions).every((reason) => reason.length > 20))
})

t.test('no program is started by a shell', async (t) => {
  const starting = [...sources].filter(([, text]) => text.includes('node:child_process'))
  t.ok(starting.length > 0, 'the walk finds those that start programs')
  for (const [file, text] of starting) {
    const [, names = ''] = /import \{([^}]*)\} from 'node:child_process'/.exec(text) ?? []
    const values = names.split(',').map((each) => each.trim())
    t.same(
      values.filter((each) => !/^(?:spawn|execFile|execFileSync|type \w+)$/.test(each)),
      [],
      file
    )
  }
  const shells = [...sources].filter(([, text]) => /\bshell\s*:\s*true/.test(text)).map(([file]) => file)
  t.same(shells, [], 'no option of spawn turns a shell on')
})

/** All else connects through `egress/`. Who of the packages connects by itself is in docs/connections.md. */
const connectingModules = /^node:(?:net|tls|http|https|http2|dgram)$|^undici$/
const connectingNames =
  /^(?:connect|createConnection|request|get|fetch|stream|Agent|Socket|TLSSocket|Client|Pool|createSocket|default)$/

/** How a module connects to somewhere; empty: it does not. Packages beyond undici are in the table of packages. */
function connections(file: string, text: string): string[] {
  const { program, module } = parseSync(file, text)
  const imported = module.staticImports.flatMap(({ moduleRequest, entries }) =>
    connectingModules.test(moduleRequest.value)
      ? entries.flatMap(({ isType, importName }) =>
          !isType && (importName.name === null || connectingNames.test(importName.name))
            ? `${moduleRequest.value} ${importName.name ?? importName.kind}`
            : []
        )
      : []
  )
  const dynamic = module.dynamicImports
    .map(({ moduleRequest }) => text.slice(moduleRequest.start + 1, moduleRequest.end - 1))
    .filter((specifier) => connectingModules.test(specifier))
  const built = [...text.matchAll(/nodeHttp\.(?:request|get|Agent)\b|\bglobalThis\.fetch\b|\bnew WebSocket\(/g)]
  let calls = 0
  let isGiven = false
  const bind = ({ start, end }: { start: number; end: number }): void => {
    isGiven ||= /\bfetch\b/.test(text.slice(start, end))
  }
  const bindAll = ({ params }: { params: ReadonlyArray<{ start: number; end: number }> }): void => params.forEach(bind)
  new Visitor({
    FunctionDeclaration: bindAll,
    FunctionExpression: bindAll,
    ArrowFunctionExpression: bindAll,
    VariableDeclarator: ({ id }) => bind(id),
    CallExpression({ callee }) {
      if (callee.type === 'Identifier' && callee.name === 'fetch') calls++
    }
  }).visit(program)
  // A name that the file binds is the `Fetch` of `egress/fetch.ts`, by its type.
  return [...imported, ...dynamic, ...built.map(String), ...(calls > 0 && !isGiven ? ['fetch'] : [])]
}

t.test('only egress/ connects to anything, and opens sockets in one file', async (t) => {
  const found = [...sources].filter(([file, text]) => connections(file, text).length > 0).map(([file]) => file)
  t.same(found.toSorted(), ['egress/fetch.ts', 'egress/requests.ts', 'egress/sockets.ts'])
  const opening = /import \{[^}]*\b(?:connect|createConnection)\b[^}]*\} from 'node:(?:net|tls)'|buildConnector/
  t.same(
    [...sources].filter(([, text]) => opening.test(text)).map(([file]) => file),
    ['egress/sockets.ts']
  )
  for (const text of [
    "import { connect } from 'node:tls'",
    "import net from 'node:net'",
    "import * as http from 'node:http'",
    "await import('undici')",
    "await fetch('https://elsewhere.example')"
  ])
    t.equal(connections('control.ts', text).length, 1, text)
})
