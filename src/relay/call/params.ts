// Parameters of requests that the gateway itself reads, checked.

import { GatewayError, isObject, metaOf } from '../../protocol/messages.ts'
import type { RequestInContext } from './call.ts'

/** @throws GatewayError invalid_params */
export function stringParam({ request: { method, params } }: RequestInContext, member: string): string {
  const value = params?.[member]
  if (typeof value === 'string') return value
  throw new GatewayError('invalid_params', `"${member}" of ${method} must be a string.`)
}

/** The object `arguments` of tools/call, where there is one. @throws GatewayError invalid_params */
export function checkArguments({ request: { params } }: RequestInContext): void {
  const args = params?.['arguments']
  if (args === undefined || isObject(args)) return
  throw new GatewayError('invalid_params', '"arguments" of tools/call must be an object.')
}

const maxTokenLength = 1_024

/**
 * Every progress message repeats the token, so a long one would be sent many times over.
 * @throws GatewayError invalid_params
 */
export function checkProgressToken({ request }: RequestInContext): void {
  const token = metaOf(request.params)['progressToken']
  if (token === undefined || typeof token === 'number' || JSON.stringify(token).length <= maxTokenLength) return
  throw new GatewayError('invalid_params', `"_meta.progressToken" is longer than ${maxTokenLength} characters.`)
}

/** At most 200 characters of what a caller sent, for an error message. */
export const excerpt = (value: string): string => (value.length <= 200 ? value : value.slice(0, 200) + '…')

export const methodNotFound = (method: string): GatewayError =>
  new GatewayError('method_not_found', `Method not found: ${excerpt(method)}`)
