// How much one caller may listen to at once in this process: a stream costs a connection here and one at each of its
// upstreams.

import type { Principal } from '../../auth/principal.ts'
import { type ClientCapabilities, GatewayError } from '../../protocol/messages.ts'
import type { UpstreamFilter } from './listen-upstream.ts'

export interface ListenLimit {
  /**
   * @param capabilities of the client, as far as the stream holds them
   * @returns ends the use
   * @throws GatewayError too_many
   */
  take(principal: Principal, filter: UpstreamFilter, capabilities: ClientCapabilities): () => void
}

const maxStreams = 100
/** URIs and task ids of one caller, over all of its streams. */
const maxWatched = 10_000
/** Of these and of the capabilities, which are held as long as the streams. */
const maxBytes = 4 * 1024 * 1024

export function createListenLimit(): ListenLimit {
  const taken = new Map<string, { streams: number; watched: number; bytes: number }>()
  return {
    take({ tenant, issuer, subject, clientId }, { uris, taskIds }, capabilities) {
      const key = JSON.stringify([tenant, issuer, subject, clientId])
      const watched = uris.length + taskIds.length
      const bytes = Buffer.byteLength(JSON.stringify([uris, taskIds, capabilities]))
      const own = taken.get(key) ?? { streams: 0, watched: 0, bytes: 0 }
      if (own.streams >= maxStreams) throw tooMany(`This caller has ${maxStreams} listen streams`)
      if (own.watched + watched > maxWatched)
        throw tooMany(`The listen streams of this caller name more than ${maxWatched} resources and tasks`)
      if (own.bytes + bytes > maxBytes)
        throw tooMany(`What the listen streams of this caller name is longer than ${maxBytes / 1024 / 1024} MiB`)
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

const tooMany = (what: string): GatewayError =>
  new GatewayError('too_many', `${what}, which is the limit. Close some of them first.`)
