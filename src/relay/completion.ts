// completion/complete, for either era.

import { GatewayError, RpcError } from '../protocol/errors.ts'
import { isObject } from '../protocol/messages.ts'
import type { Request, Result } from '../protocol/messages.ts'
import { withRef } from '../protocol/rewrite.ts'
import { shapeCompletion } from '../protocol/shape.ts'
import type { Catalog, Route } from './catalog.ts'
import { excerpt, find } from './floor.ts'
import type { Asked, Signposts } from './floor.ts'

interface Forwarding<C> extends Signposts<C> {
  forward (call: C, route: Route, request: Request): Promise<Result>
  offers (call: C, route: Route, ...path: readonly string[]): boolean
}

/** @throws GatewayError invalid_params; whatever `forward` throws */
export async function complete<C extends Asked> (call: C, floor: Forwarding<C>): Promise<Result> {
  const ref = call.request.params?.['ref']
  if (!isObject(ref)) throw new GatewayError('invalid_params', '"ref" of completion/complete must be an object.')
  const [member, look]: [string, (catalog: Catalog, name: string) => Route | undefined] = ref['type'] === 'ref/prompt'
    ? ['name', (catalog, name) => catalog.prompt(name)]
    : ['uri', (catalog, name) => catalog.resource(name)]
  const name = ref[member]
  if (typeof name !== 'string') throw new GatewayError('invalid_params', `"ref.${member}" of completion/complete must be a string.`)
  const route = await find(call, floor, (catalog) => look(catalog, name))
  if (route === undefined) throw new GatewayError('invalid_params', `Unknown reference: ${excerpt(name)}`)
  // Other upstreams of the endpoint complete, this one does not: nothing to suggest, rather than a method that seems to be missing.
  if (!floor.offers(call, route, 'completions')) return { completion: { values: [] } }
  return shapeCompletion(await floor.forward(call, route, withRef(call.request, { ...ref, [member]: route.name })).catch((error: unknown) => {
    // An upstream of 2024-11-05 could not declare completion: whether it has it is found out here.
    if (error instanceof RpcError && error.error.code === -32601) return { completion: { values: [] } }
    throw error
  }))
}
