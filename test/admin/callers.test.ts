// Who has called today, whom rules are about, and tests that stand beside rules: told, run, and broken by a plan.

import t from 'tap'
import { createCallers } from '../../src/admin/callers/callers.ts'
import type { ObservedCall } from '../../src/observe/calls.ts'
import { adminGateway, adminKeys, globexKey } from '../kit/admin.ts'
import { key as apiKey } from '../kit/gateway.ts'
import { legacyClient } from '../kit/client.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { startUpstream } from '../kit/upstream.ts'

const upstream = await startUpstream()
t.teardown(() => upstream.close())
const up = { type: 'http', url: upstream.url }
const many = {
  default: 'deny',
  rules: Array.from({ length: 1_001 }, (_, n) => ({ name: `r${n}`, effect: 'allow', what: { names: [`x${n}`] } })),
  tests: Array.from({ length: 200 }, (_, n) => ({ name: `up/t${n}`, expect: 'denied' }))
}
const rig = await adminGateway(t, {
  upstreams: { up },
  tenants: { globex: { auth: { keys: [{ name: 'gus', key: globexKey }] }, upstreams: { up }, policy: many } }
})

t.test('whoever called is told, with a session or without one, to those who may see the tenant', async (t) => {
  const names = async () => {
    const { json } = await rig.call('GET', '/v1/tenants/acme/principals', { key: adminKeys.viewer })
    return (json as { items: Array<{ subject: string; calls: number }> }).items
  }
  t.same(await names(), [])
  await modernRequest(rig.url(), 'tools/call', { name: 'up__echo', arguments: {} }, { token: apiKey })
  const [only, ...others] = await names()
  t.same(others, [])
  t.match(only, {
    kind: 'key',
    issuer: 'urn:gatehouse:key',
    groups: [],
    firstSeenAt: /Z$/,
    lastSeenAt: /Z$/
  })
  const before = only?.calls ?? 0
  const client = await legacyClient(rig.url(), apiKey)
  await client.request('tools/list')
  t.ok(((await names())[0]?.calls ?? 0) > before)
  t.equal((await rig.call('GET', '/v1/tenants/acme/principals', { key: adminKeys.globexViewer })).status, 404)
})

t.test('rules say whom of today they are about; tests hold or do not, and a plan says which it breaks', async (t) => {
  const tests = [
    { caller: { key: 'tom' }, name: 'up/echo', expect: 'allowed' },
    { caller: { key: 'tom' }, name: 'up/pid', expect: 'allowed' },
    { caller: { key: 'nobody' }, name: 'up/pid', expect: 'denied' },
    { endpoint: 'other', name: 'up/echo', expect: 'denied' }
  ]
  const rules = [
    { name: 'echo', effect: 'allow', what: { names: ['echo'] } },
    { name: 'others', effect: 'allow', who: { keys: ['somebody-*'] } }
  ]
  const team = { auth: {}, upstreams: { up } }
  t.equal((await rig.call('PUT', '/v1/tenants/team', { body: team })).status, 201)
  const made = await rig.call('POST', '/v1/tenants/team/keys', { body: { name: 'tom' } })
  const put = await rig.call('PUT', '/v1/tenants/team/policy', { body: { default: 'deny', rules, tests } })
  t.match(put, { status: 201 }, put.text)
  const { key } = made.json as { key: string }
  await modernRequest(rig.url('default', 'team'), 'tools/list', {}, { token: key })
  t.match((await rig.call('GET', '/v1/tenants/team/endpoints/default/rules')).json, {
    items: [
      { name: 'echo', callers: { count: 1, names: ['tom'] } },
      { name: 'others', callers: { count: 0, names: [] } }
    ]
  })
  const path = '/v1/tenants/team/endpoints/default/policy-tests'
  t.match((await rig.call('GET', path)).json, {
    items: [
      { name: 'up/echo', holds: true, outcome: 'allowed', of: 'tenant', place: 1 },
      { name: 'up/pid', holds: false, outcome: 'denied' },
      { name: 'up/pid', holds: false, outcome: null, sentence: /no key "nobody"/ }
    ],
    failed: 2,
    nextCursor: null
  })
  t.equal((await rig.call('GET', path, { key: adminKeys.viewer })).status, 403, 'a viewer reads no rules')
  t.equal((await rig.call('GET', path, { key: adminKeys.globex })).status, 404)

  const { configuration } = (await rig.call('GET', '/v1/tenants/team')).json as { configuration: object }
  const policy = { default: 'deny', rules: rules.slice(1), tests: tests.slice(0, 1) }
  const plan = await rig.call('POST', '/v1/plan', { body: { tenants: { team: { ...configuration, policy } } } })
  t.match(plan.json, {
    tenants: [{ brokenTests: [{ endpoint: 'default', name: 'up/echo', sentence: /^Denied/ }] }]
  })
})

t.test('tests of many rules end at a bound, and count for the key that has them run', async (t) => {
  const path = '/v1/tenants/globex/endpoints/default/policy-tests?limit=200'
  const { items, failed } = (await rig.call('GET', path)).json as { items: unknown[]; failed: number }
  t.match(items.slice(-2), [{ outcome: 'denied' }, { outcome: null, sentence: /^Not run: / }])
  t.equal(failed, 1)
  const asked = Array.from({ length: 20 }, () => rig.call('GET', path, { key: adminKeys.globex }))
  const answers = await Promise.all(asked)
  t.same(new Set(answers.map(({ status }) => status)), new Set([200, 429]))
})

t.test('few are remembered, those of a tenant that floods first forgotten, and yesterday is not today', (t) => {
  let now = Date.parse('2026-07-28T12:00:00Z')
  const callers = createCallers({ now: () => now })
  const call = (tenant: string, subject: string): ObservedCall => ({
    request: { method: 'tools/list' },
    tenant: { id: tenant, audit: { required: false, arguments: false, redact: [] } },
    endpoint: { name: 'default' },
    principal: { kind: 'token', issuer: 'https://idp.example', subject, clientId: 'c' }
  })
  callers.meter.callEnded(call('quiet', 'ada'))
  for (let at = 0; at < 300; at++) callers.meter.callEnded(call('flood', `bot-${at}`))
  t.equal(callers.today('flood').length, 200)
  t.equal(callers.today('flood')[0]?.principal.subject, 'bot-299', 'the last one first')
  for (let tenant = 0; tenant < 30; tenant++)
    for (let at = 0; at < 100; at++) callers.meter.callEnded(call(`t${tenant}`, `bot-${at}`))
  t.equal(callers.today('quiet').length, 1)
  const all = ['quiet', 'flood', ...Array.from({ length: 30 }, (_, at) => `t${at}`)]
  t.equal(
    all.reduce((sum, each) => sum + callers.today(each).length, 0),
    2_000
  )
  now += 24 * 60 * 60 * 1000
  t.same(callers.today('quiet'), [])
  callers.meter.callEnded(call('quiet', 'ada'))
  t.match(callers.today('quiet'), [{ calls: 2 }])
  t.end()
})
