// Predicts which open sessions a change of an endpoint notifies or ends, as the reload will decide.

import type { Principal } from '../../../auth/principal.ts'
import { definitionsOf } from '../../../relay/catalog/client-catalogs.ts'
import { changedKinds } from '../../../relay/catalog/freshness.ts'
import { differenceOf } from '../../../relay/catalog/view-changes.ts'
import type { Session } from '../../../session/sessions.ts'
import type { Steps } from '../../../time/turns.ts'
import type { AdminServices } from '../../route.ts'
import { spend, type CallerClass, type CallerClasses, type LooksLeft, type Places } from './caller-classes.ts'

type Owner = Pick<Session['record']['owner'], 'issuer' | 'subject' | 'clientId'>

/** Open sessions by their endpoint, and then by whose they are. */
export type OpenSessions = ReadonlyMap<string, SessionsByOwner>
type SessionsByOwner = ReadonlyMap<string, readonly Session[]>

/** A token's holder has another client with another token, which may say other groups. */
const ownerKey = ({ issuer, subject, clientId }: Owner): string => JSON.stringify([issuer, subject, clientId])

export function openSessions(sessions: readonly Session[]): OpenSessions {
  const byEndpoint = Map.groupBy(sessions, ({ record }) => String(record.endpoint))
  return new Map(
    [...byEndpoint].map(([endpoint, own]) => [endpoint, Map.groupBy(own, ({ record }) => ownerKey(record.owner))])
  )
}

const sessionsOf = (callers: readonly Principal[], open: SessionsByOwner): readonly Session[] =>
  callers.flatMap((each) => open.get(ownerKey(each)) ?? [])

function differenceAt([was, is]: Places): 'all' | ReturnType<typeof differenceOf> {
  if (was === undefined || is === undefined) return 'all'
  // Its clients are notified of changed lists after the server is connected again.
  const isConnectedAnew = definitionsOf(is).some(({ name, hash }) => was.tenant.upstreams.get(name)?.hash !== hash)
  return isConnectedAnew ? 'all' : differenceOf(was, is)
}

/** Classes of callers whose lists are compared where they have sessions at the endpoint. */
export const classesToCompare = (places: Places, { classes }: CallerClasses): readonly CallerClass[] =>
  differenceAt(places) === 'policy' ? classes.filter(({ is }) => is !== undefined) : []

interface AtEndpoint {
  /** The cost of comparing the lists of one class of callers. */
  readonly looks: number
  /** Sessions of callers that this process does not know: what they see is unknown, so they count as notified. */
  readonly open: SessionsByOwner | undefined
}

/** A step for each class of callers. */
export function* toldSessions(
  places: Places,
  known: CallerClasses,
  { looks, open = new Map() }: AtEndpoint,
  services: Pick<AdminServices, 'catalogOf'>,
  left: LooksLeft
): Steps<readonly Session[]> {
  const all = [...open.values()].flat()
  const difference = differenceAt(places)
  if (difference === 'all' || difference === 'endpoint') return all
  const told = new Set<Session>()
  const judged = new Set<Session>()
  const tell = (sessions: readonly Session[]): void => sessions.forEach((session) => told.add(session))
  const toCompare = new Set(classesToCompare(places, known))
  for (const each of known.classes) {
    const own = sessionsOf(each.callers, open)
    for (const session of own) judged.add(session)
    if (each.is === undefined) tell(own)
    if (own.length === 0 || !toCompare.has(each)) continue
    yield
    const [principal] = each.callers
    const [old, now] = places.map((place) => place && services.catalogOf({ ...place, principal }, undefined))
    if (!spend(left, looks) || changedKinds(old?.lists, now?.lists).size > 0) tell(own)
  }
  if (difference === 'policy') tell(all.filter((session) => !judged.has(session)))
  return [...told]
}
