// What methods of both eras share: the upstream that a public name leads to, completion.

import { askedFor } from '../../auth/bearer.ts'
import { adviceOnScopes } from '../../auth/principal.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { jsonSizeOf } from '../../limits/limits.ts'
import { GatewayError, RpcError, isObject, rpcCodes, type Request, type Result } from '../../protocol/messages.ts'
import { killOfRoute } from '../../policy/kills.ts'
import { omittedPaths } from '../../protocol/translate/change-tool.ts'
import { JsonLimitError } from '../../protocol/json-scan.ts'
import { withoutParts } from '../../protocol/translate/omit.ts'
import { shapeCompletion } from '../../protocol/translate/revision-shape.ts'
import { withParam, type UriMap } from '../../protocol/translate/rewrite.ts'
import type { Clock } from '../../time/clock.ts'
import { definitionOf, excerpt, type Call } from '../call/call.ts'
import type { Catalog, NamedKind, Route } from '../catalog/catalog.ts'
import type { ClientCatalogs } from '../catalog/client-catalogs.ts'
import { judgedCall, type Viewer } from '../catalog/visible.ts'
import { routeOfUnconnected, unlistedRoute } from './unconnected.ts'

/** A resolved name: everything that the rest of the call needs to know about its upstream. */
export interface Target {
  readonly route: Route
  readonly definition: UpstreamDefinition
  /** The catalog in which the name was found. */
  readonly catalog: Catalog
  /** The map from the upstream's own URIs to those that the client knows. */
  readonly uris: UriMap
}

type RecordedContext = Viewer & Pick<Call, 'record'>

/**
 * Looks a name up in the caller's catalog. Only a miss waits: for upstreams whose listing is unknown, then for lists
 * that may have changed. What the caller may not use is not found.
 * @throws GatewayError upstream_unavailable, insufficient_scope
 */
export function resolve<V>(
  call: V & RecordedContext,
  catalogs: ClientCatalogs<V>,
  kind: NamedKind,
  name: string,
  isCompletion = false
): Target | Promise<Target | undefined> {
  return lookUp(call, catalogs, kind, name, isCompletion) ?? resolveLater(call, catalogs, kind, name, isCompletion)
}

/** @returns undefined where the name is not in the catalog of now */
function lookUp<V>(
  call: V & RecordedContext,
  catalogs: ClientCatalogs<V>,
  kind: NamedKind,
  name: string,
  isCompletion: boolean
): Target | undefined {
  const catalog = catalogs.of(call)
  const route = catalog[kind](name)
  if (route === undefined) return undefined
  const target = targetOf(call, catalog, route)
  const judged = kind !== 'reference' ? kind : catalog.isTemplate(route) ? 'template' : 'resource'
  const decision = catalog.decide(judged, route)
  // Of a call that depends on its arguments, `checkConditions` names all scopes at once.
  if (decision.decideCall === undefined || isCompletion) requireScopes(call, decision.scopes)
  if (call.record !== undefined) call.record.allowedBy = decision.allowedBy
  return target
}

async function resolveLater<V>(
  call: V & RecordedContext,
  catalogs: ClientCatalogs<V>,
  kind: NamedKind,
  name: string,
  isCompletion: boolean
): Promise<Target | undefined> {
  for (const wait of [catalogs.awaitListings, catalogs.revalidate]) {
    await wait(call)
    const target = lookUp(call, catalogs, kind, name, isCompletion)
    if (target !== undefined) return target
  }
  const route = kind === 'tool' ? routeOfUnconnected(call, name) : undefined
  const catalog = catalogs.of(call)
  return route !== undefined && catalog.decide('tool', route).isListed ? targetOf(call, catalog, route) : undefined
}

/**
 * Conditions of rules, judged on the very arguments that the upstream gets.
 * @param wall the time of day
 * @throws GatewayError refused_by_policy, insufficient_scope
 */
export function checkConditions(
  call: Call,
  { catalog, route }: Target,
  kind: 'tool' | 'prompt' | 'resource',
  { params }: Request,
  wall: Pick<Clock, 'now'>
): void {
  const { arguments: args } = params ?? {}
  const verdict = judgedCall(call, catalog, kind, route, isObject(args) ? args : {}, wall.now())
  if (verdict === undefined) return
  const { refusedBy, allowedBy, scopes } = verdict
  requireScopes(call, scopes)
  if (call.record !== undefined) call.record.allowedBy = allowedBy
  if (refusedBy === undefined) return
  const what = kind === 'resource' ? 'this resource' : 'these arguments'
  const reason = refusedBy === 'default' ? 'no rule allows it with' : `the rule ${refusedBy} refuses`
  const message = `The policy of this endpoint refuses the call: ${reason} ${what} at this time, from this address.`
  throw new GatewayError('refused_by_policy', message, { data: { rule: refusedBy } })
}

/** @throws GatewayError insufficient_scope, whose data names all scopes that are needed (RFC 6750 section 3.1) */
function requireScopes({ tenant, endpoint, principal }: Viewer, scopes: readonly string[]): void {
  if (scopes.every((scope) => principal?.scopes.has(scope) === true)) return
  const all = [...new Set([...(endpoint.requiredScopes ?? tenant.auth.requiredScopes), ...scopes])]
  const asked = askedFor(tenant.auth, all)
  const message = `This needs all of these scopes: ${asked.join(' ')}. ${adviceOnScopes(principal)}`
  throw new GatewayError('insufficient_scope', message, { data: { scopes: asked } })
}

/**
 * What the client is told of a name that leads nowhere. The record has besides whom it is about: what a rule hides, or
 * the upstream that would own the name. While that cannot be asked, it is not known that the name is wrong.
 */
export function unknownName(
  { endpoint, record }: RecordedContext,
  catalog: Catalog,
  kind: NamedKind,
  name: string,
  error: GatewayError
): GatewayError {
  const hidden = catalog.hidden(kind, name)
  const owner =
    kind === 'tool' || kind === 'prompt'
      ? catalog.unlistedOwnerOfName(kind, name)
      : kind === 'resource'
        ? catalog.unlistedOwnerOfUri(name)
        : undefined
  const route = hidden?.route ?? (owner && unlistedRoute(endpoint, owner, name))
  if (record !== undefined && route !== undefined) {
    record.denied = hidden?.rule
    record.route = route
  }
  if (owner === undefined) return error
  const message = `Upstream ${owner} is away, and nobody else would know this name. Retry when it is back.`
  return new GatewayError('upstream_unavailable', message, { data: { upstream: owner } })
}

export const unknownEntry = (call: RecordedContext, catalog: Catalog, kind: 'tool' | 'prompt', name: string) =>
  unknownName(call, catalog, kind, name, new GatewayError('invalid_params', `Unknown ${kind}: ${excerpt(name)}`))

const stoppedBeforeSent = (): GatewayError =>
  new GatewayError('call_stopped', 'An administrator of this gateway has stopped what is called. It was not called.')

/** @throws GatewayError upstream_unavailable, call_stopped */
export function targetOf(call: RecordedContext, catalog: Catalog, route: Route): Target {
  const { record } = call
  if (record !== undefined) {
    record.route = route
    if (route.change?.maxResultBytes !== undefined) record.maxAnswerBytes = route.change.maxResultBytes
    if (record.stopped !== undefined && killOfRoute(record.stopped, route) !== undefined) throw stoppedBeforeSent()
  }
  return { route, definition: definitionOf(call, route.upstream), catalog, uris: catalog.uriMap(route.upstream) }
}

/** The longest result of which parts are left out, in bytes of `jsonSizeOf`: it takes one turn of the event loop. */
const maxOmitBytes = 4_194_304

/**
 * A result of a tool without the parts that its endpoint leaves out.
 * @throws GatewayError upstream_protocol where it is too large for that, or a text in it nested too deeply
 */
export function shownResult(result: Result, { change, upstream }: Route): Result {
  const paths = change === undefined ? [] : omittedPaths(change)
  if (paths.length === 0) return result
  try {
    if (jsonSizeOf(result, maxOmitBytes) <= maxOmitBytes) return withoutParts(result, paths)
  } catch (error) {
    if (!(error instanceof JsonLimitError)) throw error
  }
  const message =
    `Upstream ${upstream} gave a result that is too large, or nested too deeply, for parts of it to be left out. ` +
    'Ask for less.'
  throw new GatewayError('upstream_protocol', message, { data: { upstream, outcome: 'unknown' } })
}

/** An error that names a resource as its upstream knows it, with the URI that the client knows. */
export function withClientUri(error: unknown, uris: UriMap): unknown {
  if (!(error instanceof RpcError) || !isObject(error.error.data)) return error
  const { data } = error.error
  return typeof data['uri'] === 'string'
    ? new RpcError({ ...error.error, data: { ...data, uri: uris(data['uri']) } })
    : error
}

/**
 * completion/complete. An upstream that completes nothing has no suggestions, rather than a method that seems to be
 * missing.
 * @throws GatewayError invalid_params; whatever `send` throws
 */
export async function completion<V>(
  call: V & Call,
  catalogs: ClientCatalogs<V>,
  send: (target: Target, request: Request) => Promise<Result>
): Promise<Result> {
  const ref = call.request.params?.['ref']
  if (!isObject(ref)) throw new GatewayError('invalid_params', '"ref" of completion/complete must be an object.')
  const [kind, member] = ref['type'] === 'ref/prompt' ? (['prompt', 'name'] as const) : (['reference', 'uri'] as const)
  const name = ref[member]
  if (typeof name !== 'string') {
    throw new GatewayError('invalid_params', `"ref.${member}" of completion/complete must be a string.`)
  }
  const target = await resolve(call, catalogs, kind, name, true)
  if (target === undefined) {
    if (kind === 'prompt') throw unknownEntry(call, catalogs.of(call), kind, name)
    // Messages of errors are logged, and a URI may hold arguments.
    const error = new GatewayError('invalid_params', 'Unknown resource', { data: { uri: excerpt(name) } })
    throw unknownName(call, catalogs.of(call), kind, name, error)
  }
  const none = { completion: { values: [] } }
  if (!catalogs.offers(call, target.route.upstream, 'completions')) return none
  try {
    const request = withParam(call.request, 'ref', { ...ref, [member]: target.route.name })
    return shapeCompletion(await send(target, request))
  } catch (error) {
    // An upstream of 2024-11-05 could not declare completion: its "method not found" means that it has none.
    if (error instanceof RpcError && error.error.code === rpcCodes.methodNotFound) return none
    throw error
  }
}
