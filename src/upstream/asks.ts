// Requests that a server sends to us: ping is answered here; sampling, elicitation and roots go to the client whose call they
// belong to, or to the owner of the connection. Which of the two it is, is decided by the exchange, never guessed (SEP-2260).

import { errorObject, GatewayError } from '../protocol/errors.ts'
import { errorMessage, isObject, notificationMessage, responseMessage } from '../protocol/messages.ts'
import { weightOf } from '../protocol/weight.ts'
import { createBucket } from './bucket.ts'
import type { Bucket } from './bucket.ts'
import type { ClientCapabilities, JsonObject, RequestId, RpcErrorObject, ServerRequest } from '../protocol/messages.ts'
import type { AskOptions } from '../protocol/seams.ts'
import type { AskRoom } from './ask-room.ts'
import type { Clock } from './clock.ts'
import type { Complaints } from './complaints.ts'

export interface Asks {
  /**
   * Takes one request of the server; the answer is sent when there is one.
   * @param ask how to reach the client it is for
   * @param origin the call that it is about, where there is one
   */
  receive (id: RequestId, request: ServerRequest, ask: Ask, origin?: Origin): void
  /** The server withdrew its request: the client is told, and no answer is sent any more. */
  cancelled (id: RequestId, reason: string | undefined): void
  /** A call has ended: what was asked on its own stream is withdrawn, and the server gets an error for an answer. */
  ended (call: number): void
  /** A call was given up: what was asked meanwhile is withdrawn too where no other call can have been meant. */
  abandoned (call: number): void
  /** The server is gone, or has forgotten what it asked: all is withdrawn, and nothing is answered. */
  end (reason: string): void
}

type Ask = (request: ServerRequest, options: Required<Pick<AskOptions, 'signal' | 'progress'>>) => Promise<unknown>

export interface Origin {
  readonly call: number
  /** Does the stream say so, or is it the only call it can be? */
  readonly certain: boolean
}

export interface AsksOptions {
  /** What our handshake declared: a server may not ask for more. */
  readonly declared: ClientCapabilities
  /** For what waits here. */
  readonly askRoom: AskRoom
  readonly clock: Clock
  readonly complaints: Complaints
  /** @param call the one that goes on with this answer */
  send (message: JsonObject, call?: number): void
}

const capabilityOf: ReadonlyMap<string, string> = new Map([
  ['sampling/createMessage', 'sampling'],
  ['elicitation/create', 'elicitation'],
  ['roots/list', 'roots'],
  // Tasks that the client hosts for the server (2025-11-25 basic/utilities/tasks).
  ...['tasks/get', 'tasks/result', 'tasks/list', 'tasks/cancel'].map((method): [string, string] => [method, 'tasks'])
])

interface Limit {
  readonly perSecond: number
  readonly burst: number
  readonly open: number
}

// A server that asks more than this asks a machine, not a person (security: floods of server requests). What comes on the stream of a call
// counts for that call: one that floods, or is left waiting, takes nothing from the others.
const ofOneCall: Limit = { perSecond: 10, burst: 20, open: 32 }
// One caller may leave 64 calls waiting at once.
const ofConnection: Limit = { perSecond: 50, burst: 100, open: 256 }

/** What is counted together. */
interface Tally {
  readonly bucket: Bucket
  open: number
}

interface Question {
  readonly withdrawn: AbortController
  readonly origin: Origin | undefined
  readonly tally: Tally
  /** Gives back the room that it takes up. */
  readonly letGo: () => void
}

export function createAsks ({ declared, askRoom, clock, complaints, send }: AsksOptions): Asks {
  const open = new Map<RequestId, Question>()
  const bucketOf = ({ perSecond, burst }: Limit): Bucket => createBucket(clock, perSecond, burst)
  const bucket = bucketOf(ofConnection)
  /** Of calls that have asked, by call; those that no stream names count as one. */
  const tallies = new Map<number, Tally>()
  const unnamed: Tally = { bucket: bucketOf(ofOneCall), open: 0 }

  function tallyOf (origin: Origin | undefined): Tally {
    if (origin?.certain !== true) return unnamed
    const tally = tallies.get(origin.call) ?? { bucket: bucketOf(ofOneCall), open: 0 }
    tallies.set(origin.call, tally)
    return tally
  }

  function remove (id: RequestId): Question | undefined {
    const question = open.get(id)
    if (question === undefined) return undefined
    open.delete(id)
    question.tally.open--
    question.letGo()
    return question
  }

  const refuse = (id: RequestId, error: RpcErrorObject): void => send(errorMessage(id, error))

  function withdraw (matches: (origin: Origin) => boolean): void {
    for (const [id, { withdrawn, origin }] of open) {
      if (origin === undefined || !matches(origin)) continue
      remove(id)
      refuse(id, errorObject(new GatewayError('cancelled', 'The call that this request belongs to has ended.'), ''))
      withdrawn.abort('the call has ended')
    }
  }

  return {
    receive (id, request, ask, origin) {
      // The server's own sign of life: no client has to hear of it (2025-11-25 basic/utilities/ping).
      if (request.method === 'ping') return send(responseMessage(id, {}))
      const capability = capabilityOf.get(request.method)
      if (capability === undefined) return refuse(id, { code: -32601, message: 'No client can be asked this: MCP has no such request of servers.' })
      // Servers tell the model of it in the result of their tool: it says what to change.
      if (!isObject(declared[capability])) return refuse(id, { code: -32601, message: `This client did not declare "${capability}", so it cannot be asked ${request.method}.` })
      if (open.has(id)) return refuse(id, { code: -32600, message: 'A request with this id is already open.' })
      const weight = weightOf(request.params, askRoom.one)
      if (weight > askRoom.one) {
        complaints.warn({ method: request.method }, 'refused a question of the upstream: it is too large')
        return refuse(id, { code: -32602, message: `This request is too large to be kept until a client answers it: more than ${askRoom.one} bytes, with 64 for each JSON value beside its text.` })
      }
      const tally = tallyOf(origin)
      if (tally.open >= ofOneCall.open || open.size >= ofConnection.open || !tally.bucket.take() || !bucket.take()) {
        return refuse(id, errorObject(new GatewayError('too_many', 'Too many requests to the client; ask less often.'), ''))
      }
      const letGo = askRoom.take(weight)
      if (letGo === undefined) {
        complaints.warn({ method: request.method }, 'refused a question of the upstream: too much waits for clients to answer already')
        return refuse(id, errorObject(new GatewayError('too_many', 'Too much waits for clients to answer already; ask again later, or for less.'), ''))
      }
      const withdrawn = new AbortController()
      open.set(id, { withdrawn, origin, tally, letGo })
      tally.open++
      const close = (): boolean => open.get(id)?.withdrawn === withdrawn && remove(id) !== undefined
      const progress = (params: JsonObject): void => {
        if (open.get(id)?.withdrawn === withdrawn) send(notificationMessage({ method: 'notifications/progress', params }))
      }
      ask(request, { signal: withdrawn.signal, progress }).then(
        (result) => { if (close()) send(responseMessage(id, isObject(result) ? result : {}), origin?.call) },
        (error: unknown) => { if (close()) send(errorMessage(id, errorObject(error, '')), origin?.call) }
      )
    },

    cancelled (id, reason) {
      remove(id)?.withdrawn.abort(reason)
    },

    ended (call) {
      withdraw((origin) => origin.call === call && origin.certain)
      tallies.delete(call)
    },
    abandoned: (call) => withdraw((origin) => origin.call === call),

    end (reason) {
      const all = [...open.values()]
      for (const id of open.keys()) remove(id)
      for (const { withdrawn } of all) withdrawn.abort(reason)
    }
  }
}
