// `Idempotency-Key`: a repeated POST gets the response of the first one and has no second effect.

import { longChangeHash } from '../changes.ts'
import { AdminProblem } from '../problem.ts'
import { AdminReply, type AdminRequest, type AdminRoute, type AdminServices } from '../route.ts'

export const takesIdempotencyKey = ({ method, isSafe }: Pick<AdminRoute, 'method' | 'isSafe'>): boolean =>
  method === 'POST' && isSafe !== true

/**
 * @returns what the handler of the route does, or did the first time
 * @throws whatever it throws; ControlError, GatewayError unavailable; AdminProblem invalid_request
 */
export async function handledOnce(route: AdminRoute, request: AdminRequest, services: AdminServices): Promise<unknown> {
  const { administrator, conditions, params, query, body, wantsEvents } = request
  const { idempotencyKey: key } = conditions
  if (key === undefined || !takesIdempotencyKey(route)) return await route.handle(request, services)
  if (wantsEvents && route.events !== undefined)
    throw new AdminProblem(
      'invalid_request',
      'An event stream cannot be answered again, and so takes no Idempotency-Key.',
      'Leave the key out, or ask for application/json.'
    )
  const digest = await longChangeHash({
    action: `${route.method} ${route.path}`,
    params,
    query,
    body,
    ifMatch: conditions.ifMatch
  })
  const asked = { sender: administrator.name, key, digest, timeoutMs: route.timeoutMs }
  const text = await services.control.requests.once(asked, async () => {
    try {
      const answer = await route.handle(request, services)
      const { body, headers, status } = answer instanceof AdminReply ? answer : new AdminReply(answer, {})
      return JSON.stringify({ body, headers, status })
    } catch (error) {
      if (!(error instanceof AdminProblem) || !error.mayBeDone) throw error
      const { code, message, remedy } = error
      return JSON.stringify({ problem: { code, message, remedy } })
    }
  })
  const answer = JSON.parse(text) as Pick<AdminReply, 'body' | 'headers' | 'status'> & { readonly problem?: Told }
  const { problem } = answer
  if (problem !== undefined) throw new AdminProblem(problem.code, problem.message, problem.remedy)
  return new AdminReply(answer.body, answer.headers, answer.status)
}

type Told = Pick<AdminProblem, 'code' | 'message' | 'remedy'>
