// completion/complete, for either era.

import { GatewayError, isObject, type Request, type Result, rpcCodes, RpcError } from '../../protocol/messages.ts'
import { withRef } from '../../protocol/translate/rewrite.ts'
import type { RequestInContext } from '../call/call.ts'
import { excerpt } from '../call/params.ts'
import type { ClientCatalogs } from '../catalog/client-catalogs.ts'
import { resolve, type Target } from './resolve.ts'

/**
 * The upstream that completes an argument, and the request as it is to get it.
 * @returns undefined where the upstream completes nothing: no suggestions, rather than a method that seems to be
 * missing
 * @throws GatewayError invalid_params
 */
export async function completionRequest<V>(
  call: V & RequestInContext,
  catalogs: ClientCatalogs<V>
): Promise<{ readonly target: Target; readonly request: Request } | undefined> {
  const ref = call.request.params?.['ref']
  if (!isObject(ref)) throw new GatewayError('invalid_params', '"ref" of completion/complete must be an object.')
  const [kind, member] = ref['type'] === 'ref/prompt' ? (['prompt', 'name'] as const) : (['resource', 'uri'] as const)
  const name = ref[member]
  if (typeof name !== 'string') {
    throw new GatewayError('invalid_params', `"ref.${member}" of completion/complete must be a string.`)
  }
  const target = await resolve(call, catalogs, kind, name)
  if (target === undefined) throw new GatewayError('invalid_params', `Unknown reference: ${excerpt(name)}`)
  if (!catalogs.offers(call, target.route.upstream, 'completions')) return undefined
  return { target, request: withRef(call.request, { ...ref, [member]: target.route.name }) }
}

export const noSuggestions = (): Result => ({ completion: { values: [] } })

/** An upstream of 2024-11-05 could not declare completion: its "method not found" means that it has none. */
export function suggestionsAfter(error: unknown): Result {
  if (error instanceof RpcError && error.error.code === rpcCodes.methodNotFound) return noSuggestions()
  throw error
}
