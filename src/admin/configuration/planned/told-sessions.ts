// Which open sessions a change of an endpoint tells or ends: as the reload will decide it, from what is known before.

import type { Principal } from '../../../auth/principal.ts'
import { definitionsOf } from '../../../relay/catalog/client-catalogs.ts'
import { changedKinds } from '../../../relay/catalog/freshness.ts'
import { differenceOf } from '../../../relay/catalog/view-changes.ts'
import type { SessionRecord } from '../../../session/session-record.ts'
import type { Steps } from '../../../time/turns.ts'
import type { AdminServices } from '../../route.ts'
import { spend, type CallerClass, type CallerClasses, type LooksLeft, type Places } from './caller-classes.ts'

type Owner = Pick<SessionRecord['owner'], 'issuer' | 'subject' | 'clientId'>

/** Open sessions by their endpoint, and then by whose they are. */
export type OpenSessions = ReadonlyMap<string, ReadonlyMap<string, number>>

/** A token's holder has another client with another token, which may say other groups. */
const ownerKey = ({ issuer, subject, clientId }: Owner): string => JSON.stringify([issuer, subject, clientId])

export function openSessions(records: readonly SessionRecord[]): OpenSessions {
  const open = new Map<string, Map<string, number>>()
  for (const { endpoint, owner } of records) {
    const own = open.get(endpoint) ?? new Map<string, number>()
    open.set(endpoint, own)
    own.set(ownerKey(owner), (own.get(ownerKey(owner)) ?? 0) + 1)
  }
  return open
}

const countOf = (callers: readonly Principal[], open: ReadonlyMap<string, number>): number =>
  callers.reduce((sum, each) => sum + (open.get(ownerKey(each)) ?? 0), 0)

function differenceAt([was, is]: Places): 'all' | ReturnType<typeof differenceOf> {
  if (was === undefined || is === undefined) return 'all'
  // What a server lists is told once it is connected anew.
  const isConnectedAnew = definitionsOf(is).some(({ name, hash }) => was.tenant.upstreams.get(name)?.hash !== hash)
  return isConnectedAnew ? 'all' : differenceOf(was, is)
}

/** Classes of callers with sessions at an endpoint: each has its lists compared. */
export const classesToCompare = (
  places: Places,
  { classes }: CallerClasses,
  open: ReadonlyMap<string, number> = new Map()
): readonly CallerClass[] =>
  differenceAt(places) === 'policy'
    ? classes.filter((each) => each.is !== undefined && countOf(each.callers, open) > 0)
    : []

interface AtEndpoint {
  /** What comparing the lists of one class of callers costs. */
  readonly looks: number
  /** Of callers whom nobody knows here it is not known what they see: they count as told. */
  readonly open: ReadonlyMap<string, number> | undefined
}

/** A step for each class of callers. */
export function* toldSessions(
  places: Places,
  known: CallerClasses,
  { looks, open = new Map() }: AtEndpoint,
  services: Pick<AdminServices, 'catalogOf'>,
  left: LooksLeft
): Steps<number> {
  const all = [...open.values()].reduce((sum, count) => sum + count, 0)
  const difference = differenceAt(places)
  if (difference === 'all' || difference === 'endpoint') return all
  let [told, judged] = [0, 0]
  const toCompare = new Set(classesToCompare(places, known, open))
  for (const each of known.classes) {
    const count = countOf(each.callers, open)
    judged += count
    if (each.is === undefined) told += count
    if (!toCompare.has(each)) continue
    yield
    const [principal] = each.callers
    const [old, now] = places.map((place) => place && services.catalogOf({ ...place, principal }, undefined))
    if (!spend(left, looks) || changedKinds(old, now).size > 0) told += count
  }
  return difference === 'policy' ? told + all - judged : told
}
