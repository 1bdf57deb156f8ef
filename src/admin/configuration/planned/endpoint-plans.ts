// What a change would do to the endpoints of a tenant: which tools, prompts, resources and templates each gains
// and loses, for whom, and which sessions are told or end.

import type { Static } from 'typebox'
import type { Principal } from '../../../auth/principal.ts'
import { closedObject } from '../../../config/schema/parts.ts'
import { Type } from '../../../config/schema/type.ts'
import type { Snapshot } from '../../../config/snapshot.ts'
import { canonicalJsonOf } from '../../../protocol/json-text.ts'
import { tenantId } from '../../../protocol/messages.ts'
import { rulesText } from '../../../relay/catalog/view-changes.ts'
import type { Steps } from '../../../time/turns.ts'
import { sessionsLookedAt } from '../../../store/keys.ts'
import { SessionEntry, shownSession } from '../../live/sessions.ts'
import type { AdminServices } from '../../route.ts'
import { CallerChanges, callerChanges, accessChange, ofEndpoint, offeredAt } from '../access-changes.ts'
import type { AssumedLists } from './assumed-lists.ts'
import {
  callerClasses,
  looksAtCaller,
  looksAtClass,
  type CallerClasses,
  type LooksLeft,
  type Places
} from './caller-classes.ts'
import { toldSessions, type OpenSessions } from './told-sessions.ts'

/** Sessions of a plan that are named, of all endpoints. */
const maxToldNamed = 1_000

interface NamesLeft {
  /** The sessions that the plan may still name. */
  named: number
}

export const namesOfPlan = (): NamesLeft => ({ named: maxToldNamed })

export const kindOfChange = Type.Enum(['made', 'changed', 'removed'], { description: 'What the change does to it.' })
export const EndpointPlan = closedObject({
  endpoint: Type.String(),
  change: kindOfChange,
  ...ofEndpoint,
  rulesChange: Type.Boolean({
    description:
      'Whether rules in its policy, or in that of the tenant, change. `gains`, `loses` and `others` disregard ' +
      'rules, `callers` applies them.'
  }),
  callers: CallerChanges,
  mayChange: Type.Array(Type.String(), {
    description:
      'Upstreams that are connected anew because their definition changes. What they will list is not known; this ' +
      'answer uses what they list now.'
  }),
  unknown: Type.Array(Type.String(), {
    description:
      'Upstreams of the planned configuration whose lists are not known now. What they offer is not in this answer.'
  }),
  sessions: Type.Integer({
    description:
      'Number of open sessions that are told of changed lists, or end. If the endpoint changes otherwise than by ' +
      'rules, or an upstream is connected anew, these are all sessions of the endpoint; else those whose lists ' +
      'differ, and those of callers who have not called today at the process that answers. Of a plan, the ' +
      `${sessionsLookedAt} sessions that were opened last are examined, those of its first tenants first.`
  }),
  toldSessions: Type.Array(SessionEntry, {
    description: `These sessions: the first ${maxToldNamed} of the whole plan.`
  })
})

export const changeOf = (before: unknown, after: unknown): 'made' | 'changed' | 'removed' =>
  before === undefined ? 'made' : after === undefined ? 'removed' : 'changed'

export const differs = (one: unknown, other: unknown): boolean =>
  canonicalJsonOf(one ?? null) !== canonicalJsonOf(other ?? null)

/** An endpoint that changes for its clients, or for whom it lets in. */
export interface ChangedEndpoint extends Pick<
  Static<typeof EndpointPlan>,
  'endpoint' | 'gains' | 'loses' | 'others' | 'rulesChange'
> {
  readonly places: Places
  /** Whether the endpoint changes, also where nobody gains or loses anything. */
  readonly isOther: boolean
  readonly mayChange: readonly string[]
  /** What each caller costs, then each class of them; and of those with sessions to compare lists as much again. */
  readonly looks: { readonly caller: number; readonly class: number }
}

interface ClassedEndpoint extends ChangedEndpoint {
  readonly classes: CallerClasses
}

/** What `catalogOf` answers of the snapshot after the change stands on assumed lists. */
export type PlanServices = Pick<AdminServices, 'catalogOf'> & { readonly lists: AssumedLists }

const entriesOf = (offered: ReturnType<typeof offeredAt>): number =>
  [...offered.values()].reduce((sum, { size }) => sum + size, 0)

/** A step for each endpoint: its catalog is built, as it is and as it would be. */
export function* changedEndpoints(
  [before, after]: readonly [Snapshot, Snapshot],
  id: string,
  services: PlanServices
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
    const [had, has] = [offeredAt(was, services), offeredAt(is, services)]
    const [rulesWere, rulesAre] = [was, is].map((place) => (place === undefined ? '' : rulesText(place)))
    const rulesChange = rulesWere !== rulesAre
    const { policy: _was, ...rest } = was?.endpoint ?? { policy: undefined }
    const { policy: _is, ...next } = is?.endpoint ?? { policy: undefined }
    const { told, differs: hasGainsOrLosses } = accessChange(had, has)
    const mayChange = services.lists.mayChange(is)
    const isOther = rulesChange || differs(rest, next) || hasGainsOrLosses || mayChange.length > 0
    if (!isOther && !differs(was?.tenant.auth, is?.tenant.auth)) continue
    const looks = {
      caller: looksAtCaller(was) + looksAtCaller(is),
      class: looksAtClass(was, entriesOf(had)) + looksAtClass(is, entriesOf(has))
    }
    changed.push({ endpoint: name, places: [was, is], ...told, rulesChange, isOther, mayChange, looks })
  }
  return changed
}

/** Steps for each caller at each endpoint: of whom the same rules hold. */
export function* withClasses(
  changed: readonly ChangedEndpoint[],
  callers: readonly Principal[],
  services: PlanServices,
  left: LooksLeft
): Steps<Array<ClassedEndpoint>> {
  const classified: Array<ClassedEndpoint> = []
  for (const each of changed)
    classified.push({ ...each, classes: yield* callerClasses(each.places, callers, services, left) })
  return classified
}

/** Steps for each class of callers at each endpoint. */
export function* endpointPlans(
  changed: ReadonlyArray<ClassedEndpoint>,
  open: OpenSessions,
  services: PlanServices,
  left: LooksLeft & NamesLeft
): Steps<Array<Static<typeof EndpointPlan>>> {
  const plans: Array<Static<typeof EndpointPlan>> = []
  for (const { endpoint, places, gains, loses, others, rulesChange, isOther, mayChange, looks, classes } of changed) {
    const [was, is] = places
    const callers = yield* callerChanges(places, looks.class, classes, services, left)
    if (!isOther && callers.differ === 0) continue
    const told = yield* toldSessions(places, classes, { looks: looks.class, open: open.get(endpoint) }, services, left)
    const named = told.slice(0, left.named)
    left.named -= named.length
    plans.push({
      endpoint,
      change: changeOf(was, is),
      gains,
      loses,
      others,
      rulesChange,
      callers,
      mayChange: [...mayChange],
      unknown: services.lists.unknown(is),
      sessions: told.length,
      toldSessions: named.map(shownSession)
    })
  }
  return plans
}
