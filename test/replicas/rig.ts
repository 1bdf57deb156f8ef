// Three replicas of one configuration, with two users.

import type { Test } from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import { legacyClient, type LegacyClient } from '../kit/client.ts'
import { type Place, replicas, type ReplicaOptions, type Replicas } from '../kit/replicas.ts'
import { allCapabilities } from '../kit/server-request.ts'

export interface Rig extends Replicas {
  /** The endpoint at the load balancer: each request comes to the next replica. */
  url(path?: string): string
  /** The same endpoint at one replica. */
  at(node: number, path?: string): string
}

const endpointPath = 't/acme/mcp'

export async function startReplicas(
  t: Test,
  options: Pick<
    ReplicaOptions,
    'upstreams' | 'endpoints' | 'limits' | 'policy' | 'auth' | 'callLimits' | 'tenants' | 'top'
  >,
  places?: readonly Place[]
): Promise<Rig> {
  const keys = [
    { name: 'ada', key: keyOf.ada },
    { name: 'bob', key: keyOf.bob }
  ]
  const made = await replicas(t, { auth: { keys }, ...options }, places)
  return {
    ...made,
    url: (path = endpointPath) => `${made.origin}/${path}`,
    at: (node, path = endpointPath) => `${made.nodes[node]?.url}/${path}`
  }
}

/** A session of ada that was opened at one replica. */
export const sessionAt = (url: string, capabilities: unknown = allCapabilities): Promise<LegacyClient> =>
  legacyClient(url, keyOf.ada, '2025-11-25', capabilities)
