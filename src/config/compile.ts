// From a valid configuration to its snapshot: defaults applied, names resolved, API keys reduced to digests, everything
// frozen.

import { createHash } from 'node:crypto'
import { join, resolve } from 'node:path'
import { canonicalJsonOf } from '../protocol/canonical.ts'
import {
  endpointName,
  type EndpointName,
  tenantId,
  type TenantId,
  upstreamName,
  type UpstreamName
} from '../protocol/messages.ts'
import { deepFreeze, frozenMap, frozenSet } from './freeze.ts'
import { keyDigest } from './rules.ts'
import {
  configDefaults,
  type ConfigInput,
  type EndpointInput,
  type ProcessLogLevel,
  type TenantInput
} from './schema/schema.ts'
import { limitDefaults } from './schema/schema-limits.ts'
import { authDefaults, type AuthInput } from './schema/schema-auth.ts'
import { upstreamDefaults, type UpstreamInput } from './schema/schema-upstreams.ts'
import type {
  AuthConfig,
  Endpoint,
  EndpointMember,
  Snapshot,
  StoreConfig,
  Tenant,
  UpstreamDefinition
} from './snapshot.ts'

/** A snapshot, and what only the process itself uses. */
export interface Configuration extends Snapshot {
  readonly logLevel: ProcessLogLevel
}

export interface CompileContext {
  /** Base of relative paths in the file. */
  readonly folder: string
  /** Folder of the file store, in place of the one in the file. */
  readonly dataDir: string | undefined
  readonly host: string | undefined
  readonly port: number | undefined
}

export function compile(input: ConfigInput, places: CompileContext): Configuration {
  return deepFreeze({
    listen: {
      host: places.host ?? input.listen?.host ?? configDefaults.host,
      port: places.port ?? input.listen?.port ?? configDefaults.port
    },
    publicUrl: input.publicUrl === undefined ? undefined : new URL(input.publicUrl).origin,
    hosts: (input.hosts ?? []).map((host) => host.toLowerCase()),
    store: compileStore(input.store ?? configDefaults.store, places),
    logLevel: input.logLevel ?? configDefaults.logLevel,
    limits: { ...limitDefaults, ...input.limits },
    tenants: frozenMap(
      Object.entries(input.tenants).map(
        ([id, tenant]) => [tenantId(id), compileTenant(tenantId(id), tenant, places.folder)] as const
      )
    )
  })
}

function compileStore(store: string, { folder, dataDir }: CompileContext): StoreConfig {
  if (store === 'memory:') return { kind: 'memory' }
  if (!store.startsWith('file:')) return { kind: 'redis', url: store }
  return {
    kind: 'file',
    path: dataDir === undefined ? resolve(folder, store.slice('file:'.length)) : join(resolve(dataDir), 'gatehouse.db')
  }
}

function compileTenant(id: TenantId, input: TenantInput, folder: string): Tenant {
  const upstreams = frozenMap(
    Object.entries(input.upstreams)
      .filter(([, upstream]) => upstream.disabled !== true)
      .map(
        ([name, upstream]) => [upstreamName(name), compileUpstream(id, upstreamName(name), upstream, folder)] as const
      )
  )
  const endpoints = input.endpoints ?? { default: { upstreams: [...upstreams.keys()] } }
  return deepFreeze({
    id,
    origins: frozenSet((input.origins ?? []).map((origin) => new URL(origin).origin)),
    auth: compileAuth(input.auth),
    upstreams,
    endpoints: frozenMap(
      Object.entries(endpoints).map(
        ([name, endpoint]) =>
          [endpointName(name), compileEndpoint(id, endpointName(name), endpoint, upstreams)] as const
      )
    )
  })
}

function compileAuth(input: AuthInput): AuthConfig {
  if (input === 'none')
    return { mode: 'none', issuers: [], keys: [], requiredScopes: [], leewaySeconds: authDefaults.leewaySeconds }
  return {
    mode: 'bearer',
    issuers: (input.issuers ?? []).map((issuer) => ({
      issuer: issuer.issuer,
      jwksUri: issuer.jwksUri,
      algorithms: issuer.algorithms ?? authDefaults.algorithms,
      requireTyp: issuer.requireTyp ?? authDefaults.requireTyp,
      audiences: issuer.audiences ?? [],
      maxLifetimeSeconds: issuer.maxLifetimeSeconds ?? authDefaults.maxLifetimeSeconds
    })),
    keys: (input.keys ?? []).map((key) => ({ name: key.name, sha256: keyDigest(key) ?? '', scopes: key.scopes ?? [] })),
    requiredScopes: input.requiredScopes ?? [],
    leewaySeconds: input.leewaySeconds ?? authDefaults.leewaySeconds
  }
}

function compileUpstream(
  tenant: TenantId,
  name: UpstreamName,
  input: UpstreamInput,
  folder: string
): UpstreamDefinition {
  const type = 'command' in input ? 'stdio' : 'http'
  const base = {
    name,
    tenant,
    isolation: input.isolation ?? upstreamDefaults.isolation,
    era: input.era ?? upstreamDefaults.era,
    connectMs: input.connectMs ?? upstreamDefaults.connectMs[type],
    timeoutMs: input.timeoutMs ?? upstreamDefaults.timeoutMs,
    idleMs: input.idleMs ?? upstreamDefaults.idleMs,
    maxMessageBytes: input.maxMessageBytes ?? upstreamDefaults.maxMessageBytes
  }
  const definition =
    'command' in input
      ? {
          ...base,
          type: 'stdio' as const,
          command: input.command,
          args: input.args ?? [],
          env: input.env ?? {},
          cwd: input.cwd === undefined ? undefined : resolve(folder, input.cwd)
        }
      : {
          ...base,
          type: 'http' as const,
          transport: transports[input.type ?? 'http'],
          url: new URL(input.url).href,
          headers: input.headers ?? {}
        }
  return { ...definition, hash: createHash('sha256').update(canonicalJsonOf(definition)).digest('hex') }
}

const transports = { http: 'auto', 'streamable-http': 'streamable', streamableHttp: 'streamable', sse: 'sse' } as const

function compileEndpoint(
  tenant: TenantId,
  name: EndpointName,
  input: EndpointInput,
  upstreams: ReadonlyMap<UpstreamName, UpstreamDefinition>
): Endpoint {
  const members: EndpointMember[] = input.upstreams
    .map((member) => (typeof member === 'string' ? { upstream: member } : member))
    .map((member) => ({
      upstream: upstreamName(member.upstream),
      prefix: member.prefix ?? input.prefix ?? member.upstream
    }))
    // Disabled upstreams are left out.
    .filter((member) => upstreams.has(member.upstream))
  return {
    name,
    tenant,
    path: name === 'default' ? `/t/${tenant}/mcp` : `/t/${tenant}/${name}/mcp`,
    members,
    separator: input.separator ?? configDefaults.separator,
    instructions: input.instructions
  }
}
