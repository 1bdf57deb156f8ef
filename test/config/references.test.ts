import t from 'tap'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { upstreamName } from '../../src/protocol/messages.ts'
import { redisAddress } from '../../src/config/redis-address.ts'
import { compiled, problemsOf } from './kit.ts'
import type { CompileOptions } from '../../src/config/load.ts'

const config = (env: Record<string, string>, more: object = {}) => ({
  tenants: { a: { auth: 'none', upstreams: { s: { command: 'x', env, ...more } } } }
})

function resolved(value: string, options: Partial<CompileOptions>): string | undefined {
  const upstream = [...compiled(config({ V: value }), options).tenants.values()][0]?.upstreams.get(upstreamName('s'))
  return upstream?.type === 'stdio' ? upstream.env['V'] : undefined
}

t.test('references are resolved wherever they stand in a string', async (t) => {
  const env = { A: 'one', B: 'two', EMPTY: '', NESTED: '${A}' }
  t.equal(resolved('${A}', { env }), 'one')
  t.equal(resolved('<${A}-${B}>', { env }), '<one-two>')
  t.equal(resolved('${EMPTY}', { env }), '')
  t.equal(resolved('${NONE:-three}', { env }), 'three')
  t.equal(resolved('${EMPTY:-three}', { env }), 'three')
  t.equal(resolved('${A:-three}', { env }), 'one')
  t.equal(resolved('${NONE:-}', { env }), '')
  t.equal(resolved('$${A} $A $', { env }), '${A} $A $')
  t.equal(resolved('${NESTED}', { env }), '${A}', 'what comes in is not read again')
})

t.test('a variable that is not set is told by name', async (t) => {
  t.match(problemsOf(config({ V: '${A}' })), [
    { path: 'tenants.a.upstreams.s.env.V', message: /variable A, which is not set/ }
  ])
  t.match(problemsOf(config({ V: '${A}${B}' })), [{ message: /variables A, B, which are not set/ }])
  t.same(problemsOf(config({ V: '${A}' }), { env: { A: 'x' } }), [])
})

t.test('headers may tell who calls, and nothing else may', async (t) => {
  const http = (headers: object, more: object = {}) => ({
    tenants: { a: { auth: 'none', upstreams: { s: { url: 'https://up.example/mcp', headers, ...more } } } }
  })
  t.same(problemsOf(http({ 'X-User': 'u:${principal.subject}', 'X-Mail': '${principal.claims.email:-none}' })), [])
  t.match(problemsOf(http({ 'X-User': '${principal.token}' })), [
    {
      path: /headers/,
      message: /no caller has/,
      suggestion: /\$\{principal\.subject\}.*\$\{principal\.claims\.email\}/
    }
  ])
  const elsewhere = /who calls, which only headers of upstreams over HTTP can/
  t.match(problemsOf(config({ V: '${principal.subject}' })), [{ message: elsewhere }])
  t.match(problemsOf(http({}, { url: 'https://up.example/${principal.subject}' })), [{ message: elsewhere }])
})

t.test('names that every object has are not set either', async (t) => {
  t.match(problemsOf(config({ V: '${constructor}' }), { env: {} }), [{ message: /constructor/ }])
})

t.test('a file reference is relative to the configuration and loses one line break', async (t) => {
  const folder = t.testdir({ secrets: { a: 'value\n', b: 'value\r\n', c: 'x\n\n' } })
  const path = join(folder, 'config.yaml')
  t.equal(resolved('${file:secrets/a}', { path }), 'value')
  t.equal(resolved('${file:./secrets/b}', { path }), 'value')
  t.equal(resolved('${file:secrets/c}', { path }), 'x\n')
  t.equal(resolved(`\${file:${join(folder, 'secrets/a')}}`, { path }), 'value')
})

t.test('a password of Redis that comes from elsewhere may have any character', async (t) => {
  const password = 'a/b#c?d@e%41:f+g&h '
  const path = join(t.testdir({ password }), 'config.yaml')
  const env = { NAME: 'me/you', PASSWORD: password, HOST: 'a.example', ALL: 'redis://:p%40w@a.example', BOTH: 'me:p/w' }
  const addressOf = (store: string) => {
    const compiledStore = compiled({ ...config({}), store }, { path, env }).store
    return compiledStore.kind === 'redis' ? redisAddress(compiledStore.url) : undefined
  }
  t.match(addressOf('redis://:${file:password}@redis:6379/1'), { username: undefined, password, database: 1 })
  t.match(addressOf('rediss://${NAME}:${PASSWORD}@${HOST}'), { username: 'me/you', password, tls: true })
  t.match(addressOf('redis://${BOTH}@a.example'), { username: 'me', password: 'p/w' })
  t.match(addressOf('redis+sentinel://:${PASSWORD}@${HOST},b/main?sentinelPassword=${file:password}'), {
    password,
    sentinelPassword: password,
    nodes: [{ host: 'a.example' }, { host: 'b' }],
    name: 'main'
  })
  t.match(addressOf('redis://:p%40w@a.example'), { password: 'p@w' }, 'what the file itself says is an address')
  t.match(addressOf('${ALL}'), { password: 'p@w' }, 'and so is a whole one')
  const given = problemsOf({ ...config({}), store: 'redis://:a/b#c@redis' })
  t.match(given, [{ path: 'store' }], 'the control: as the file says it, it is no address')
  t.match(problemsOf({ ...config({}), store: 'redis://:${file:none}@redis' }, { path }), [
    { path: 'store', message: /no such file/ }
  ])
})

t.test('a file that cannot be read is told with its name and the reason', async (t) => {
  const folder = t.testdir({ ok: 'x' })
  const path = join(folder, 'config.yaml')
  mkdirSync(join(folder, 'folder'))
  writeFileSync(join(folder, 'large'), Buffer.alloc(65 * 1024, 'x'))
  t.match(problemsOf(config({ V: '${file:nope}' }), { path }), [{ message: /"nope" \(there is no such file\)/ }])
  t.match(problemsOf(config({ V: '${file:folder}' }), { path }), [{ message: /"folder" \(not an ordinary file\)/ }])
  t.match(problemsOf(config({ V: '${file:large}' }), { path }), [{ message: /"large" \(larger than 64 KiB\)/ }])
  t.match(problemsOf(config({ V: '${file:/dev/zero}' }), { path }), [{ message: /not an ordinary file/ }])
  t.same(problemsOf(config({ V: '${file:ok}' }), { path }), [])
})

t.test('what begins like a reference and is none is told', async (t) => {
  for (const value of ['${', '${A', '${a b}', '${env:A}', '${}', '${1A}'])
    t.match(problemsOf(config({ V: value }), { env: { A: 'x' } }), [{ message: /begins no reference/ }], value)
  t.same(problemsOf(config({ V: '$${ $${A' })), [])
})

t.test('a lone reference may stand for a number or a truth value; other text may not', async (t) => {
  const env = { N: '9090', T: 'true', W: 'many' }
  t.equal(compiled({ ...config({}), listen: { port: '${N}' } }, { env }).listen.port, 9090)
  t.equal([...compiled(config({}, { disabled: '${T}' }), { env }).tenants.values()][0]?.upstreams.size, 0)
  t.match(problemsOf({ ...config({}), listen: { port: '${W}' } }, { env }), [
    { path: 'listen.port', message: /whole number/ }
  ])
  t.match(problemsOf({ ...config({}), listen: { port: '1${N}' } }, { env }), [
    { path: 'listen.port', message: /whole number/ }
  ])
})

t.test('an upstream that is switched off needs none of its variables', async (t) => {
  t.same(problemsOf(config({ V: '${A}' }, { disabled: true })), [])
  t.equal(problemsOf(config({ V: '${A}' }, { disabled: false })).length, 1)
})
