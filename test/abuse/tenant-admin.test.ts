// Attack: by the administrator of one tenant, who may change nothing beyond it: plans and documents as large as they may
// be, of which each costs the process that serves everybody.

import t from 'tap'
import { adminCall, adminKeys, adminSection } from '../kit/admin.ts'
import { startUpstream } from '../kit/upstream.ts'
import { attacked } from './kit.ts'

const tools = Array.from({ length: 2_000 }, (_, at) => ({ name: `tool-${at}`, inputSchema: { type: 'object' } }))
/** The catalogs of all endpoints in one turn took six times as long. */
const maxTurnMs = 150

t.test('what a tenant-admin plans and changes is limited, and holds nobody up', async (t) => {
  const upstream = await startUpstream({ tools })
  t.teardown(() => upstream.close())
  const gateway = await attacked(t, {
    top: { admin: { ...adminSection, allowedHosts: ['127.0.0.1'] } },
    watchTurns: true
  })
  const { adminUrl } = await gateway.logged('the admin API', (line) => line['adminUrl'] !== undefined)
  const call = (method: string, path: string, key: string, body: object) =>
    adminCall(String(adminUrl), method, path, { key, body })
  const document = (endpoints: number, more: object = {}) => ({
    auth: { keys: [{ name: 'key', key: 'gh_key_of_globex_0123456789' }] },
    upstreams: { up: { type: 'http', url: upstream.url } },
    endpoints: Object.fromEntries(Array.from({ length: endpoints }, (_, at) => [`e${at}`, { upstreams: ['up'] }])),
    ...more
  })
  const plan = (key: string, tenant: object) => call('POST', '/v1/plan', key, { tenants: { globex: tenant } })

  t.equal((await call('PUT', '/v1/tenants/globex', adminKeys.platform, document(1))).status, 201)
  const known = await call('POST', '/v1/tenants/globex/endpoints/e0/catalog', adminKeys.globex, {})
  t.equal(known.status, 200, known.text.slice(0, 300))

  const neighbour = await gateway.neighbour()
  const turnMs = await gateway.longestTurnMs(maxTurnMs, async () => {
    // Of the platform, which is not limited: what is measured is the work, not the rate.
    const { status, json, text } = await plan(adminKeys.platform, document(250))
    t.equal(status, 200, text.slice(0, 300))
    t.match(json, { tenants: [{ endpoints: { length: 249 } }] })
    t.match(json, { tenants: [{ endpoints: [{ gains: { count: tools.length } }] }] }, 'their tools are known')
  })
  t.ok(turnMs < maxTurnMs, `${turnMs} ms of CPU in one turn`)
  t.same((await neighbour.stop()).failures, [])

  t.equal((await plan(adminKeys.globex, document(2))).status, 200)
  t.match(await plan(adminKeys.globex, document(257)), { status: 409, json: { detail: /256 endpoints/ } })

  const long = (at: number) =>
    document(1, { origins: Array.from({ length: 6_000 }, (_, n) => `https://o${n}.x${at}.y`) })
  const statuses = async (key: string) =>
    (await Promise.all(Array.from({ length: 10 }, (_, at) => plan(key, long(at))))).map(({ status }) => status)
  const ofTenant = await statuses(adminKeys.globex)
  t.ok(ofTenant.includes(200))
  t.ok(ofTenant.includes(429), `a large document counts as many requests: ${ofTenant.join()}`)
  t.same(new Set(await statuses(adminKeys.platform)), new Set([200]), 'not of those who bring in many')
})

/** Measured: 20 at most; judged in the turn of its request 180 (rules), 360 (tools) and 270 (upstreams). */
const maxDocumentMs = 100

const range = (length: number): number[] => Array.from({ length }, (_, at) => at)
const entries = <Value>(length: number, entry: (at: number) => [string, Value]) =>
  Object.fromEntries(range(length).map(entry))
/** Near 256 KiB each. @param mark so that no two are the same */
const largest: Readonly<Record<string, (mark: string) => object>> = {
  rules: (mark) => ({
    policy: {
      default: 'deny',
      rules: range(3_276).map((at) => ({ name: `r${at}`, effect: 'allow', what: { names: [`t${at}x${mark}`] } }))
    }
  }),
  'changed tools': (mark) => ({
    endpoints: {
      default: {
        upstreams: ['up'],
        tools: entries(4_096, (at) => [`up/t${at}`, { rename: `renamed_as_tool_${at}_${mark}` }])
      }
    }
  }),
  upstreams: (mark) => ({
    upstreams: entries(255, (at) => [
      at === 0 ? 'up' : `up${at}`,
      { url: `http://127.0.0.1:1/${at}/${mark}`, headers: entries(20, (n) => [`x-head-${n}`, `value ${n} ${mark}`]) }
    ])
  })
}

t.test('the largest documents of a tenant-admin are judged beside the calls of others', async (t) => {
  const gateway = await attacked(t, {
    top: { admin: { ...adminSection, allowedHosts: ['127.0.0.1'] } },
    watchTurns: true
  })
  const { adminUrl } = await gateway.logged('the admin API', (line) => line['adminUrl'] !== undefined)
  const call = (method: string, path: string, body: object, key: string = adminKeys.platform) =>
    adminCall(String(adminUrl), method, path, { key, body, headers: { 'if-match': '*' } })
  const small = {
    auth: { keys: [{ name: 'key', key: 'gh_key_of_globex_0123456789' }] },
    upstreams: { up: { url: 'http://127.0.0.1:1/' } },
    endpoints: { default: { upstreams: ['up'] } }
  }
  const [tenant, plan] = ['/v1/tenants/globex', '/v1/plan']
  t.equal((await adminCall(String(adminUrl), 'PUT', tenant, { key: adminKeys.platform, body: small })).status, 201)
  const ofTenant = await call('PUT', tenant, { ...small, ...largest['rules']?.('x') }, adminKeys.globex)
  t.equal(ofTenant.status, 200, 'a tenant-admin may bring one')
  let mark = 0
  for (const [name, members] of Object.entries(largest)) {
    const asked: Array<[string, string, (document: object) => object]> = [
      ['POST', plan, (document) => ({ tenants: { globex: document } })],
      ['PUT', tenant, (document) => document]
    ]
    for (const [method, path, bodyOf] of asked) {
      const turnMs = await gateway.longestTurnMs(maxDocumentMs, async () => {
        // Of the platform, which is not limited: what is measured is the work, not the rate.
        const { status, text } = await call(method, path, bodyOf({ ...small, ...members(`v${++mark}`) }))
        t.equal(status, 200, text.slice(0, 300))
      })
      t.ok(turnMs < maxDocumentMs, `${name}, ${method}: ${turnMs} ms of CPU in one turn`)
    }
  }

  // What changes nothing, and what is refused, is worked on as well: it counts as much.
  const same = { ...small, ...largest['rules']?.('x') }
  t.equal((await call('PUT', tenant, same)).status, 200)
  const foreign = { ...same, upstreams: { up: { command: 'sh' } } }
  const statuses = await Promise.all(
    range(10).map(async (at) => (await call('PUT', tenant, at % 2 === 0 ? same : foreign, adminKeys.globex)).status)
  )
  t.ok(statuses.includes(200))
  t.ok(statuses.includes(429), statuses.join())
})
