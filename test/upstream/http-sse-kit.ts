// What the tests of HTTP+SSE start from: a server of 2024-11-05 and a connection to it.

import {
  callOf,
  handshake,
  httpDefinition,
  never,
  recordingClient,
  recordingEvents,
  testConnector
} from '../kit/connector.ts'
import { startSseUpstream, type SseUpstreamOptions } from '../kit/sse-upstream.ts'
import type { HttpDefinition } from '../../src/config/snapshot.ts'
import type { Test } from 'tap'

export const sseDefinition = (url: string, overrides: Partial<HttpDefinition> = {}) =>
  httpDefinition(url, { transport: 'sse', ...overrides })

export async function openSse(t: Test, options: SseUpstreamOptions = {}, overrides: Partial<HttpDefinition> = {}) {
  const peer = await startSseUpstream(options)
  t.teardown(peer.close)
  const events = recordingEvents()
  const shop = testConnector()
  const connect = () => shop.connector.connect(sseDefinition(`${peer.url}?token=hunter2`, overrides), handshake, events)
  const upstream = await connect()
  t.teardown(() => upstream.close())
  const call = (tool: string, args: object = {}) => upstream.request(callOf(tool, args), recordingClient(), never)
  return { peer, upstream, events, call, connect, ...shop }
}
