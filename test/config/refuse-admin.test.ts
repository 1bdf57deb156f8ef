import t from 'tap'
import { base, compiled, goodKey, refusals } from './kit.ts'
import { hash } from 'node:crypto'
import { readArguments } from '../../src/cli/arguments.ts'
import { runAdminKey } from '../../src/cli/admin-key.ts'
import { parse } from 'yaml'

const ops = { name: 'ops', sha256: 'a'.repeat(64), role: 'platform-admin' }
const start = { ...base(), admin: { keys: [ops] } }

refusals(t, [
  {
    name: 'an admin API beyond this machine is refused without a proxy that speaks TLS',
    steps: ['admin', 'listen', 'host'],
    bad: '0.0.0.0',
    good: '127.0.0.2',
    start,
    message: /in the clear/
  },
  {
    name: 'an admin API without keys is refused',
    steps: ['admin', 'keys'],
    bad: [],
    good: [ops],
    start,
    message: /is empty/
  },
  {
    name: 'a key itself in place of its digest is refused',
    steps: ['admin', 'keys', 0, 'sha256'],
    bad: `gha_${'x'.repeat(43)}`,
    good: 'b'.repeat(64),
    start,
    message: /must be the SHA-256/
  },
  {
    name: 'an unknown role is refused',
    steps: ['admin', 'keys', 0, 'role'],
    bad: 'root',
    good: 'viewer',
    start,
    message: /must be one of platform-admin/
  },
  {
    name: 'a tenant admin without tenants is refused',
    steps: ['admin', 'keys', 0],
    bad: { ...ops, role: 'tenant-admin' },
    good: { ...ops, role: 'tenant-admin', tenants: ['acme'] },
    start,
    message: /names no tenants/
  },
  {
    name: 'a list of no tenants, which could be taken for all, is refused',
    steps: ['admin', 'keys', 0],
    bad: { ...ops, role: 'viewer', tenants: [] },
    good: { ...ops, role: 'viewer' },
    path: 'admin.keys[0].tenants',
    start,
    message: /is empty/
  },
  {
    name: 'a platform admin of some tenants is refused',
    steps: ['admin', 'keys', 0, 'tenants'],
    bad: ['acme'],
    good: undefined,
    start,
    message: /belongs to other roles/
  },
  {
    name: 'metrics of some tenants are refused',
    steps: ['admin', 'keys', 0],
    bad: { ...ops, role: 'metrics', tenants: ['acme'] },
    good: { ...ops, role: 'metrics' },
    path: 'admin.keys[0].tenants',
    start,
    message: /belongs to other roles: metrics/
  },
  {
    name: 'an API key of a tenant as an admin key is refused',
    steps: ['admin', 'keys', 0, 'sha256'],
    bad: hash('sha256', goodKey),
    good: hash('sha256', 'another'),
    start,
    message: /is an API key of a tenant/
  },
  {
    name: 'one key with two roles is refused',
    steps: ['admin', 'keys', 1],
    bad: { ...ops, name: 'other', role: 'viewer' },
    good: { ...ops, name: 'other', sha256: 'c'.repeat(64) },
    path: 'admin.keys[1].sha256',
    start,
    message: /is the same key as/
  },
  {
    name: 'a program by digest that another entry allows without it is refused',
    steps: ['admin', 'allowedCommands'],
    bad: ['/usr/bin/up', { command: '/usr/bin/up', sha256: 'd'.repeat(64) }],
    good: ['/usr/bin/up', '/usr/bin/up', { command: '/usr/bin/other', sha256: 'd'.repeat(64) }],
    path: 'admin.allowedCommands[1]',
    start,
    message: /is the same program as that of/
  },
  {
    name: 'the port of the gateway is refused',
    steps: ['admin', 'listen', 'port'],
    bad: 8080,
    good: 8082,
    start,
    message: /is the port of the gateway/
  }
])

t.test(
  'behind a proxy that speaks TLS the admin API may listen anywhere, and without admin there is none',
  async (t) => {
    const admin = { listen: { host: '0.0.0.0', port: 9000 }, behindTlsProxy: true, keys: [ops] }
    t.match(compiled({ ...base(), admin }).admin, { listen: { host: '0.0.0.0', port: 9000 } })
    t.equal(compiled(base()).admin, undefined)
    t.match(compiled(start).admin, { listen: { host: '127.0.0.1', port: 8081 } })
  }
)

t.test('admin-key new prints a key once, and a configuration that knows its digest', async (t) => {
  const made = (...argv: string[]) => {
    const [out, err]: [string[], string[]] = [[], []]
    const asked = readArguments(['admin-key', 'new', ...argv])
    if (asked.command === undefined) throw new Error('no command')
    const { options } = asked
    const code = runAdminKey(options, { write: (text) => out.push(text) }, { write: (text) => err.push(text) })
    return { code, key: out.join('').trim(), config: err.join('') }
  }
  const { code, key, config } = made('--name', 'ops', '--role', 'tenant-admin', '--tenants', 'acme')
  t.equal(code, 0)
  t.match(key, /^gha_[\w-]{43}$/)
  t.notOk(config.includes(key))
  const given = parse(config.slice(config.indexOf('admin:'))) as object
  t.match(compiled({ ...base(), ...given }).admin, {
    keys: [{ name: 'ops', role: 'tenant-admin', tenants: ['acme'], sha256: hash('sha256', key) }]
  })
  t.not(made('--name', 'ops', '--role', 'viewer').key, made('--name', 'ops', '--role', 'viewer').key)
  for (const argv of [
    [],
    ['--name', 'ops'],
    ['--name', 'ops', '--role', 'root'],
    ['--name', 'ops', '--role', 'tenant-admin'],
    ['--name', 'a b', '--role', 'viewer'],
    ['--name', 'ops', '--role', 'platform-admin', '--tenants', 'acme']
  ])
    t.throws(() => made(...argv), { name: 'UsageError' }, argv.join(' '))
})
