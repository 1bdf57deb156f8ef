// `explain` and `policy test`, as somebody types them.

import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { help, readArguments } from '../../src/cli/arguments.ts'
import { UsageError } from '../../src/cli/commands/command.ts'
import { runExplain, runPolicyTests } from '../../src/cli/policy.ts'

const bin = join(import.meta.dirname, '../../bin/gatehouse.mjs')

interface Printed {
  readonly code: number
  readonly out: string
}

/** In this process. @throws UsageError */
async function gatehouse(...argv: string[]): Promise<Printed> {
  const asked = readArguments(argv)
  if (asked.command === undefined) throw new Error('no command')
  const {
    options,
    operands: [operand = '']
  } = asked
  const lines: string[] = []
  const io = { env: {}, stdout: { write: (text: string) => lines.push(text) } }
  const code = await (argv[0] === 'explain'
    ? runExplain({ ...options, config: options['config'] ?? '' }, io)
    : runPolicyTests(operand, options, io))
  return { code, out: lines.join('') }
}

/** In a process of its own. */
function run(...args: string[]): Printed & { readonly err: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [bin, ...args], { encoding: 'utf8' })
  return { code: status ?? -1, out: stdout, err: stderr }
}

const config = `
tenants:
  acme:
    auth: { issuers: [{ issuer: https://idp.example.com }], keys: [{ name: ci, key: gh_key_0123456789abcdef }] }
    upstreams:
      files: { url: https://files.example.com/mcp, tags: { readOnly: [get_*] } }
      bank: { url: https://bank.example.com/mcp }
    endpoints:
      default: { upstreams: [files] }
      all: { upstreams: [files, bank], deny: { tools: [files/rm] }, policy: { default: allow, rules: [] } }
      fixed: { upstreams: [bank], tools: { bank/pay: { fixed: { currency: EUR }, defaults: { amount: 5 } } } }
    policy:
      default: deny
      rules:
        - { name: developers, effect: allow, who: { groups: [developers] }, what: { tags: [readOnly] } }
        - { name: small, effect: allow, what: { kinds: [tool], names: [pay] }, when: "args.amount <= 100" }
        - { name: step-up, effect: requires, what: { names: [pay] }, scopes: [pay] }
`

t.test('explain says why, rule by rule, as sentences and as data', async (t) => {
  const file = join(t.testdir({ 'g.yaml': config }), 'g.yaml')
  const explain = (...rest: string[]) => gatehouse('explain', '--config', file, '--endpoint', 'acme/all', ...rest)
  t.same(await explain('--tool', 'files/put', '--caller', '{ groups: [developers] }'), {
    code: 0,
    out:
      'Denied: no rule of the tenant allows it, and its default is deny. It is answered like a name that nobody has.\n' +
      '  - developers (allow, tenant): what.tags does not match\n' +
      '  - small (allow, tenant): what.names does not match\n' +
      '  - step-up (requires, tenant): what.names does not match\n'
  })
  const outcome = async (...rest: string[]): Promise<unknown> =>
    (JSON.parse((await explain('--json', ...rest)).out) as { outcome: unknown }).outcome
  t.equal(await outcome('--tool', 'files/get_a', '--caller', '{ groups: [developers] }'), 'allowed')
  const allowed = await explain('--tool', 'files/get_a', '--caller', '{ groups: [developers] }')
  t.match(allowed.out, /^Allowed[^]*\nA file does not say whether there is files\/get_a\.\n$/)
  t.equal(await outcome('--tool', 'files/rm'), 'not-offered')
  const pay = ['--tool', 'bank/pay', '--caller', '{"scopes":["pay"]}']
  t.equal(await outcome(...pay), 'depends')
  t.equal(await outcome(...pay, '--arguments', '{ amount: 5 }'), 'allowed')
  t.match(
    (await explain(...pay, '--arguments', '{ amount: 500 }')).out,
    /^Listed, but these arguments are refused: no rule of/
  )
  t.match((await explain('--tool', 'bank/pay')).out, 'needs the scope pay, which the caller lacks (the rule step-up)')
})

t.test('policy test tells which tests fail and why, and exits with 1', async (t) => {
  const folder = t.testdir({
    'g.yaml': config,
    'good.yaml':
      'config: g.yaml\ntests:\n' +
      '  - { endpoint: /t/acme/mcp, caller: { groups: [developers] }, tool: files/get_page, expect: allowed }\n' +
      '  - { name: automation, endpoint: acme, caller: { key: ci }, prompt: files/get_page, expect: denied }\n',
    'bad.yaml':
      'config: g.yaml\ntests:\n  - { endpoint: acme, caller: { groups: [dev] }, tool: files/get_page, expect: allowed }\n'
  })
  t.same(run('policy', 'test', join(folder, 'good.yaml')), {
    code: 0,
    out: 'ok 1 - {"groups":["developers"]} /t/acme/mcp files/get_page\nok 2 - automation\n2 tests passed, 0 failed\n',
    err: ''
  })
  const { code, out } = await gatehouse('policy', 'test', join(folder, 'bad.yaml'))
  t.equal(code, 1)
  t.match(out, /^not ok 1 - .*\n {2}expected allowed, is denied\. Denied: .*\n {2}- developers .*who\.groups/)
  t.match(out, /0 tests passed, 1 failed\n$/)
  const asData = run('policy', 'test', join(folder, 'bad.yaml'), '--json')
  t.equal(asData.code, 1)
  t.match(JSON.parse(asData.out), {
    passed: 0,
    failed: 1,
    tests: [{ title: /get_page$/, isMet: false, expected: 'allowed', outcome: 'denied', sentence: /^Denied: / }]
  })
  t.match((JSON.parse(asData.out) as { tests: [{ rules: object[] }] }).tests[0].rules[0], {
    name: 'developers',
    applies: false
  })
  const good = await gatehouse('policy', 'test', join(folder, 'good.yaml'), '--json')
  t.equal(good.code, 0)
  t.match(JSON.parse(good.out), { passed: 2, failed: 0, tests: [{ isMet: true }, { title: 'automation' }] })
  const broken = join(
    t.testdir({ 'g.yaml': 'tenants: { a: { upstrems: {} } }', 't.yaml': 'config: g.yaml\ntests: []' }),
    't.yaml'
  )
  const refused = await gatehouse('policy', 'test', broken, '--json')
  t.equal(refused.code, 1)
  t.match(JSON.parse(refused.out), { file: /g\.yaml$/, problems: [{ path: /^tenants\.a/, message: String }] })
})

t.test('policy test runs the tests that stand in the policies of a configuration', async (t) => {
  const tests = (expect: string) =>
    `      tests: [{ endpoint: all, caller: { groups: [developers] }, name: files/put, expect: ${expect} }]\n`
  const own = 'tests: [{ caller: { key: ci }, kind: prompt, name: files/get_page, expect: denied }]'
  const configured = config.replace('default: allow, rules: []', `default: allow, rules: [], ${own}`)
  const folder = t.testdir({ 'good.yaml': configured + tests('denied'), 'bad.yaml': configured + tests('allowed') })
  t.same(await gatehouse('policy', 'test', join(folder, 'good.yaml')), {
    code: 0,
    out:
      'ok 1 - {"groups":["developers"]} acme/all files/put\n' +
      'ok 2 - {"key":"ci"} acme/all files/get_page\n' +
      '2 tests passed, 0 failed\n'
  })
  const { code, out } = await gatehouse('policy', 'test', join(folder, 'bad.yaml'))
  t.equal(code, 1)
  t.match(out, /^not ok 1 .*\n {2}expected allowed, is denied\. /)
})

t.test('policy test exits with 1 where there are no tests, and says where they go', async (t) => {
  const folder = t.testdir({ 'g.yaml': config, 'none.yaml': 'config: g.yaml\ntests: []\n' })
  for (const file of [join(folder, 'g.yaml'), join(folder, 'none.yaml')]) {
    const problem = `${file} has no tests. Put some under "tests", or under "policy.tests" of a configuration.`
    t.same(await gatehouse('policy', 'test', file), { code: 1, out: `${problem}\n` })
    const { code, out } = await gatehouse('policy', 'test', file, '--json')
    t.same({ code, out: JSON.parse(out) }, { code: 1, out: { passed: 0, failed: 0, tests: [], problem } })
  }
})

t.test('what cannot be asked is refused with what could be', async (t) => {
  const folder = t.testdir({
    'g.yaml': config,
    'two.yaml': 'config: g.yaml\ntests: [{ endpoint: acme, tool: files/a, prompt: files/b, expect: allowed }]\n',
    'odd.yaml': 'config: g.yaml\ntests: [{ endpoint: acme, tool: files/a, expect: yes }]\n',
    'none.yaml': 'tests: []\n'
  })
  const explain = (...rest: string[]) => gatehouse('explain', '--config', join(folder, 'g.yaml'), ...rest)
  const test = (file: string) => gatehouse('policy', 'test', join(folder, file))
  for (const [answer, message] of [
    [() => explain('--tool', 'files/a'), /^explain needs --endpoint: /],
    [
      () => explain('--endpoint', 'acm', '--tool', 'files/a'),
      /no endpoint "acm"\. Known: \/t\/acme\/mcp, \/t\/acme\/all\/mcp/
    ],
    [() => explain('--endpoint', 'acme', '--tool', 'file/a'), /names no upstream of acme.*files, bank/],
    [() => explain('--endpoint', 'acme'), /one of --tool, --prompt, --resource, --template/],
    [
      () => explain('--endpoint', 'acme', '--tool', 'files/a', '--caller', '{ grups: [a] }'),
      /no "grups"\. Known: subject/
    ],
    [() => explain('--endpoint', 'acme', '--tool', 'files/a', '--caller', '{ key: c }'), /no key "c"\. Known: ci/],
    [
      () => explain('--endpoint', 'acme', '--tool', 'files/a', '--caller', '{ key: ci, groups: [a] }'),
      /An API key has no "groups"/
    ],
    [() => explain('--endpoint', 'acme', '--tool', 'files/a', '--caller', '{'), /--caller is neither YAML nor JSON/],
    [() => explain('--endpoint', 'acme', '--tool', 'files/a', '--arguments', '5'), /arguments must be an object/],
    [() => explain('--endpoint', 'acme', '--tool', 'files/a', '--at', 'soon'), /"soon" is no time/],
    [() => test('two.yaml'), /test 1 must name exactly one of/],
    [() => test('odd.yaml'), /test 1 needs "expect", a text|"expect" must be one of/],
    [() => test('none.yaml'), /must have "config"/],
    [() => test('nowhere.yaml'), /cannot be read/]
  ] as const) {
    const error = await answer().catch((error: unknown) => error)
    t.ok(error instanceof UsageError)
    t.match((error as Error).message, message)
  }
  const { code, err } = run('explain', '--tool', 'a/b')
  t.equal(code, 2)
  t.equal(
    err,
    'gatehouse: explain needs --endpoint: /t/TENANT/mcp, TENANT or TENANT/ENDPOINT.\n' +
      'Run "gatehouse help explain" for its options and examples.\n'
  )
  const scraper = run('admin-key', 'new', '--name', 'scraper', '--role', 'metrics', '--tenants', 'acme')
  t.match(scraper, { code: 2, out: '', err: /The role metrics is for all tenants: leave --tenants out/ })
  t.same(readArguments(['policy', 'test', '--help']), { command: undefined, text: help(['policy', 'test']) })
  t.match(help(['policy', 'test']), /^Usage: gatehouse policy test \[options\] <file>\n/)
})

t.test('the example of the page is what the command prints', async (t) => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/policy.md'), 'utf8')
  const example = /### Developers may read[^`]*```yaml\n([^`]*)```/.exec(page)?.[1] ?? ''
  const [, command = '', expected] = /```console\n\$ gatehouse (.*)\n([^`]*)```/.exec(page) ?? []
  const indented = example.replace(/^/gm, '    ')
  const folder = t.testdir({
    'gatehouse.yaml': `tenants:\n  acme:\n    auth: { issuers: [{ issuer: https://idp.example.com }] }\n${indented}`
  })
  const args = [...command.replace('gatehouse.yaml', join(folder, 'gatehouse.yaml')).matchAll(/'([^']*)'|(\S+)/g)]
  t.equal((await gatehouse(...args.map(([, quoted, plain]) => quoted ?? plain ?? ''))).out, expected)
})
