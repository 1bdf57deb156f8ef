// What a change would do, before anybody makes it: who gains and loses which tools, which sessions are told or end,
// and which upstreams get new connections and processes.

import type { Static } from 'typebox'
import type { Principal } from '../../auth/principal.ts'
import { closedObject } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import type { Snapshot, Tenant } from '../../config/snapshot.ts'
import { canonicalJsonOf } from '../../protocol/json-text.ts'
import { tenantId } from '../../protocol/messages.ts'
import { definitionsOf } from '../../relay/catalog/client-catalogs.ts'
import { sessionsListed } from '../../store/keys.ts'
import { runSteps, type Steps } from '../../time/turns.ts'
import { callersToday } from '../callers/callers.ts'
import { administrators, AdminReply, defineRoute, type AdminServices } from '../route.ts'
import {
  CallerChanges,
  callerChanges,
  callersOf,
  looksAt,
  type LooksLeft,
  looksOfPlan,
  maxLooksOfPlan,
  ToolNames,
  without
} from './access-changes.ts'
import { etagOf } from './conditions.ts'
import { testResults } from './policy-tests.ts'
import { catalogWithoutRules, type EndpointPlace } from './rule-effects.ts'
import { PlanBody, wishOfPlan } from './planned/plan-wish.ts'

/** Of a tenant: those that are told. */
const maxBrokenTests = 20

const kindOfChange = Type.Enum(['made', 'changed', 'removed'], { description: 'What becomes of it.' })
const EndpointPlan = closedObject({
  endpoint: Type.String(),
  change: kindOfChange,
  gains: ToolNames,
  loses: ToolNames,
  rulesChange: Type.Boolean({
    description: 'Of its policy or that of the tenant: `gains` and `loses` leave rules out, `callers` does not.'
  }),
  callers: CallerChanges,
  unknown: Type.Array(Type.String(), {
    description: 'Upstreams, as they would be, whose lists are not known now: their tools are missing here.'
  }),
  sessions: Type.Integer({
    description:
      'Open ones, of the thousand of the tenant that were opened last: they are told of changed lists, or end.'
  })
})

const UpstreamPlan = closedObject({
  upstream: Type.String(),
  change: kindOfChange,
  type: Type.Enum(['stdio', 'http'], { description: 'Of `stdio`, processes end with their calls, and others start.' })
})

const TenantPlan = closedObject({
  tenant: Type.String(),
  change: kindOfChange,
  callersChange: Type.Boolean({ description: 'Its issuers, keys or required scopes: callers are checked anew.' }),
  endpoints: Type.Array(EndpointPlan, { description: 'Those that change for their clients.' }),
  brokenTests: Type.Array(closedObject({ endpoint: Type.String(), name: Type.String(), sentence: Type.String() }), {
    description: `Tests of its policies that would not hold any more: the first ${maxBrokenTests}.`
  }),
  upstreams: Type.Array(UpstreamPlan, { description: 'Those that are connected anew, or no more.' })
})

const PlanResult = closedObject({
  version: Type.Integer({ description: 'Of now: `POST /v1/apply` with it makes the change that was planned.' }),
  tenants: Type.Array(TenantPlan, { description: 'Those that would change; none where everything is so already.' })
})

type Names = ReadonlySet<string>

const changeOf = (before: unknown, after: unknown): 'made' | 'changed' | 'removed' =>
  before === undefined ? 'made' : after === undefined ? 'removed' : 'changed'

const differs = (one: unknown, other: unknown): boolean =>
  canonicalJsonOf(one ?? null) !== canonicalJsonOf(other ?? null)

function toolsOf(place: EndpointPlace | undefined, services: Pick<AdminServices, 'catalogOf'>): Names {
  if (place === undefined) return new Set()
  // What rules let a caller see is what `catalog` and `explain` answer.
  return new Set(catalogWithoutRules(place, services).tools.map(({ name }) => String(name)))
}

/** An endpoint that changes for its clients, or for whom it lets in. */
interface ChangedEndpoint extends Pick<Static<typeof EndpointPlan>, 'endpoint' | 'gains' | 'loses' | 'rulesChange'> {
  readonly places: readonly [was: EndpointPlace | undefined, is: EndpointPlace | undefined]
  /** Also where nobody gains or loses anything. */
  readonly isOther: boolean
  /** For each caller. */
  readonly looks: number
}

/** A step for each endpoint: its catalog is built, as it is and as it would be. */
function* changedEndpoints(
  [before, after]: readonly [Snapshot, Snapshot],
  id: string,
  services: AdminServices
): Steps<ChangedEndpoint[]> {
  const places = [before, after].map((snapshot) => {
    const tenant = snapshot.tenants.get(tenantId(id))
    return new Map(
      [...(tenant?.endpoints.values() ?? [])].map((endpoint) => [
        String(endpoint.name),
        tenant && { snapshot, tenant, endpoint }
      ])
    )
  })
  const [old, now] = places
  const changed: ChangedEndpoint[] = []
  for (const name of [...new Set(places.flatMap((each) => [...each.keys()]))].sort()) {
    yield
    const [was, is] = [old?.get(name), now?.get(name)]
    const [had, has] = [toolsOf(was, services), toolsOf(is, services)]
    const rulesOf = (place: EndpointPlace | undefined): unknown => [
      place?.tenant.policy,
      place?.endpoint.policy,
      [...(place?.tenant.tags ?? [])]
    ]
    const rulesChange = differs(rulesOf(was), rulesOf(is))
    const { policy: _was, ...rest } = was?.endpoint ?? { policy: undefined }
    const { policy: _is, ...next } = is?.endpoint ?? { policy: undefined }
    const [gains, loses] = [without(has, had), without(had, has)]
    const isOther = rulesChange || differs(rest, next) || gains.count > 0 || loses.count > 0
    if (!isOther && !differs(was?.tenant.auth, is?.tenant.auth)) continue
    const looks = looksAt(was, had.size) + looksAt(is, has.size)
    changed.push({ endpoint: name, places: [was, is], gains, loses, rulesChange, isOther, looks })
  }
  return changed
}

/** Steps for each caller at each endpoint. */
function* endpointPlans(
  changed: readonly ChangedEndpoint[],
  known: readonly Principal[],
  sessions: ReadonlyMap<string, number>,
  services: AdminServices,
  left: LooksLeft
): Steps<Array<Static<typeof EndpointPlan>>> {
  const plans: Array<Static<typeof EndpointPlan>> = []
  for (const { endpoint, places, gains, loses, rulesChange, isOther, looks } of changed) {
    const [was, is] = places
    const callers = yield* callerChanges(places, looks, known, services, left)
    if (!isOther && callers.differ === 0) continue
    const definitions = is === undefined ? [] : definitionsOf(is)
    const unknown = definitions.filter((each) => services.listings.peek(each) === undefined)
    plans.push({
      endpoint,
      change: changeOf(was, is),
      gains,
      loses,
      rulesChange,
      callers,
      unknown: unknown.map((each) => String(each.name)),
      sessions: sessions.get(endpoint) ?? 0
    })
  }
  return plans
}

function upstreamPlans(before: Tenant | undefined, after: Tenant | undefined): Array<Static<typeof UpstreamPlan>> {
  const [old, now] = [before, after].map((tenant) => new Map(tenant?.upstreams))
  const names = [...new Set([...(old?.keys() ?? []), ...(now?.keys() ?? [])])].sort()
  return names.flatMap((name) => {
    const [was, is] = [old?.get(name), now?.get(name)]
    const { type } = is ?? was ?? {}
    return type === undefined || was?.hash === is?.hash ? [] : [{ upstream: name, change: changeOf(was, is), type }]
  })
}

/** Whether they held before does not matter: whoever applies the change shall know. */
function* brokenTests(tenant: Tenant, now: number): Steps<Static<typeof TenantPlan>['brokenTests']> {
  const broken: Static<typeof TenantPlan>['brokenTests'] = []
  for (const endpoint of tenant.endpoints.values())
    for (const { holds, name, sentence } of yield* testResults(tenant, endpoint, now))
      if (!holds && broken.length < maxBrokenTests) broken.push({ endpoint: String(endpoint.name), name, sentence })
  return broken
}

export const planRoutes = [
  defineRoute(
    {
      method: 'POST',
      path: '/v1/plan',
      onlyTells: true,
      roles: administrators,
      summary:
        'What a change would do, and why it would be refused, in the words of `POST /v1/apply`. Changes nothing.',
      body: PlanBody,
      response: PlanResult
    },
    async (request, services): Promise<AdminReply> => {
      const { control, snapshot, sessions, wall } = services
      const { name, role } = request.administrator
      const { version, changes, after } = await control.preview({
        author: { name, role },
        action: 'plan',
        ...(await wishOfPlan(request, services)),
        charge: request.administrator.charge,
        isBehindFile: request.body.behindFile
      })
      const before = snapshot()
      const left = looksOfPlan()
      const drafts = await Promise.all(
        changes.map(async ({ tenant: id, ...change }) => {
          const [old, now] = [before, after].map((each) => each.tenants.get(tenantId(id)))
          const turn = { tenant: id, caller: 'plan' }
          const seen = callersToday(services.callers, id)
          const changed = await runSteps(changedEndpoints([before, after], id, services), turn)
          return { id, change, old, now, turn, changed, callers: callersOf([old, now], seen) }
        })
      )
      const looks = drafts.flatMap(({ changed, callers }) => changed.map((each) => each.looks * callers.length))
      request.administrator.charge(
        Math.min(
          looks.reduce((sum, each) => sum + each, 0),
          maxLooksOfPlan
        )
      )
      const tenants = await Promise.all(
        drafts.map(async ({ id, change, old, now, turn, changed, callers }): Promise<Static<typeof TenantPlan>> => {
          const open = new Map<string, number>()
          for (const { record } of (await sessions.index.list(tenantId(id), sessionsListed)) ?? [])
            open.set(record.endpoint, (open.get(record.endpoint) ?? 0) + 1)
          return {
            tenant: id,
            change: changeOf(change.before, change.after),
            callersChange: differs(old?.auth, now?.auth),
            endpoints: await runSteps(endpointPlans(changed, callers, open, services, left), turn),
            brokenTests: now === undefined ? [] : await runSteps(brokenTests(now, wall.now()), turn),
            upstreams: upstreamPlans(old, now)
          }
        })
      )
      const body: Static<typeof PlanResult> = { version, tenants }
      return new AdminReply(body, { ETag: etagOf(version) })
    }
  )
] as const
