// How much one caller may listen to at once, in this process: a stream costs a connection here and one at each upstream that serves it.

import type { Principal } from '../../auth/principal.ts'
import { GatewayError } from '../../protocol/errors.ts'
import type { ClientCapabilities } from '../../protocol/messages.ts'
import type { Asked } from './listen-leg.ts'

export interface Seats {
  /**
   * @param capabilities what is kept of those that the client declared
   * @returns how to give the seat back
   * @throws GatewayError too_many
   */
  take (principal: Principal, asked: Asked, capabilities: ClientCapabilities): () => void
}

const maxStreams = 100
/** URIs and task ids of one caller, over all its streams; and the bytes of these and of its capabilities, which stay as long as the streams. */
const maxWatched = 10_000
const maxBytes = 4 * 1024 * 1024

export function createSeats (): Seats {
  const taken = new Map<string, { streams: number, watched: number, bytes: number }>()
  return {
    take ({ tenant, issuer, subject, clientId }, { uris, taskIds }, capabilities) {
      const key = JSON.stringify([tenant, issuer, subject, clientId])
      const watched = uris.length + taskIds.length
      const bytes = Buffer.byteLength(JSON.stringify([uris, taskIds, capabilities]))
      const own = taken.get(key) ?? { streams: 0, watched: 0, bytes: 0 }
      if (own.streams >= maxStreams) throw new GatewayError('too_many', `This caller has ${maxStreams} listen streams, which is the limit. Close some of them first.`)
      if (own.watched + watched > maxWatched) throw new GatewayError('too_many', `The listen streams of this caller name more than ${maxWatched} resources and tasks, which is the limit. Close some of them first.`)
      if (own.bytes + bytes > maxBytes) throw new GatewayError('too_many', `What the listen streams of this caller name is longer than ${maxBytes / 1024 / 1024} MiB, which is the limit. Close some of them first.`)
      own.streams++
      own.watched += watched
      own.bytes += bytes
      taken.set(key, own)
      return () => {
        own.streams--
        own.watched -= watched
        own.bytes -= bytes
        if (own.streams === 0) taken.delete(key)
      }
    }
  }
}
