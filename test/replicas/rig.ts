// Three gateways, each a process of its own, on one real Redis behind a load balancer that hands every request to the
// next of them, whoever sent it.

import { request, createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import { legacyClient, type LegacyClient } from '../kit/client.ts'
import { configOf, type TestGatewayOptions } from '../kit/gateway.ts'
import { serve, type Served } from '../kit/process.ts'
import { redis, type PrivateRedis } from '../kit/redis.ts'
import { allCapabilities } from '../kit/server-request.ts'

export interface Rig {
  readonly nodes: readonly Served[]
  readonly store: PrivateRedis
  /** The endpoint at the load balancer: each request comes to the next replica. */
  url(path?: string): string
  /** The same endpoint at one replica. */
  at(node: number, path?: string): string
  /** Which replica had each request so far. */
  readonly turns: readonly number[]
}

const endpointPath = 't/acme/mcp'

export async function startReplicas(
  t: Test,
  options: Pick<TestGatewayOptions, 'upstreams' | 'endpoints' | 'limits' | 'policy' | 'auth'>
): Promise<Rig> {
  const [store, balancer] = await Promise.all([redis(t), startBalancer(t)])
  const config = configOf({
    auth: {
      keys: [
        { name: 'ada', key: keyOf.ada },
        { name: 'bob', key: keyOf.bob }
      ]
    },
    ...options,
    store: store.url,
    top: { publicUrl: balancer.url }
  })
  const nodes = await Promise.all([0, 1, 2].map(() => serve(t, config)))
  balancer.targets.push(...nodes.map(({ url }) => url))
  return {
    nodes,
    store,
    turns: balancer.turns,
    url: (path = endpointPath) => `${balancer.url}/${path}`,
    at: (node, path = endpointPath) => `${nodes[node]?.url}/${path}`
  }
}

/** One request at a time to each in turn: two requests on one connection of a client come to two of them. */
async function startBalancer(t: Test) {
  const targets: string[] = []
  const turns: number[] = []
  const server = createServer((incoming, outgoing) => {
    const turn = turns.length % targets.length
    turns.push(turn)
    forward(targets[turn] ?? '', incoming, outgoing)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, targets, turns }
}

function forward(target: string, incoming: IncomingMessage, outgoing: ServerResponse): void {
  const { method, headers } = incoming
  const onward = request(target + incoming.url, { method, headers, agent: false }, (response) => {
    outgoing.writeHead(response.statusCode ?? 502, response.headers)
    // A stream that has sent nothing yet has begun all the same.
    outgoing.flushHeaders()
    response.pipe(outgoing)
    response.on('error', () => outgoing.destroy())
  })
  onward.on('error', () => {
    if (outgoing.headersSent) outgoing.destroy()
    else outgoing.writeHead(502).end()
  })
  outgoing.on('close', () => onward.destroy())
  incoming.pipe(onward)
}

/** A session of ada that was opened at one replica. */
export const sessionAt = (url: string, capabilities: unknown = allCapabilities): Promise<LegacyClient> =>
  legacyClient(url, keyOf.ada, '2025-11-25', capabilities)
