import t from 'tap'
import { ConfigError } from '../../src/config/problems.ts'
import { base, compiled, goodKey, withValue } from './kit.ts'

const canary = 'CANARY-p4ssw0rd-Zx81'
const env = { SECRET: canary }

function words(config: object | string): string {
  try {
    compiled(config, { env })
    return ''
  } catch (error) {
    return error instanceof ConfigError
      ? `${error.message}\n${error.stack}\n${JSON.stringify(error.problems)}`
      : String(error)
  }
}

const acme = ['tenants', 'acme']
const places: [string, (string | number)[]][] = [
  ['listen.host', ['listen', 'host']],
  ['publicUrl', ['publicUrl']],
  ['store', ['store']],
  ['logLevel', ['logLevel']],
  ['hosts', ['hosts', 0]],
  ['a limit', ['limits', 'processes']],
  ['an origin', [...acme, 'origins', 0]],
  ['auth', [...acme, 'auth']],
  ['an issuer', [...acme, 'auth', 'issuers', 0, 'issuer']],
  ['an algorithm', [...acme, 'auth', 'issuers', 0, 'algorithms', 0]],
  ['a digest', [...acme, 'auth', 'keys', 0, 'sha256']],
  ['a key name', [...acme, 'auth', 'keys', 0, 'scopes', 0]],
  ['a URL', [...acme, 'upstreams', 'tickets', 'url']],
  ['a type', [...acme, 'upstreams', 'tickets', 'type']],
  ['a member', [...acme, 'endpoints', 'default', 'upstreams', 0]],
  ['a prefix', [...acme, 'endpoints', 'default', 'prefix']]
]

t.test('no message repeats what a variable held, wherever it was put', async (t) => {
  for (const [name, steps] of places) {
    const text = words(withValue(steps, '${SECRET} \n', base()))
    t.match(text, 'ConfigError', `${name} is refused`)
    t.notMatch(text, 'CANARY', name)
  }
})

t.test('no message repeats what stood in the file itself', async (t) => {
  for (const [name, steps] of places) {
    const text = words(withValue(steps, `${canary} \n`, base()))
    t.match(text, 'ConfigError', `${name} is refused`)
    t.notMatch(text, 'CANARY', name)
  }
})

t.test('no message repeats a key that is refused, a header, a password in a URL or half a reference', async (t) => {
  const cases: [(string | number)[], unknown][] = [
    [[...acme, 'auth', 'keys', 0, 'key'], `${canary} with spaces`],
    [[...acme, 'auth', 'keys', 0, 'key'], 'CANARY'],
    [[...acme, 'auth', 'keys', 1], { name: 'x', key: goodKey, sha256: canary }],
    [[...acme, 'upstreams', 'tickets', 'headers', 'Authorization'], `${canary}\n`],
    [[...acme, 'upstreams', 'tickets', 'url'], `https://user:${canary}@a.example/`],
    [[...acme, 'upstreams', 'tickets', 'url'], `https://a.example/?token=${canary}#x`],
    [[...acme, 'upstreams', 'files', 'env', 'A'], `${canary}\${`],
    [[...acme, 'upstreams', 'files', 'args', 0], `${canary}\0`],
    [['store'], `redis://:${canary}@/0`],
    [['store'], `redis://:${canary}@h/x`]
  ]
  for (const [steps, value] of cases) {
    const text = words(withValue(steps, value))
    t.match(text, 'ConfigError', steps.join('.'))
    t.notMatch(text, 'CANARY', steps.join('.'))
  }
})

t.test('no message repeats a line that is not YAML', async (t) => {
  const lines = [
    `key: "${canary}`,
    `key: ${canary}: x`,
    `key: @${canary}`,
    `key: !${canary} x`,
    `key: *${canary}`,
    `key: "\\q${canary}"`,
    `[${canary}`,
    `\t${canary}`,
    `key: {a: \${X}${canary}}`,
    `key: |9${canary}`,
    `%${canary}\n---\na`
  ]
  for (const line of lines) {
    const text = words(`tenants:\n  a:\n    ${line}\n`)
    t.match(text, 'ConfigError', line)
    t.notMatch(text, 'CANARY', line)
  }
})
