// An exchange on a clock that stands still, whose carrier only remembers what it was given.

import { tenantId, upstreamName } from '../../src/protocol/ids.ts'
import { createAskRooms } from '../../src/upstream/ask-room.ts'
import { createComplaints } from '../../src/upstream/complaints.ts'
import { createExchange } from '../../src/upstream/exchange.ts'
import { callOf, handClock, recordingClient, recordingEvents, workshop } from './connection.ts'
import type { ClientCapabilities, JsonObject } from '../../src/protocol/messages.ts'
import type { Client } from '../../src/protocol/seams.ts'
import type { Answerer } from './connection.ts'

const never = new AbortController().signal

/**
 * @param owner how the owner of the connection answers what belongs to no call
 * @param rooms for its questions; default ones of its own
 */
export function stillExchange (declared: ClientCapabilities = { elicitation: {} }, owner?: Answerer, exclusive = true, rooms = createAskRooms()) {
  const clock = handClock()
  const events = recordingEvents(owner)
  const sent: JsonObject[] = []
  const dropped: number[] = []
  const record = (body: string): void => { sent.push(JSON.parse(body) as JsonObject) }
  const { log, logged } = workshop()
  const exchange = createExchange({
    name: upstreamName('files'), timeoutMs: 60_000, declared, exclusive, events, clock, log, complaints: createComplaints('files', clock, log), askRoom: rooms.open({ tenant: tenantId('acme'), name: upstreamName('files') }), batches: () => false,
    carrier: { request: (_id, body) => record(body), post: record, drop: (id) => { dropped.push(id) } }
  })
  const call = (client: Client = recordingClient(), meta?: object, signal: AbortSignal = never) => exchange.request(callOf('any', {}, meta), client, signal)
  /** What the server was answered to its request with this id. */
  const answersTo = (id: unknown) => sent.filter((message) => message['id'] === id && message['method'] === undefined)
  return { clock, events, sent, dropped, exchange, call, logged, answersTo, rooms }
}

export const question = (id: unknown, method = 'elicitation/create', params: JsonObject = { message: 'who?' }) => ({ jsonrpc: '2.0', id, method, params })
