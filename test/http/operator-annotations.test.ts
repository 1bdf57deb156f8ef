// The annotations that an endpoint gives a tool are the operator's words: rules on tags look at them there, in lists,
// calls and explain alike, in both eras.

import t from 'tap'
import { adminGateway } from '../kit/admin.ts'
import { legacyClient } from '../kit/client.ts'
import { key } from '../kit/gateway.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'

const tools = ['echo', 'pid', 'args'].map((name) => ({
  name,
  inputSchema: { type: 'object' },
  ...(name === 'args' && { annotations: { readOnlyHint: true } })
}))

t.test('what an endpoint says of a tool is a tag there, and nowhere else', async (t) => {
  const upstream = await startUpstream({ tools })
  t.teardown(() => upstream.close())
  const hints = (annotations: object) => ({ annotations })
  const endpoint = (changes: object) => ({ upstreams: ['up'], prefix: '', tools: changes })
  const readers = {
    default: 'deny',
    rules: [{ name: 'readers', effect: 'allow', what: { tags: ['readOnly'] } }]
  }
  const rig = await adminGateway(t, {
    upstreams: { up: { url: upstream.url, trustAnnotations: true } },
    policy: {
      default: 'allow',
      rules: [{ name: 'keep', effect: 'deny', what: { tags: ['destructive'] } }]
    },
    endpoints: {
      default: endpoint({}),
      careful: endpoint({ 'up/echo': hints({ destructiveHint: true }), 'up/pid': hints({ destructiveHint: false }) }),
      readers: { ...endpoint({ 'up/echo': hints({ readOnlyHint: true }) }), policy: readers },
      doubtful: { ...endpoint({ 'up/args': hints({ readOnlyHint: false }) }), policy: readers }
    }
  })
  for (const [name, expected] of [
    ['default', ['echo', 'pid', 'args']],
    ['careful', ['pid', 'args']],
    ['readers', ['echo', 'args']],
    ['doubtful', []]
  ] as const) {
    const url = rig.url(name)
    const client = await legacyClient(url, key)
    const ask = (method: string, params: Record<string, unknown>) =>
      Promise.all([client.request(method, params), modernRequest(url, method, params, { token: key })])
    const lists = await until(`the list of ${name} is known`, async () => {
      const answers = await ask('tools/list', {})
      const found = answers.map(({ json }) => (json.result?.tools ?? []).map((each: { name: string }) => each.name))
      return found.every((each) => each.length === expected.length) ? found : undefined
    })
    t.same(lists, [expected, expected], `${name} lists in both eras`)
    for (const tool of tools.map((each) => each.name)) {
      const isListed = (expected as readonly string[]).includes(tool)
      for (const { json } of await ask('tools/call', { name: tool, arguments: {} }))
        t.equal(json.error?.data?.reason === 'invalid_params', !isListed, `${name} ${tool} is called so`)
      const body = { name: `up/${tool}`, caller: { key: 'test' } }
      const { json } = await rig.call('POST', `/v1/tenants/acme/endpoints/${name}/explain`, { body })
      t.equal((json as { outcome: string }).outcome, isListed ? 'allowed' : 'denied', `${name} ${tool} is told so`)
    }
  }
})
