// The table of docs/architecture.md as data: which room may import which.

import { readFileSync, readdirSync } from 'node:fs'
import { join, relative, resolve, dirname, sep } from 'node:path'
import t from 'tap'

const src = join(import.meta.dirname, '..', 'src')

/** Room -> rooms it may import; npm packages and node modules it may use. `*`: any. */
const rooms: Record<string, { rooms: string[], npm: string[] | '*', node: boolean }> = {
  protocol: { rooms: [], npm: [], node: false },
  config: { rooms: ['protocol'], npm: ['typebox', 'yaml', 'ajv'], node: true },
  store: { rooms: ['protocol', 'config', 'observe'], npm: ['ioredis'], node: true },
  observe: { rooms: ['protocol'], npm: ['pino', 'pino-pretty'], node: true },
  auth: { rooms: ['protocol', 'store', 'observe', 'config'], npm: ['jose', 'oauth4webapi', 'lru-cache', 'undici'], node: true },
  session: { rooms: ['protocol', 'store', 'observe'], npm: ['lru-cache'], node: true },
  upstream: { rooms: ['protocol', 'observe', 'config'], npm: ['undici', 'eventsource-parser'], node: true },
  relay: { rooms: ['protocol', 'config', 'store', 'observe', 'auth', 'session', 'upstream'], npm: ['lru-cache'], node: true },
  http: { rooms: ['protocol', 'config', 'store', 'observe', 'auth', 'session', 'upstream', 'relay'], npm: ['fastify'], node: true },
  cli: { rooms: ['config', 'observe', 'gateway.ts'], npm: ['yaml'], node: true },
  'gateway.ts': { rooms: ['protocol', 'config', 'store', 'observe', 'auth', 'session', 'upstream', 'relay', 'http'], npm: [], node: true },
  'main.ts': { rooms: ['cli'], npm: [], node: true }
}

const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((file) => /\.(ts|mjs)$/.test(file))
const roomOf = (file: string): string => file.split(sep)[0] ?? file
const importsOf = (file: string): string[] => {
  const text = readFileSync(join(src, file), 'utf8')
  return [...text.matchAll(/(?:^|\n)\s*(?:import|export)\s[^'"]*?from\s+'([^']+)'|import\(\s*'([^']+)'\s*\)|(?:^|\n)import\s+'([^']+)'/g)].map((match) => match[1] ?? match[2] ?? match[3] ?? '')
}

/** @returns the imports of a file that the table does not allow */
function offences (file: string): string[] {
  const room = roomOf(file)
  const rule = rooms[room]
  if (rule === undefined) return [`${file}: no room of that name`]
  return importsOf(file).filter((specifier) => {
    if (specifier.startsWith('node:')) return !rule.node
    if (!specifier.startsWith('.')) return rule.npm !== '*' && !rule.npm.some((name) => specifier === name || specifier.startsWith(name + '/'))
    const target = roomOf(relative(src, resolve(src, dirname(file), specifier)))
    return target !== room && !rule.rooms.includes(target)
  }).map((specifier) => `${file} imports ${specifier}`)
}

t.test('every import stays within what its room may use', async (t) => {
  t.ok(files.length > 40, 'the walk finds the sources')
  t.same(files.flatMap(offences), [])
})

t.test('the check can fail: a room that may import nothing is caught importing', async (t) => {
  const saved = rooms['relay']
  rooms['relay'] = { rooms: [], npm: [], node: false }
  t.ok(files.flatMap(offences).length > 0)
  if (saved !== undefined) rooms['relay'] = saved
})

t.test('the official SDKs are test peers and never part of the message path', async (t) => {
  t.same(files.filter((file) => importsOf(file).some((specifier) => specifier.startsWith('@modelcontextprotocol/'))), [])
})

t.test('no source file is so long that it wants to be two', async (t) => {
  t.same(files.filter((file) => readFileSync(join(src, file), 'utf8').split('\n').length > 280), [])
})
