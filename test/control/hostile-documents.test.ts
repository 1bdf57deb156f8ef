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
