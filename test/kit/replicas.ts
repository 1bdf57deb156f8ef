// Several gateways, each a process of its own, on one real Redis behind a load balancer that hands every request to the
// next of them, whoever sent it: one of ours, which says whose turn it was, or nginx.

import { once } from 'node:events'
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { configOf, gateway, type TestGatewayOptions } from './gateway.ts'
import { serve, type Process, type Served } from './process.ts'
import { startNginx } from './nginx.ts'
import { freePort } from './free-port.ts'
import { redis, type PrivateRedis } from './redis.ts'
import type { TcpLink } from './tcp-link.ts'
import type { Teardown } from './until.ts'

export interface Replicas {
  readonly nodes: readonly Served[]
  readonly store: PrivateRedis
  /** Of the load balancer, without a slash at its end: each request comes to the next replica. */
  readonly origin: string
  /** Which replica had each request so far. */
  readonly turns: readonly number[]
  /** The replicas that the load balancer knows; may be changed. */
  readonly targets: string[]
  /** Starts one more, which the load balancer does not know. */
  start(place?: Place): Promise<Served>
}

export type ReplicaOptions = Omit<TestGatewayOptions, 'store' | 'overrides'>

/** What one replica has and the others have not. */
export interface Place extends Process {
  /** Its way to Redis. */
  readonly link?: TcpLink
}

/**
 * @param given their configuration, which may depend on the origin of the load balancer
 * @param own the Redis to use; by default one that is started for them
 */
export async function replicas(
  t: Teardown,
  given: ReplicaOptions | ((origin: string) => Promise<ReplicaOptions>),
  places: readonly Place[] = [{}, {}, {}],
  own?: PrivateRedis
): Promise<Replicas> {
  const [store, { origin, targets, turns }] = await Promise.all([own ?? redis(t), startBalancer(t)])
  const options = typeof given === 'function' ? await given(origin) : given
  const start = ({ link, ...process }: Place = {}): Promise<Served> => {
    const url = link?.to(store.url) ?? store.url
    return serve(t, configOf({ ...options, store: url, top: { ...options.top, publicUrl: origin } }), process)
  }
  const nodes = await Promise.all(places.map(start))
  targets.push(...nodes.map(({ url }) => url))
  return { nodes, store, origin, turns, targets, start }
}

/** What a test needs of a gateway that may be one process or several. */
export interface House {
  /** The endpoint of tenant `acme`. */
  url(endpoint?: string): string
  close(): Promise<unknown>
}

/**
 * How many processes serve the tests of foreign clients, suites and revisions: one, in the process of the test, unless
 * `npm run replicas` says more.
 */
export const replicaCount = Number(process.env['GATEHOUSE_TEST_REPLICAS'] ?? 1)

export async function startHouse(t: Teardown, options: ReplicaOptions, count = replicaCount): Promise<House> {
  if (count === 1) return await gateway(t, options)
  const places = Array.from({ length: count }, () => ({}))
  // `npm test` does without nginx.
  const { origin, nodes } = await (replicaCount > 1 ? replicasBehindNginx : replicas)(t, options, places)
  return {
    url: (endpoint = 'default') => `${origin}/t/acme/${endpoint === 'default' ? '' : `${endpoint}/`}mcp`,
    close: () => Promise.all(nodes.map(({ stop }) => stop()))
  }
}

async function replicasBehindNginx(t: Teardown, options: ReplicaOptions, places: readonly Place[]) {
  const [store, port] = await Promise.all([redis(t), freePort()])
  const origin = `http://127.0.0.1:${port}`
  const config = configOf({ ...options, store: store.url, top: { ...options.top, publicUrl: origin } })
  const nodes = await Promise.all(places.map((place) => serve(t, config, place)))
  const hosts = nodes.map(({ url }) => new URL(url).host)
  await startNginx(t, port, hosts)
  return { origin, nodes }
}

/** One request at a time to each in turn: two requests on one connection of a client come to two of them. */
async function startBalancer(t: Teardown) {
  const targets: string[] = []
  const turns: number[] = []
  const server = createServer((incoming, outgoing) => {
    if (targets.length === 0) return void outgoing.writeHead(503).end()
    const turn = turns.length % targets.length
    turns.push(turn)
    forward(targets[turn] ?? '', incoming, outgoing)
  })
  // A client on a busy machine would use a connection once more that is just being closed.
  server.keepAliveTimeout = 0
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, targets, turns }
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
