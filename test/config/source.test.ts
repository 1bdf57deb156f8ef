import t from 'tap'
import { base, compiled, problemsOf } from './kit.ts'

const yaml = (upstream: string) => `tenants:
  acme:
    auth: none
    upstreams:
      files:
        command: npx
${upstream
  .split('\n')
  .map((row) => `        ${row}`)
  .join('\n')}
`

t.test('YAML and JSON, with tabs too, are read alike', async (t) => {
  t.same(problemsOf(yaml('args: [a]')), [])
  t.same(compiled(JSON.stringify(base(), null, '\t')), compiled(JSON.stringify(base())))
})

t.test('every problem has the line of its own key', async (t) => {
  const problems = problemsOf(yaml('argz: [a]\nenv:\n  A: b\n  B: 1\ncwd: ""\nisolation:'))
  t.same(
    problems.map(({ path, line }) => [path.replace(/.*files\./, ''), line]),
    [
      ['argz', 7],
      ['env.B', 10],
      ['cwd', 11],
      ['isolation', 12]
    ]
  )
})

t.test('a duplicate key is told with both of its lines', async (t) => {
  t.match(problemsOf(yaml('cwd: /a\ncwd: /b')), [
    { path: 'tenants.acme.upstreams.files.cwd', line: 8, message: /twice, first on line 7/ }
  ])
  t.match(problemsOf('{"tenants": {"a": {"auth": "none", "upstreams": {}}, "a": {"auth": "none", "upstreams": {}}}}'), [
    { path: 'tenants.a', message: /twice/ }
  ])
})

t.test('a syntax error is told with its line and what to do', async (t) => {
  const cases = [
    ['args: [a', /bracket that is not closed/],
    ['cwd: "a', /lacks a quote, bracket/],
    ['args: *x', /anchor that is not defined/],
    ['args: !!js/function a', /tag/],
    ['env: { A: ${B} }', /cannot be read/],
    ['cwd: "\\q"', /escape/],
    ['cwd: a: b', /second ": "/],
    ['cwd: @a', /reserves/],
    ['<<: { cwd: a }', /merge key/],
    ['__proto__: { a: b }', /no possible key/]
  ] as const
  for (const [text, message] of cases) {
    const [first] = problemsOf(yaml(text))
    t.match(first, { message, suggestion: String }, text)
    t.ok(first?.line === 7 || first?.line === 8, `${text} is on line ${first?.line}`)
  }
  t.match(problemsOf(yaml('env: { A: ${B} }')), [{ suggestion: /in quotes/ }])
})

t.test('a reference in braces is fine in quotes', async (t) => {
  t.same(problemsOf(yaml('env: { A: "${B}" }'), { env: { B: 'c' } }), [])
})

t.test('a second document, an empty file and a list are refused', async (t) => {
  t.match(problemsOf(`${yaml('args: [a]')}---\na: b\n`), [{ message: /second document/ }])
  t.match(problemsOf('# nothing\n'), [{ path: '', message: /empty/ }])
  t.match(problemsOf('- a\n'), [{ path: '', message: /must be a map/ }])
})

t.test('aliases work, and neither a bomb of them nor one of itself does harm', async (t) => {
  t.same(problemsOf(yaml('env: &e { A: b }\n').replace('npx', '&c npx') + '      more: { command: *c, env: *e }\n'), [])
  const bomb = [
    'a: &a [x,x,x,x,x,x,x,x,x]',
    ...'bcdefghi'.split('').map((name, at) => `${name}: &${name} [${`*${'abcdefghi'[at]},`.repeat(9)}]`)
  ].join('\n')
  t.match(
    problemsOf(bomb).find(({ path }) => path === ''),
    { message: /more than 100000 values/ }
  )
  t.match(problemsOf(yaml('args: &a [*a]')).at(0), { message: /nested deeper|list|string/ })
})

t.test('a file of more than 4 MiB is refused without being read', async (t) => {
  t.match(problemsOf(`# ${'x'.repeat(4 * 1024 * 1024)}`), [{ message: /larger than 4 MiB/ }])
})

t.test('a name such as 123 or true is read as written', async (t) => {
  t.same(problemsOf('tenants: { 123: { auth: none, upstreams: { true: { command: a }, 0x1F: { command: b } } } }'), [])
  t.same(
    [
      ...compiled(
        'tenants: { 123: { auth: none, upstreams: { true: { command: a }, 0x1F: { command: b } } } }'
      ).tenants.values()
    ].flatMap(({ id, upstreams }) => [id, ...upstreams.keys()]),
    ['123', 'true', '0x1F']
  )
})
