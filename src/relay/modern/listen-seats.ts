// How much one caller may listen to at once, in this process: a stream costs a connection here and one at each upstream that serves it.

import type { Principal } from '../../auth/principal.ts'
import { GatewayError } from '../../protocol/errors.ts'
import type { Asked } from './listen-leg.ts'

export interface Seats {
  /**
   * @param streams as many as the caller may have; its streams take the place of the sessions of older revisions, so it is their limit
   * @returns how to give the seat back
   * @throws GatewayError too_many
   */
  take (principal: Principal, asked: Asked, streams: number): () => void
}

/** URIs and task ids of one caller, over all its streams: each may be some kilobytes long. */
const maxWatched = 10_000

export function createSeats (): Seats {
  const taken = new Map<string, { streams: number, watched: number }>()
  return {
    take ({ tenant, issuer, subject, clientId }, { uris, taskIds }, streams) {
      const key = JSON.stringify([tenant, issuer, subject, clientId])
      const watched = uris.length + taskIds.length
      const own = taken.get(key) ?? { streams: 0, watched: 0 }
      if (own.streams >= streams) throw new GatewayError('too_many', `This caller has ${streams} listen streams, which is the limit (limits.sessionsPerPrincipal). Close some of them first.`)
      if (own.watched + watched > maxWatched) throw new GatewayError('too_many', `The listen streams of this caller name more than ${maxWatched} resources and tasks, which is the limit. Close some of them first.`)
      own.streams++
      own.watched += watched
      taken.set(key, own)
      return () => {
        own.streams--
        own.watched -= watched
        if (own.streams === 0) taken.delete(key)
      }
    }
  }
}
