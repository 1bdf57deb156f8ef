// What a change would do, before anybody makes it: who gains and loses which tools, prompts, resources and
// templates, which sessions are told or end, and which upstreams get new connections and processes.

import type { Static } from 'typebox'
import { closedObject } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import { unmatchedTargets } from '../../config/policy/unmatched-targets.ts'
import type { Tenant } from '../../config/snapshot.ts'
import { tenantId } from '../../protocol/messages.ts'
import { sessionsLookedAt } from '../../store/keys.ts'
import { runSteps, type Steps } from '../../time/turns.ts'
import { callersToday } from '../callers/callers.ts'
import { charsOfRecords } from '../live/sessions.ts'
import { administrators, AdminReply, defineRoute, type AdminServices } from '../route.ts'
import { callersOf } from './access-changes.ts'
import { etagOf, versionFor } from './conditions.ts'
import { rulesTried, testResults } from './policy-tests.ts'
import { assumedLists } from './planned/assumed-lists.ts'
import { charsOf, looksOfPlan } from './planned/caller-classes.ts'
import {
  changedEndpoints,
  changeOf,
  differs,
  EndpointPlan,
  endpointPlans,
  kindOfChange,
  namesOfPlan,
  withClasses
} from './planned/endpoint-plans.ts'
import { PlanBody, changeOfPlan } from './planned/plan-change.ts'
import { classesToCompare, openSessions } from './planned/told-sessions.ts'

/** The most failing tests of a tenant that are listed. */
const maxBrokenTests = 20

const UpstreamPlan = closedObject({
  upstream: Type.String(),
  change: kindOfChange,
  type: Type.Enum(['stdio', 'http'], {
    description: '`stdio`: its processes end after their calls, and new ones start.'
  })
})

const TenantPlan = closedObject({
  tenant: Type.String(),
  change: kindOfChange,
  callersChange: Type.Boolean({
    description: 'Whether its issuers, keys or required scopes change. Callers are then checked again.'
  }),
  endpoints: Type.Array(EndpointPlan, { description: 'Endpoints that change for their clients.' }),
  brokenTests: Type.Array(closedObject({ endpoint: Type.String(), name: Type.String(), sentence: Type.String() }), {
    description: `Tests of its policies that would not hold any more: the first ${maxBrokenTests}.`
  }),
  notes: Type.Array(Type.String(), {
    description:
      'Accepted parts that may be mistakes: rules and limits of calls that name no upstream or tag of the tenant.'
  }),
  upstreams: Type.Array(UpstreamPlan, { description: 'Upstreams that are connected anew, or no longer.' })
})

const PlanResult = closedObject({
  version: Type.Integer({
    description:
      'The present version; for a key of some tenants, that of their last change. Send it with `POST /v1/apply` to ' +
      'make exactly the planned change.'
  }),
  tenants: Type.Array(TenantPlan, {
    description: 'The tenants that would change. Empty: the configuration is the wanted one already.'
  })
})

function upstreamPlans(before: Tenant | undefined, after: Tenant | undefined): Array<Static<typeof UpstreamPlan>> {
  const [old, now] = [before, after].map((tenant) => new Map(tenant?.upstreams))
  const names = [...new Set([...(old?.keys() ?? []), ...(now?.keys() ?? [])])].sort()
  return names.flatMap((name) => {
    const [was, is] = [old?.get(name), now?.get(name)]
    const { type } = is ?? was ?? {}
    return type === undefined || was?.hash === is?.hash ? [] : [{ upstream: name, change: changeOf(was, is), type }]
  })
}

/** Yields the tests that fail after the change, whether or not they passed before. */
function* brokenTests(
  tenant: Tenant,
  now: number,
  at: Parameters<typeof testResults>[3]
): Steps<Static<typeof TenantPlan>['brokenTests']> {
  const broken: Static<typeof TenantPlan>['brokenTests'] = []
  for (const endpoint of tenant.endpoints.values())
    for (const { holds, name, sentence } of yield* testResults(tenant, endpoint, now, at))
      if (!holds && broken.length < maxBrokenTests) broken.push({ endpoint: String(endpoint.name), name, sentence })
  return broken
}

/** @returns how many of each tenant, where it has any: the bound is of the whole plan */
async function sessionsToRead(tenants: readonly string[], { index }: AdminServices['sessions']) {
  const counts = new Map<string, number>()
  let left = sessionsLookedAt
  for (const id of tenants) {
    const count = left === 0 ? 0 : await index.count(tenantId(id), left)
    if (count > 0) counts.set(id, count)
    left -= count
  }
  return counts
}

export const planRoutes = [
  defineRoute(
    {
      method: 'POST',
      path: '/v1/plan',
      isSafe: true,
      roles: administrators,
      summary: 'Returns what a change would do, or refuses it as `POST /v1/apply` would. Changes nothing.',
      body: PlanBody,
      response: PlanResult
    },
    async (request, services): Promise<AdminReply> => {
      const { control, snapshot, sessions, wall } = services
      const { name, role } = request.administrator
      const {
        version: judged,
        changes,
        after
      } = await control.preview({
        author: { name, role },
        action: 'plan',
        ...(await changeOfPlan(request, services)),
        charge: request.administrator.charge,
        isBehindFile: request.body.behindFile
      })
      // Another change of these tenants may have come since: then this is not what it was judged on.
      const version = Math.min(judged, versionFor(request.administrator, control))
      const before = snapshot()
      const lists = assumedLists(before, services)
      const assumed = { catalogOf: lists.catalogOf, lists }
      const tested = { snapshot: after, catalogOf: lists.catalogOf }
      const left = { ...looksOfPlan(), ...namesOfPlan() }
      const drafts = await Promise.all(
        changes.map(async ({ tenant: id, ...change }) => {
          const [old, now] = [before, after].map((each) => each.tenants.get(tenantId(id)))
          const turn = { tenant: id, caller: 'plan' }
          const seen = callersToday(services.callers, id)
          const changed = await runSteps(changedEndpoints([before, after], id, assumed), turn)
          return { id, change, old, now, turn, changed, callers: callersOf([old, now], seen) }
        })
      )
      const sum = (looks: readonly number[]): number => looks.reduce((all, each) => all + each, 0)
      const ofCallers = drafts.map(
        ({ changed, callers }) => sum(changed.map((each) => each.looks.caller)) * callers.length
      )
      const classed = await Promise.all(
        drafts.map(async ({ changed, callers, ...rest }) => ({
          ...rest,
          changed: await runSteps(withClasses(changed, callers, assumed, left), rest.turn)
        }))
      )
      const toRead = await sessionsToRead(
        classed.flatMap(({ id, changed }) => (changed.length > 0 ? [id] : [])),
        sessions
      )
      const ofClasses = classed.flatMap(({ id, changed }) =>
        changed.map(({ places, looks, classes }) => {
          const compared = toRead.has(id) ? classesToCompare(places, classes) : []
          return looks.class * (classes.classes.length + compared.length)
        })
      )
      const ofTests = drafts.flatMap(({ now }) =>
        now === undefined ? [] : [...now.endpoints.values()].map((endpoint) => rulesTried(now, endpoint))
      )
      const ofSessions = charsOfRecords(sum([...toRead.values()]))
      // Once, and before sessions are read: after a first payment a second one could be refused, each time anew.
      request.administrator.charge(charsOf(sum([...ofCallers, ...ofClasses])) + sum(ofTests) + ofSessions)
      const tenants: Array<Static<typeof TenantPlan>> = []
      // One after the other: the first ones name their sessions first, and the store is not asked for all at once.
      for (const { id, change, old, now, turn, changed } of classed) {
        const count = toRead.get(id) ?? 0
        const open = openSessions(count === 0 ? [] : await sessions.index.list(tenantId(id), count))
        tenants.push({
          tenant: id,
          change: changeOf(change.before, change.after),
          callersChange: differs(old?.auth, now?.auth),
          endpoints: await runSteps(endpointPlans(changed, open, assumed, left), turn),
          brokenTests: now === undefined ? [] : await runSteps(brokenTests(now, wall.now(), tested), turn),
          notes: now === undefined ? [] : await runSteps(unmatchedTargets(now.unstopped ?? now), turn),
          upstreams: upstreamPlans(old, now)
        })
      }
      const body: Static<typeof PlanResult> = { version, tenants }
      return new AdminReply(body, { ETag: etagOf(version) })
    }
  )
] as const
