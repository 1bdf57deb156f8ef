// An RPC client on a clock that stands still, whose transport only records what it is given.

import { type JsonText, stringOf } from '../../src/protocol/json-text.ts'
import { type ClientCapabilities, type JsonObject, tenantId, upstreamName } from '../../src/protocol/messages.ts'
import { createMemoryAccount } from '../../src/limits/memory.ts'
import { createServerRequestQuotas } from '../../src/upstream/rpc/server-requests.ts'
import { createLimitedWarnings } from '../../src/upstream/rpc/notifications.ts'
import { createRpcClient } from '../../src/upstream/rpc/rpc-client.ts'
import {
  type Answerer,
  callOf,
  handClock,
  handshake,
  never,
  recordingClient,
  recordingEvents,
  testConnector
} from './connector.ts'
import type { Client } from '../../src/protocol/seams.ts'

/**
 * @param owner how the owner of the connection answers what belongs to no call
 * @param quotas default: new ones
 */
export function testRpcClient(
  declared: ClientCapabilities = { elicitation: {} },
  owner?: Answerer,
  exclusive = true,
  quotas = createServerRequestQuotas()
) {
  const clock = handClock()
  const events = recordingEvents(owner)
  const sent: JsonObject[] = []
  const dropped: number[] = []
  const record = (body: JsonText): void => {
    sent.push(JSON.parse(stringOf(body)) as JsonObject)
  }
  const { log, logged } = testConnector()
  const rpc = createRpcClient({
    definition: { name: upstreamName('files'), timeoutMs: 60_000, maxTimeoutMs: 3_600_000, isolation: 'session' },
    link: {
      handshake: { ...handshake, capabilities: declared, exclusive },
      events,
      clock,
      random: () => 0,
      log,
      warnings: createLimitedWarnings('files', clock, log),
      serverRequestQuota: quotas.open({ tenant: tenantId('acme'), name: upstreamName('files') }),
      memory: createMemoryAccount().share('acme', 'test'),
      use: 'calls'
    },
    transport: {
      request: (_id, body) => record(body),
      post: record,
      drop: (id) => {
        dropped.push(id)
      }
    }
  })
  const call = (client: Client = recordingClient(), meta?: object, signal: AbortSignal = never) =>
    rpc.request(callOf('any', {}, meta), client, signal)
  /** What the server was answered to its request with this id. */
  const answersTo = (id: unknown) => sent.filter((message) => message['id'] === id && message['method'] === undefined)
  return { clock, events, sent, dropped, rpc, call, logged, answersTo, quotas }
}

export const serverRequest = (
  id: unknown,
  method = 'elicitation/create',
  params: JsonObject = { message: 'who?' }
) => ({ jsonrpc: '2.0', id, method, params })
