// From a valid configuration to its snapshot: names resolved, API keys reduced to digests, everything frozen.

import { createHash } from 'node:crypto'
import { resolve } from 'node:path'
import { canonicalJsonOf } from '../protocol/json-text.ts'
import { endpointName, tenantId, upstreamName, type TenantId } from '../protocol/messages.ts'
import { principalHeadersOf, toldClaimsOf, withPrincipalHeaders } from './auth/told-caller.ts'
import { compileAuth, compileIssuer, pathOfEndpoint } from './auth/compile-auth.ts'
import { isLoopback } from './formats.ts'
import { argumentReferences, insertedInto, withHiddenDefaults } from './inserted.ts'
import { networksOf } from './policy/networks.ts'
import { policyOfEndpoint, policyOfTenant } from './auth/required-scopes.ts'
import type { InsertedText } from './references.ts'
import { withinResources } from './resources.ts'
import type { ConfigInput, TenantInput } from './schema/config.ts'
import { defaultMaxTimeoutMs } from './schema/upstream.ts'
import type { AuditConfig, Endpoint, Snapshot, StoreConfig, Tenant, UpstreamDefinition } from './snapshot.ts'

/** Load balancers ask for readiness every few seconds. */
const usualReadyDelayMs = 5_000

/** A snapshot, with the settings that only the process itself uses. */
export interface Configuration extends Snapshot {
  readonly logLevel: ConfigInput['logLevel']
}

export interface CompileContext {
  /** Base of relative paths in the file. */
  readonly folder: string
  /** Folder of the file store, in place of the one in the file. */
  readonly dataDir: string | undefined
  readonly host: string | undefined
  readonly port: number | undefined
  readonly inserted: readonly InsertedText[]
}

export function compile(input: ConfigInput, context: CompileContext): Configuration {
  const { folder, dataDir, host, port } = context
  const listen = { host: host ?? input.listen.host, port: port ?? input.listen.port }
  const publicUrl = input.publicUrl === undefined ? undefined : new URL(input.publicUrl).origin
  return deepFreeze({
    listen,
    publicUrl,
    hosts: input.hosts.map((host) => host.toLowerCase()),
    trustedProxies: input.trustedProxies.length === 0 ? undefined : networksOf(input.trustedProxies),
    store: compileStore(input.store, folder, dataDir),
    logLevel: input.logLevel,
    admin: input.admin && {
      listen: input.admin.listen,
      hosts: input.admin.hosts.map((name) => name.toLowerCase()),
      keys: input.admin.keys.map((each) => ({ ...each, sha256: each.sha256.toLowerCase() })),
      ...(input.admin.oidc && {
        oidc: {
          ...input.admin.oidc,
          issuers: input.admin.oidc.issuers.flatMap(compileIssuer),
          login: input.admin.oidc.login && { ...input.admin.oidc.login, signOut: false }
        }
      }),
      prometheus: input.admin.prometheus,
      traceUrl: input.admin.traceUrl,
      allowedCommands: input.admin.allowedCommands.map((each) =>
        typeof each === 'string' ? { command: each } : { ...each, sha256: each.sha256.toLowerCase() }
      ),
      allowedHosts: input.admin.allowedHosts
    },
    ...(input.vault && { vault: input.vault }),
    egress: input.egress,
    telemetry: input.telemetry,
    ...(input.pseudonyms && { pseudonyms: input.pseudonyms }),
    limits: { readyDelayMs: isLoopback(listen.host) ? 0 : usualReadyDelayMs, ...input.limits },
    audit: input.audit === 'none' ? undefined : compileAudit(input.audit, folder),
    tenants: frozenMap(input.tenants, tenantId, (tenant, id) => compileTenant(id, tenant, context, publicUrl))
  })
}

/** The same snapshot with these tenants. */
export const withTenants = (file: Snapshot, tenants: ReadonlyMap<TenantId, Tenant>, isWhole: boolean): Snapshot =>
  deepFreeze({ ...file, tenants: frozenMap(Object.fromEntries(tenants), tenantId, (tenant) => tenant), isWhole })

function compileStore(store: string, folder: string, dataDir: string | undefined): StoreConfig {
  if (store === 'memory:') return { kind: 'sqlite', path: ':memory:' }
  if (!store.startsWith('file:')) return { kind: 'redis', url: store }
  const path = dataDir === undefined ? resolve(folder, store.slice('file:'.length)) : resolve(dataDir, 'gatehouse.db')
  return { kind: 'sqlite', path }
}

const compileAudit = ({ file, ...rest }: AuditConfig, folder: string): AuditConfig => ({
  ...rest,
  ...(file === undefined ? {} : { file: resolve(folder, file) })
})

function compileTenant(
  id: TenantId,
  input: TenantInput,
  { folder, inserted }: CompileContext,
  publicUrl: string | undefined
): Tenant {
  const references = argumentReferences(id, inserted)
  const principalHeaders = principalHeadersOf(id, inserted)
  const enabled = Object.entries(input.upstreams).filter(([, upstream]) => !upstream.disabled)
  const upstreams = frozenMap(
    Object.fromEntries(enabled),
    upstreamName,
    // Members for policy rules are no part of the definition: a change of them must not close connections.
    (
      {
        disabled: _disabled,
        description: _description,
        tags: _tags,
        trustAnnotations: _trust,
        requires: _requires,
        ...upstream
      },
      name
    ): UpstreamDefinition => {
      const definition =
        'command' in upstream
          ? {
              ...upstream,
              type: 'stdio' as const,
              cwd: upstream.cwd === undefined ? undefined : resolve(folder, upstream.cwd),
              sandboxRead: upstream.sandboxRead.map((path) => resolve(folder, path)),
              sandboxWrite: upstream.sandboxWrite.map((path) => resolve(folder, path))
            }
          : {
              ...upstream,
              type: 'http' as const,
              transport: transports[upstream.type],
              url: new URL(upstream.url).href,
              ...withPrincipalHeaders(upstream.headers, principalHeaders.get(name))
            }
      const secrets = references.flatMap(({ tool, texts }) => (tool.startsWith(`${name}/`) ? texts : []))
      const argumentSecrets = [...new Set(secrets)].sort()
      const whole = { ...definition, ...(secrets.length > 0 && { argumentSecrets }), name, tenant: id }
      // Left out, so that the hash is the one of versions that do not know the keys: what no connection depends on, and
      // what is as usual.
      const maxTimeoutMs = whole.maxTimeoutMs === defaultMaxTimeoutMs ? undefined : whole.maxTimeoutMs
      const connection = { ...whole, lendSessions: undefined, maxTimeoutMs }
      const hash = createHash('sha256').update(canonicalJsonOf(connection)).digest('hex')
      return { ...whole, ...insertedInto(id, name, inserted, argumentSecrets), hash }
    }
  )
  const endpoints = input.endpoints ?? {
    default: { upstreams: [...upstreams.keys()], separator: '__', order: [], audiences: [] }
  }
  const policies = [input.policy, ...Object.values(input.endpoints ?? {}).map(({ policy }) => policy)]
  const neededWhole = (['groups', 'roles'] as const).filter((claim) =>
    policies.some((policy) =>
      policy?.rules.some(({ who, when }) => who[claim] !== undefined || when?.includes(claim) === true)
    )
  )
  const toldClaims = [...new Set([...upstreams.values()].flatMap(toldClaimsOf))]
  const auth = compileAuth({ id, neededWhole, toldClaims }, input.auth, endpoints, publicUrl)
  return {
    id,
    origins: locked(new Set(input.origins.map((origin) => new URL(origin).origin)), ['add', 'delete', 'clear']),
    auth,
    upstreams,
    endpoints: frozenMap(
      endpoints,
      endpointName,
      ({ upstreams: members, prefix, separator, requires, tools, ...rest }, name): Endpoint => ({
        instructions: undefined,
        ...rest,
        policy: policyOfEndpoint({ ...rest, ...(tools && { tools }) }),
        requiredScopes: [...new Set([...auth.requiredScopes, ...(requires?.scopes ?? [])])],
        ...withinResources(
          rest,
          tools &&
            withHiddenDefaults(
              tools,
              references.filter((each) => each.endpoint === name)
            ),
          input.resources ?? {}
        ),
        name,
        tenant: id,
        path: pathOfEndpoint(id, name),
        members: members
          .map((member) => (typeof member === 'string' ? { upstream: member } : member))
          .map((member) => ({
            upstream: upstreamName(member.upstream),
            prefix: member.prefix ?? prefix ?? member.upstream
          }))
          // Disabled upstreams are left out.
          .filter(({ upstream }) => upstreams.has(upstream)),
        separator
      })
    ),
    policy: policyOfTenant(input.policy, enabled),
    reserved: input.reserved,
    limits: input.limits,
    resources: input.resources,
    audit: input.audit,
    ...(input.logSample && { logSample: input.logSample }),
    tags: frozenMap(Object.fromEntries(enabled), upstreamName, ({ tags, trustAnnotations }) => ({
      tags,
      trustAnnotations
    }))
  }
}

const transports = { http: 'auto', 'streamable-http': 'streamable', streamableHttp: 'streamable', sse: 'sse' } as const

/** Values are frozen all the way down; so are those of maps and sets that are locked. */
function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  Object.freeze(value)
  Object.values(value).forEach(deepFreeze)
  return value
}

/** Object.freeze does not protect the contents of maps and sets: their mutators are replaced. */
function locked<T extends object>(collection: T, mutators: readonly string[]): T {
  const refuse = (): never => {
    throw new TypeError('a snapshot of the configuration does not change')
  }
  for (const mutator of mutators) Object.defineProperty(collection, mutator, { value: refuse })
  return Object.freeze(collection)
}

/** A map that does not change, of values that do not. */
export function frozenMap<Input, Name extends string, Value>(
  entries: Readonly<Record<string, Input>>,
  nameOf: (name: string) => Name,
  compiled: (input: Input, name: Name) => Value
): ReadonlyMap<Name, Value> {
  const names = Object.entries(entries).map(([text, input]) => [nameOf(text), input] as const)
  const map = new Map(names.map(([name, input]) => [name, deepFreeze(compiled(input, name))]))
  return locked(map, ['set', 'delete', 'clear'])
}
