// `Idempotency-Key`: a POST that is sent again gets the answer of the first time.

import { longChangeHash } from '../changes.ts'
import { AdminReply, type AdminRequest, type AdminServices } from '../route.ts'

/** @param action names the route. @throws ControlError, GatewayError unavailable */
export async function answeredOnce(
  { administrator, conditions, params, body }: AdminRequest,
  { control }: AdminServices,
  action: string,
  run: () => Promise<AdminReply>
): Promise<AdminReply> {
  const { idempotencyKey: key } = conditions
  if (key === undefined) return await run()
  const digest = await longChangeHash({ action, params, body })
  const text = await control.requests.once({ sender: administrator.name, key, digest }, async () => {
    const { body, headers, status } = await run()
    return JSON.stringify({ body, headers, status })
  })
  const answer = JSON.parse(text) as Pick<AdminReply, 'body' | 'headers' | 'status'>
  return new AdminReply(answer.body, answer.headers, answer.status)
}
