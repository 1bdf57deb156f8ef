// What methods of both eras share: the upstream that a public name leads to, the lists, completion.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import {
  GatewayError,
  RpcError,
  isObject,
  rpcCodes,
  type Request,
  type Result,
  type Revision,
  type UpstreamName
} from '../../protocol/messages.ts'
import { pageOf, unknownCursor } from '../../protocol/naming.ts'
import { shapeCompletion } from '../../protocol/translate/revision-shape.ts'
import { withParam, type UriMap } from '../../protocol/translate/rewrite.ts'
import type { Sealer } from '../../store/seal.ts'
import { callerBindingOf, definitionOf, excerpt, type Call, type EndpointContext } from '../call/call.ts'
import type { Catalog, Route } from '../catalog/catalog.ts'
import type { ClientCatalogs } from '../catalog/client-catalogs.ts'

/** A resolved name: everything that the rest of the call needs to know about its upstream. */
export interface Target {
  readonly route: Route
  readonly definition: UpstreamDefinition
  /** The catalog in which the name was found. */
  readonly catalog: Catalog
  /** From the upstream's own URIs to those that the client knows. */
  readonly uris: UriMap
}

type RecordedContext = EndpointContext & Pick<Call, 'record'>

/**
 * Looks a name up in the caller's catalog. Only a miss waits: for upstreams whose listing is unknown, then for lists
 * that may have changed.
 * @throws GatewayError upstream_unavailable
 */
export async function resolve<V>(
  call: V & RecordedContext,
  catalogs: ClientCatalogs<V>,
  kind: 'tool' | 'prompt' | 'resource',
  name: string
): Promise<Target | undefined> {
  for (const wait of [undefined, catalogs.awaitListings, catalogs.revalidate]) {
    if (wait !== undefined) await wait(call)
    const catalog = catalogs.of(call)
    const route = catalog[kind](name)
    if (route !== undefined) return targetOf(call, catalog, route)
  }
  return undefined
}

/** @param owner would own the name: while it cannot be asked, it is not known that the name is wrong */
export function unknownName(owner: UpstreamName | undefined, error: GatewayError): GatewayError {
  if (owner === undefined) return error
  const message = `Upstream ${owner} is away, and nobody else would know this name. Retry when it is back.`
  return new GatewayError('upstream_unavailable', message, { data: { upstream: owner } })
}

export function unknownEntry(catalog: Catalog, kind: 'tool' | 'prompt', name: string): GatewayError {
  const error = new GatewayError('invalid_params', `Unknown ${kind}: ${excerpt(name)}`)
  return unknownName(catalog.unlistedOwnerOfName(name), error)
}

/** @throws GatewayError upstream_unavailable */
export function targetOf(call: RecordedContext, catalog: Catalog, route: Route): Target {
  if (call.record !== undefined) call.record.route = route
  return { route, definition: definitionOf(call, route.upstream), catalog, uris: catalog.uriMap(route.upstream) }
}

/** An error that names a resource as its upstream knows it, with the URI that the client knows. */
export function withClientUri(error: unknown, uris: UriMap): unknown {
  if (!(error instanceof RpcError) || !isObject(error.error.data)) return error
  const { data } = error.error
  return typeof data['uri'] === 'string'
    ? new RpcError({ ...error.error, data: { ...data, uri: uris(data['uri']) } })
    : error
}

/** The four lists; `member` of the result holds the entries, `name` of an entry names it. */
export const lists = [
  { method: 'tools/list', list: 'tools', member: 'tools', name: 'name' },
  { method: 'prompts/list', list: 'prompts', member: 'prompts', name: 'name' },
  { method: 'resources/list', list: 'resources', member: 'resources', name: 'uri' },
  { method: 'resources/templates/list', list: 'templates', member: 'resourceTemplates', name: 'uriTemplate' }
] as const

export type Cursors = ReturnType<typeof createCursors>

/**
 * Cursors of lists, each sealed to its caller, endpoint and list: to the client they are opaque
 * (server/utilities/pagination), and nobody else can use them.
 */
export function createCursors(sealer: Pick<Sealer, 'seal' | 'open'>) {
  const binding = (call: Call): string[] => [...callerBindingOf(call), call.request.method]
  return {
    /** @param last name of the last entry that was sent */
    seal: (call: Call, last: string): string => sealer.seal('cursor', binding(call), last),
    /**
     * @returns the name of the entry to go on after; undefined for the first page
     * @throws GatewayError invalid_params for a cursor that was not given so
     */
    open(call: Call): string | undefined {
      const cursor = call.request.params?.['cursor']
      if (cursor === undefined) return undefined
      const opened = typeof cursor === 'string' ? sealer.open('cursor', binding(call), cursor) : undefined
      if (opened === undefined) throw unknownCursor()
      return opened
    }
  }
}

/** @throws GatewayError invalid_params on a cursor that is none */
export function listPage(
  call: Call,
  { list, member, name }: (typeof lists)[number],
  catalog: Catalog,
  revision: Revision,
  cursors: Cursors
): Result {
  const { entries, last } = pageOf(
    catalog.list(list, revision),
    cursors.open(call),
    call.snapshot.limits.pageSize,
    (entry) => String(entry[name])
  )
  return last === undefined ? { [member]: entries } : { [member]: entries, nextCursor: cursors.seal(call, last) }
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
  const [kind, member] = ref['type'] === 'ref/prompt' ? (['prompt', 'name'] as const) : (['resource', 'uri'] as const)
  const name = ref[member]
  if (typeof name !== 'string') {
    throw new GatewayError('invalid_params', `"ref.${member}" of completion/complete must be a string.`)
  }
  const target = await resolve(call, catalogs, kind, name)
  if (target === undefined) throw new GatewayError('invalid_params', `Unknown reference: ${excerpt(name)}`)
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
