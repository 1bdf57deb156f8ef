// Documents written to stall the process, to learn what its files hold, or to be shown what is secret.

import t from 'tap'
import { adminGateway } from '../kit/admin.ts'

interface Listed {
  readonly path: string
  readonly message: string
  readonly suggestion?: string
}

const listed = ({ json }: { readonly json: unknown }) => (json as { errors?: Listed[] }).errors ?? []

const document = (length: number, upstream: object) => {
  const name = (start: string, at: number) => `${start}${String(at).padStart(4, '0')}`.padEnd(59, start)
  const indices = Array.from({ length }, (_, at) => at)
  return {
    auth: {},
    upstreams: Object.fromEntries(indices.map((at) => [name('a', at), upstream])),
    endpoints: { e: { upstreams: indices.map((at) => name('b', at)) } }
  }
}

t.test('of many problems the first are listed, and names are compared for a few of them only', async (t) => {
  const { call } = await adminGateway(t, { upstreams: {} })
  const plan = (tree: object) => call('POST', '/v1/plan', { body: { tenants: { initech: tree } } })
  for (const [url, suggested] of [
    ['http://127.0.0.1:1', 20],
    ['x', 0]
  ] as const) {
    const tree = document(600, { url })
    t.ok(JSON.stringify(tree).length > 50_000)
    const answer = await plan(tree)
    t.equal(answer.status, 422, answer.text.slice(0, 200))
    const problems = listed(answer)
    t.equal(problems.length, 200)
    t.equal(problems.filter(({ suggestion = '' }) => /^(?:Did you mean|It has)/.test(suggestion)).length, suggested)
    t.match(problems.at(-1), { path: '', message: /^has \d+ more problems$/ })
  }
  const few = await plan({
    auth: {},
    upstreams: { files: { url: 'http://127.0.0.1:1' } },
    endpoints: { e: { upstreams: ['fiels'] } }
  })
  t.match(listed(few), [{ path: 'endpoints.e.upstreams[0]', suggestion: 'Did you mean "files"?' }])
  t.equal(listed(few).length, 1)
})

t.test('the problems of a hundred documents together are as many as those of one', async (t) => {
  const { call } = await adminGateway(t, { upstreams: {} })
  const tree = document(45, { url: 'http://127.0.0.1:1' })
  const tenants = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`t${at}`, tree]))
  const answer = await call('POST', '/v1/plan', { body: { tenants } })
  t.equal(answer.status, 422, answer.text.slice(0, 200))
  t.equal(listed(answer).length, 200)
  t.match(listed(answer)[0], { path: /^t0\.endpoints/ })
  t.match(listed(answer).at(-1), { path: '', message: /^has 26 more problems, and 15 tenants not read yet$/ })
})

t.test(
  'what is wrong with a condition that comes from a variable is said without the text of the variable',
  async (t) => {
    const secret = 'hunter2_is_secret'
    process.env['GATEHOUSE_TEST_NO_CONDITION'] = secret
    t.teardown(() => delete process.env['GATEHOUSE_TEST_NO_CONDITION'])
    const { call } = await adminGateway(t, { upstreams: {} })
    const ruled = (when: string) => ({
      auth: {},
      upstreams: {},
      policy: { default: 'allow', rules: [{ name: 'r', effect: 'deny', what: { kinds: ['tool'] }, when }] }
    })
    const plan = (when: string) => call('POST', '/v1/plan', { body: { tenants: { initech: ruled(when) } } })
    const inserted = await plan('${GATEHOUSE_TEST_NO_CONDITION}')
    t.match(
      listed(inserted),
      [{ path: 'policy.rules[0].when', message: 'refers to what is no condition' }],
      inserted.text
    )
    t.notMatch(inserted.text, /hunter2/)
    t.match(listed(await plan(secret)), [{ message: /hunter2/ }], 'what stands there itself is quoted')
  }
)
