// The work of a plan for callers: bounded by tools times rules, in steps, and paid for by whoever asks.

import t from 'tap'
import { callerChanges } from '../../src/admin/configuration/access-changes.ts'
import {
  callerClasses,
  looksAtCaller,
  looksAtClass,
  looksOfPlan,
  type LooksLeft
} from '../../src/admin/configuration/planned/caller-classes.ts'
import type { Principal } from '../../src/auth/principal.ts'
import type { Steps } from '../../src/time/turns.ts'
import { keyPrincipal } from '../../src/auth/principal.ts'
import { compileConfig } from '../../src/config/load.ts'
import { endpointName, tenantId, upstreamName } from '../../src/protocol/messages.ts'
import { buildCatalog } from '../../src/relay/catalog/catalog.ts'
import { createVisibleCatalogs, type Viewer } from '../../src/relay/catalog/visible.ts'
import { adminGateway, adminKeys, adminSection } from '../kit/admin.ts'
import { legacyClient } from '../kit/client.ts'
import { listing } from '../kit/listing.ts'
import { startUpstream } from '../kit/upstream.ts'

const id = tenantId('acme')
const toolCount = 40
const ruleCount = 2_000
const twenty = listing({
  tools: Array.from({ length: toolCount }, (_, at) => ({ name: `t${at}`, inputSchema: { type: 'object' } }))
})

/** @param kinds of people whom rules tell apart: by default everybody has rules of their own */
function placeOf(people: number, kinds = people) {
  const rules = Array.from({ length: ruleCount }, (_, at) => ({
    name: `r${at}`,
    effect: 'deny',
    who: { keys: kinds === people ? [`k${at % people}`, 'all'] : [`*${at % kinds}`] },
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

type Decide = ReturnType<typeof buildCatalog>['decide']

/** @returns what the catalogs of the gateway answer, with the decisions counted */
function counted() {
  const visible = createVisibleCatalogs()
  const known = new WeakMap<object, ReturnType<typeof buildCatalog>>()
  const deciders = new WeakMap<Decide, Decide>()
  const made = { decisions: 0, catalogOf }
  function catalogOf(viewer: Viewer) {
    const whole = known.get(viewer.endpoint) ?? buildCatalog(viewer.endpoint, new Map([[upstreamName('up'), twenty]]))
    known.set(viewer.endpoint, whole)
    const view = visible(viewer, whole)
    if (view === whole) return whole
    const { decide: own } = view
    const decide: typeof own =
      deciders.get(own) ??
      ((kind, route) => {
        made.decisions++
        return own(kind, route)
      })
    deciders.set(own, decide)
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

/** What becomes of it, and how many tools are decided between two steps at most. */
function done<T>(steps: Steps<T>, services: { readonly decisions: number }): { value: T; most: number } {
  let [most, before] = [0, services.decisions]
  for (;;) {
    const { done, value } = steps.next()
    most = Math.max(most, services.decisions - before)
    before = services.decisions
    if (done === true) return { value, most }
  }
}

function changesAt(place: ReturnType<typeof placeOf>, callers: readonly Principal[], left: LooksLeft) {
  const services = counted()
  const classes = done(callerClasses([undefined, place], callers, services, left), services).value
  t.equal(services.decisions, 0, 'whom rules are about is found without a look at tools')
  const looks = looksAtClass(undefined, 0) + looksAtClass(place, toolCount)
  const { value, most } = done(callerChanges([undefined, place], looks, classes, services, left), services)
  return { value, most, classes: classes.classes.length, decisions: services.decisions }
}

t.test('between two steps at most one tool is decided, and the bound is of tools times rules', (t) => {
  const people = 400
  const place = placeOf(people)
  const callers = place.tenant.auth.keys.map((key) => keyPrincipal(id, key))
  const looks = looksAtClass(undefined, 0) + looksAtClass(place, toolCount)
  t.ok(looks > toolCount * ruleCount)
  const ofCallers = people * (looksAtCaller(undefined) + looksAtCaller(place))
  const bound = Math.floor((looksOfPlan().looks - ofCallers) / looks)
  t.ok(bound > 0 && bound < people, 'not all of them can be looked at')
  const { value, most, classes, decisions } = changesAt(place, callers, looksOfPlan())
  t.equal(classes, people, 'everybody has rules of their own')
  t.match(value, { known: bound, notLookedAt: people - bound, differ: bound })
  t.match(value.changes[0], { subject: 'k0', gains: { count: toolCount - 11 } }, 'rules are heeded')
  t.equal(most, 1)
  t.equal(decisions, bound * toolCount, 'nothing beyond the bound is decided')
  t.equal(changesAt(place, callers, { looks: looksAtCaller(place) * 9 }).value.notLookedAt, people, 'nor of callers')
  t.end()
})

t.test('whom the same rules are about are looked at once, and each of them is counted and told', (t) => {
  const [people, kinds] = [1_000, 10]
  const place = placeOf(people, kinds)
  const callers = place.tenant.auth.keys.map((key) => keyPrincipal(id, key))
  const { value, classes, decisions } = changesAt(place, callers, looksOfPlan())
  t.equal(classes, kinds)
  t.equal(decisions, kinds * toolCount)
  t.match(value, { known: people, notLookedAt: 0, differ: people })
  t.equal(value.changes.length, 20)
  t.equal(new Set(value.changes.map(({ subject }) => subject)).size, 20)
  t.end()
})

t.test('a plan is paid for by a tenant-admin before its callers are looked at', async (t) => {
  const tools = Array.from({ length: 100 }, (_, at) => ({ name: `t${at}`, inputSchema: { type: 'object' } }))
  const upstream = await startUpstream({ tools })
  t.teardown(() => upstream.close())
  const keys = adminSection.keys.map((each) => (each.name === 'globex' ? { ...each, tenants: ['team'] } : each))
  const rig = await adminGateway(t, { upstreams: {}, top: { admin: { ...adminSection, keys } } })
  const path = '/v1/tenants/team'
  const people = Array.from({ length: 200 }, (_, at) => ({ name: `k${at}`, key: `gh_key_of_nobody_${1e6 + at}` }))
  const rules = (name: string) =>
    Array.from({ length: 2_000 }, (_, at) => ({
      name: `r${at}`,
      effect: 'deny',
      who: { keys: [`k${at % people.length}`] },
      what: { names: [`${name}-${at}*`] }
    }))
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

t.test('a plan of several tenants names a thousand sessions in all, those of the first tenant first', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const rig = await adminGateway(t, { upstreams: {}, top: { limits: { sessionsPerPrincipal: 2_000 } } })
  const opened = { one: 600, two: 500, three: 0 }
  for (const [name, sessions] of Object.entries(opened)) {
    const key = `gh_key_of_${name}_0123456789`
    const body = { auth: { keys: [{ name: 'ci', key }] }, upstreams: { up: { url: upstream.url } } }
    const put = await rig.call('PUT', `/v1/tenants/${name}`, { body })
    t.equal(put.status, 201, put.text)
    for (let n = 0; n < sessions; n++) await legacyClient(rig.url('default', name), key)
  }
  const answer = await rig.call('POST', '/v1/plan', { body: { tenants: { one: null, two: null, three: null } } })
  t.equal(answer.status, 200, answer.text)
  const { tenants } = answer.json as {
    tenants: ReadonlyArray<{
      readonly tenant: string
      readonly endpoints: ReadonlyArray<{ readonly sessions: number; readonly toldSessions: readonly unknown[] }>
    }>
  }
  const told = Object.fromEntries(tenants.map(({ tenant, endpoints: [first] }) => [tenant, first?.sessions]))
  t.same(told, opened, 'all are counted')
  let left = 1_000
  for (const { endpoints } of tenants) {
    const [first] = endpoints
    const named = first?.toldSessions.length ?? 0
    t.equal(named, Math.min(left, first?.sessions ?? 0))
    left -= named
  }
  t.equal(left, 0)
})
