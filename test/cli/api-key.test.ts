// `gatehouse key new` and `key list`: what is printed can be used as it is.

import { hash } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { runListKeys, runNewKey } from '../../src/cli/api-key.ts'
import { UsageError, type Io } from '../../src/cli/commands/command.ts'
import { tenantId } from '../../src/protocol/messages.ts'
import { base, compiled, withValue } from '../config/kit.ts'

const now = Date.UTC(2026, 10, 25)

function made(options: Record<string, string>) {
  const [out, err]: [string[], string[]] = [[], []]
  runNewKey(options, now, { write: (text) => out.push(text) }, { write: (text) => err.push(text) })
  const lines = err.join('')
  const { auth } = parse(lines.slice(lines.indexOf('\n\n'))) as { auth: { keys: Array<Record<string, unknown>> } }
  return { key: out.join('').trim(), said: lines, entry: auth.keys[0] ?? {} }
}

const keysOf = (entry: Record<string, unknown>) =>
  compiled(withValue(['tenants', 'acme', 'auth'], { keys: [entry] }, base())).tenants.get(tenantId('acme'))?.auth.keys

t.test('a key and the line for it', async (t) => {
  const { key, said, entry } = made({ name: 'ci', scopes: 'mcp,files', endpoints: 'files', expires: '90d' })
  t.notMatch(said, key, 'the key itself goes to standard output only')
  const expires = now + 90 * 24 * 60 * 60 * 1000
  t.same(keysOf(entry), [
    { name: 'ci', sha256: hash('sha256', key), scopes: ['mcp', 'files'], endpoints: ['files'], expires }
  ])
  t.same(Object.keys(made({ name: 'ci' }).entry), ['name', 'sha256'])
})

t.test('a key that takes the place of another, which stays good for a while', async (t) => {
  const before = made({ name: 'ci' })
  const { entry } = made({ name: 'ci', replaces: String(before.entry['sha256']), overlap: '2d' })
  const previous = { sha256: hash('sha256', before.key), until: now + 2 * 24 * 60 * 60 * 1000 }
  t.match(keysOf(entry), [{ name: 'ci', previous }])
})

t.test('what cannot be meant is said', async (t) => {
  for (const options of [
    {},
    { name: 'a b' },
    { name: 'ci', expires: 'soon' },
    { name: 'ci', expires: '0d' },
    { name: 'ci', replaces: 'abc' },
    { name: 'ci', overlap: '7d' }
  ])
    t.throws(() => made(options as Record<string, string>), UsageError, JSON.stringify(options))
})

t.test('the list says what each key may, and when it ends', async (t) => {
  const keys = [
    made({ name: 'ci', scopes: 'mcp', endpoints: 'files', expires: '90d' }).entry,
    { name: 'old', sha256: 'ab'.repeat(32), expires: '2026-01-31' },
    { name: 'plain', sha256: 'cd'.repeat(32) }
  ]
  const file = join(
    t.testdir({ 'c.json': JSON.stringify(withValue(['tenants', 'acme', 'auth'], { keys }, base())) }),
    'c.json'
  )
  const out: string[] = []
  t.equal(
    await runListKeys(file, now, { env: {}, stdout: { write: (text: string) => out.push(text) } } as unknown as Io),
    0
  )
  t.match(out, [
    /^acme {2}ci {2}sha256 .{12}… {2}mcp {2}files {2}until 2027-02-23 00:00\n$/,
    /^acme {2}old .* no scopes {2}all endpoints {2}expired 2026-01-31 00:00\n$/,
    /^acme {2}plain .* no end\n$/
  ])
})
