// What is declared to an upstream on behalf of a client: never more than the client declared, its revision has, the
// endpoint lets through and the era of the server knows. One table for the four pairs of eras.

import type { Endpoint, UpstreamDefinition } from '../../config/snapshot.ts'
import {
  atLeast,
  type ClientCapabilities,
  type Era,
  isModernRevision,
  isObject,
  type JsonObject,
  latestModern,
  type Revision,
  type ServerCapabilities
} from '../../protocol/messages.ts'
import { hasCapability, tasksExtension, uiExtension } from '../../protocol/methods.ts'
import type { LegacyCall, ModernCall } from '../call/call.ts'

export interface AskedClient {
  readonly revision: Revision
  readonly capabilities: ClientCapabilities
}

/** @returns the capability as the server is told of it; undefined: not at all */
type Rule = (declared: JsonObject, revision: Revision, aggregated: boolean) => JsonObject | undefined

const asDeclared: Rule = (declared) => declared
// Nobody can say which of the servers behind the endpoint it is meant for.
const unlessAggregated: Rule = (declared, _revision, aggregated) => (aggregated ? undefined : declared)

// Tools in sampling, and context by a capability of its own, came with 2025-11-25. Context of "this server" would mean
// all servers of the endpoint.
const sampling: Rule = (declared, revision, aggregated) => {
  if (!atLeast(revision, '2025-11-25')) return {}
  const { context: _context, ...rest } = declared
  return aggregated ? rest : declared
}

// Elicitation came with 2025-06-18, its modes with 2025-11-25.
const elicitation: Rule = (declared, revision) =>
  atLeast(revision, '2025-11-25') ? declared : atLeast(revision, '2025-06-18') ? {} : undefined

const extensions =
  (...names: readonly string[]): Rule =>
  (declared) => {
    const known = names.filter((name) => isObject(declared[name]))
    return known.length === 0 ? undefined : Object.fromEntries(known.map((name) => [name, declared[name]]))
  }

const toModern: Readonly<Record<string, Rule>> = {
  roots: ({ listChanged: _listChanged, ...declared }) => declared,
  sampling,
  elicitation,
  extensions: extensions(uiExtension),
  experimental: unlessAggregated
}

// From the era of the client to that of the server. Tasks of 2025-11-25 end at the gateway, which follows them itself
// in the other era.
const table: Readonly<Record<`${Era} to ${Era}`, Readonly<Record<string, Rule>>>> = {
  'legacy to legacy': {
    roots: asDeclared,
    sampling,
    elicitation,
    tasks: (declared, revision) => (atLeast(revision, '2025-11-25') ? declared : undefined),
    extensions: asDeclared,
    experimental: unlessAggregated
  },
  'legacy to modern': toModern,
  'modern to modern': { ...toModern, tasks: () => undefined, extensions: extensions(uiExtension, tasksExtension) },
  // In one spelling: each set of capabilities gets legacy connections of its own.
  'modern to legacy': {
    // client/elicitation: an empty object means form mode.
    elicitation: ({ form, url }) => ({
      ...((isObject(form) || !isObject(url)) && { form: {} }),
      ...(isObject(url) && { url: {} })
    }),
    sampling: ({ tools, context }, _revision, aggregated) => ({
      ...(isObject(tools) && { tools: {} }),
      ...(isObject(context) && !aggregated && { context: {} })
    }),
    roots: () => ({}),
    extensions: extensions(uiExtension)
  }
}

/** @param server the era of the server that is told */
export function declaredCapabilities(client: AskedClient, endpoint: Endpoint, server: Era): ClientCapabilities {
  const { revision, capabilities } = client
  const pair = `${isModernRevision(revision) ? 'modern' : 'legacy'} to ${server}` as const
  // Between modern peers, capabilities that the gateway does not know pass as they are.
  const declared: JsonObject = pair === 'modern to modern' ? { ...capabilities } : {}
  const aggregated = isAggregated(endpoint)
  for (const [name, rule] of Object.entries(table[pair])) {
    const given = capabilities[name]
    const passed = isObject(given) ? rule(given, revision, aggregated) : undefined
    if (passed === undefined) delete declared[name]
    else declared[name] = passed
  }
  return declared
}

/**
 * What a legacy server is told of a session. A connection of several sessions declares nothing: its server could not
 * say whom it asks.
 */
export const declaredAtHandshake = (
  { isolation }: UpstreamDefinition,
  endpoint: Endpoint,
  client: AskedClient
): ClientCapabilities => (isolation === 'session' ? declaredCapabilities(client, endpoint, 'legacy') : {})

/**
 * What a modern server is told of a session. Where it has tasks they are declared: the gateway follows them for clients
 * without.
 */
export function declaredForSession({ endpoint, session }: LegacyCall, server: ServerCapabilities): ClientCapabilities {
  const declared = declaredCapabilities(session.session.record, endpoint, 'modern')
  if (!hasCapability(server, ['extensions', tasksExtension])) return declared
  return { ...declared, extensions: { ...(declared['extensions'] as JsonObject | undefined), [tasksExtension]: {} } }
}

type ForCaller = Partial<Record<`${Era}${'' | ' of several'}`, ClientCapabilities>>

/** Clients that declare the same have one object for it (http/modern/known-capabilities.ts). */
const forCallers = new WeakMap<ClientCapabilities, ForCaller>()

/** Returns the capabilities that are declared for the sender of a request of 2026-07-28. Not to be changed. */
export function declaredForCaller(
  { client: { capabilities }, endpoint }: Pick<ModernCall, 'client' | 'endpoint'>,
  server: Era
): ClientCapabilities {
  let known = forCallers.get(capabilities)
  if (known === undefined) {
    known = {}
    forCallers.set(capabilities, known)
  }
  const key = `${server}${isAggregated(endpoint) ? ' of several' : ''}` as const
  return (known[key] ??= declaredCapabilities({ revision: latestModern, capabilities }, endpoint, server))
}

/** May a server that was told this send no server requests? */
export const allowsNoServerRequests = ({ elicitation, sampling, roots }: ClientCapabilities): boolean =>
  elicitation === undefined && sampling === undefined && roots === undefined

export const isAggregated = ({ members }: Endpoint): boolean => members.length > 1
