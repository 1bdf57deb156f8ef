// The work of a plan for callers: bounded by tools times rules, in steps, and paid for by whoever asks.

import t from 'tap'
import { callerChanges, looksAt, looksOfPlan } from '../../src/admin/configuration/access-changes.ts'
import { keyPrincipal } from '../../src/auth/principal.ts'
import { compileConfig } from '../../src/config/load.ts'
import { endpointName, tenantId, upstreamName } from '../../src/protocol/messages.ts'
import { buildCatalog } from '../../src/relay/catalog/catalog.ts'
import { createVisibleCatalogs, type Viewer } from '../../src/relay/catalog/visible.ts'
import { adminGateway, adminKeys, adminSection } from '../kit/admin.ts'
import { listing } from '../kit/listing.ts'
import { startUpstream } from '../kit/upstream.ts'

const id = tenantId('acme')
const toolCount = 20
const ruleCount = 400
const twenty = listing({
  tools: Array.from({ length: toolCount }, (_, at) => ({ name: `t${at}`, inputSchema: { type: 'object' } }))
})

/** Everybody has rules of their own. */
function placeOf(people: number) {
  const rules = Array.from({ length: ruleCount }, (_, at) => ({
    name: `r${at}`,
    effect: 'deny',
    who: { keys: [`k${at % people}`, 'all'] },
    what: { names: [`*no-${at}*`, 't1*'] }
  }))
  const keys = Array.from({ length: people }, (_, at) => ({ name: `k${at}`, key: `gh_key_of_nobody_${1e6 + at}` }))
  const acme = {
    auth: { keys },
    upstreams: { up: { url: 'https://up.example/mcp' } },
    policy: { default: 'allow', rules }
  }
  const snapshot = compileConfig(JSON.stringify({ tenants: { acme } }), { path: 'test.json', env: {} })
  const tenant = snapshot.tenants.get(id)
  const endpoint = tenant?.endpoints.get(endpointName('default'))
  if (tenant === undefined || endpoint === undefined) throw new Error('no endpoint')
  return { snapshot, tenant, endpoint }
}

/** @returns what the catalogs of the gateway answer, with the decisions counted */
function counted() {
  const visible = createVisibleCatalogs()
  const known = new WeakMap<object, ReturnType<typeof buildCatalog>>()
  const made = { decisions: 0, catalogOf }
  function catalogOf(viewer: Viewer) {
    const whole = known.get(viewer.endpoint) ?? buildCatalog(viewer.endpoint, new Map([[upstreamName('up'), twenty]]))
    known.set(viewer.endpoint, whole)
    const view = visible(viewer, whole)
    const decide: typeof view.decide = (kind, route) => {
      made.decisions++
      return view.decide(kind, route)
    }
    if (view === whole) return whole
    // Its lists would decide about all of their entries at once.
    return new Proxy(view, {
      get(_, member) {
        if (member !== 'decide') throw new Error(`${String(member)} of a view is asked for`)
        return decide
      }
    })
  }
  return made
}

t.test('between two steps at most one tool is decided, and the bound is of tools times rules', (t) => {
  const people = 300
  const place = placeOf(people)
  const callers = place.tenant.auth.keys.map((key) => keyPrincipal(id, key))
  const looks = looksAt(undefined, 0) + looksAt(place, toolCount)
  t.equal(looks, 1 + (toolCount + 1) * (ruleCount + 1))
  const services = counted()
  const left = looksOfPlan()
  const bound = Math.floor(left.looks / looks)
  t.ok(bound < people, 'not all of them can be looked at')
  const steps = callerChanges([undefined, place], looks, callers, services, left)
  let [most, before] = [0, 0]
  for (;;) {
    const { done, value } = steps.next()
    most = Math.max(most, services.decisions - before)
    before = services.decisions
    if (done !== true) continue
    t.match(value, { known: bound, notLookedAt: people - bound, differ: bound })
    t.match(value.changes[0], { subject: 'k0', gains: { count: toolCount - 11 } }, 'rules are heeded')
    break
  }
  t.equal(most, 1)
  t.equal(services.decisions, bound * toolCount, 'nothing beyond the bound is decided')
  t.end()
})

t.test('a plan is paid for by a tenant-admin before its callers are looked at', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const keys = adminSection.keys.map((each) => (each.name === 'globex' ? { ...each, tenants: ['team'] } : each))
  const rig = await adminGateway(t, { upstreams: {}, top: { admin: { ...adminSection, keys } } })
  const path = '/v1/tenants/team'
  const people = Array.from({ length: 200 }, (_, at) => ({ name: `k${at}`, key: `gh_key_of_nobody_${1e6 + at}` }))
  const rules = (name: string) =>
    Array.from({ length: 1_000 }, (_, at) => ({ name: `r${at}`, effect: 'deny', what: { names: [`${name}-${at}*`] } }))
  const team = { auth: { keys: people }, upstreams: { up: { url: upstream.url } } }
  const put = await rig.call('PUT', path, { body: team })
  t.equal(put.status, 201, put.text)
  await rig.call('POST', `${path}/endpoints/default/catalog`, { body: {} })
  const key = adminKeys.globex
  const tenants = { team: { ...team, policy: { default: 'allow', rules: rules('a') } } }
  const free = await rig.call('POST', '/v1/plan', { body: { tenants } })
  t.equal(free.status, 200, free.text)
  t.equal((await rig.call('GET', path, { key })).status, 200)
  t.equal((await rig.call('POST', '/v1/plan', { key, body: { tenants } })).status, 200)
  t.equal((await rig.call('GET', path, { key })).status, 429)
  t.equal((await rig.call('GET', path)).status, 200, 'nobody else pays')
})
