// How many requests are under way between processes, and whose they are: a tenant and a caller have a part of all
// places.

import { createQuota, type Quota } from '../../limits/limits.ts'

/** What a message between processes is about, which decides who takes it. */
export type BusKind =
  | 'modern'
  | 'response'
  | 'request'
  | 'http-sse'
  | 'cancel'
  | 'progress'
  | 'notification'
  | 'stream'
  | 'held'
  | 'home'
  | 'deliver'
  | 'watch'
  | 'seen'
  | 'renew'
  | 'process'
  | 'lists'
  | 'lend'
  | 'take'
  | 'recall'
  | 'overheard'
  | 'long'
  | 'text'

/** Whom a request counts for. Opaque. */
export interface BusCaller {
  readonly tenant: string
  readonly caller: string
}

export interface BusQuestion {
  readonly kind: BusKind
  readonly whose: BusCaller
  readonly question: unknown
}

/** In place of a question whose text is fetched. */
export interface LongQuestion {
  readonly kind: BusKind
  /** Of the request that it is. */
  readonly id: string
  readonly chars: number
}

/** Requests at a time, in each direction. */
export const maxRequests = 1_024
/** They end work that is under way, or tell of it, and must not wait for work: they have as many places beside. */
const shortKinds: ReadonlySet<BusKind> = new Set<BusKind>(['response', 'held', 'http-sse', 'text'])

/** Gives what gives the place back; undefined where too many are taken. */
export type TakePlace = (kind: BusKind, whose: BusCaller) => (() => void) | undefined

export function createBusPlaces(max: number): TakePlace {
  const [long, short] = [createQuota(), createQuota()]
  return (kind, whose) => takePlace(shortKinds.has(kind) ? short : long, max, whose)
}

/** A tenant has few where it has fewer than one place in so many. */
const fewDivisor = 64
/** One place in so many is left to tenants that have few. */
const fewReserve = 8

/** At most a quarter of all for one tenant, and a sixteenth for one caller. */
export function takePlace(quota: Quota, max: number, { tenant, caller }: BusCaller): (() => void) | undefined {
  const ofTenant = `tenant ${tenant}`
  const hasFew = quota.amountOf(ofTenant) < max / fewDivisor
  return quota.take(1, [
    ['all', hasFew ? max : max - Math.floor(max / fewReserve)],
    [ofTenant, Math.ceil(max / 4)],
    [`caller ${tenant} ${caller}`, Math.ceil(max / 16)]
  ])
}
