// Tries a tool by a call to the gateway's own listener, with a credential of the administrator. So policy, limits and
// records are those of any call, and this route gives no further permissions.

import type { Static } from 'typebox'
import { closedObject } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import type { Endpoint, Tenant } from '../../config/snapshot.ts'
import { AnswerTooLong, ownToolCall, type OwnAnswer, type OwnCall } from '../../hosts/own-request.ts'
import { isObject, type JsonObject } from '../../protocol/messages.ts'
import { deadline, steadyClock } from '../../time/clock.ts'
import { recordChange } from '../changes.ts'
import { AdminProblem } from '../problem.ts'
import { administrators, AdminStream, defineRoute } from '../route.ts'
import { createPlaces, credentialSchema, namedEndpoint, ownListener } from './own-way.ts'

const maxTries = 8
const maxTryMs = 10 * 60_000

/** The capabilities that a page can serve. */
const capabilities = { elicitation: { form: {}, url: {} } }

const TryAnswer = closedObject({
  status: Type.Integer({ description: "HTTP status of the endpoint's answer." }),
  requestId: Type.Union([Type.String(), Type.Null()], { description: 'Id of the call in the log.' }),
  ms: Type.Integer({ description: 'Duration in milliseconds.' }),
  result: Type.Optional(
    Type.Unknown({
      description: 'Result that a client of 2026-07-28 gets; `resultType: input_required` if the server asks for input.'
    })
  ),
  error: Type.Optional(Type.Unknown({ description: 'JSON-RPC error: `code`, `message` and `data`.' }))
})

const places = createPlaces(maxTries, 'Too many tools are being tried.')

export const tryRoute = defineRoute(
  {
    method: 'POST',
    path: '/v1/tenants/{tenant}/endpoints/{endpoint}/try',
    timeoutMs: maxTryMs,
    roles: administrators,
    summary:
      'Calls a tool through the endpoint itself, as the caller of the credential in the body, with the rights of ' +
      'that caller only. The audit log records who tried it, and the call. With Accept: text/event-stream the ' +
      'progress is sent, too. Refused if rules of the endpoint use the address of the client, since the call comes ' +
      'from the gateway.',
    body: closedObject({
      tool: Type.String({ maxLength: 512, description: 'Name of the tool at this endpoint.' }),
      arguments: Type.Optional(Type.Unknown({ description: 'Arguments of the call, an object.' })),
      credential: credentialSchema('of whoever tries it'),
      inputResponses: Type.Optional(
        Type.Unknown({ description: 'Responses to the `inputRequests` of the answer before.' })
      ),
      requestState: Type.Optional(Type.String({ description: 'The `requestState` of the answer before.' }))
    }),
    response: TryAnswer,
    events:
      '`event: progress` and `event: message` for notifications of the server, then one `event: answer`, whose ' +
      '`data` is the answer without events, or `event: problem`. Whoever closes the stream cancels the call.'
  },
  async ({ tenant, params, body, administrator, address, wantsEvents }, services) => {
    const endpoint = namedEndpoint(tenant, params['endpoint'] ?? '')
    const { tool, arguments: args = {}, inputResponses, requestState, credential } = body
    if (!isObject(args)) throw noObject('arguments')
    if (inputResponses !== undefined && !isObject(inputResponses)) throw noObject('inputResponses')
    checkAddresses(tenant, endpoint)
    const listener = ownListener(services)
    const leave = places.take(tenant.id)
    await recordChange(services, {
      actor: administrator.name,
      role: administrator.role,
      action: 'tool.try',
      tenant: tenant.id,
      target: `${endpoint.name}/${tool}`,
      before: undefined,
      after: undefined,
      address
    })
    const clientInfo = { name: 'gatehouse-console', version: services.version }
    const call = { listener, path: endpoint.path, credential, address, capabilities, clientInfo }
    const asked = {
      name: tool,
      arguments: args,
      ...(inputResponses !== undefined && { inputResponses }),
      ...(requestState !== undefined && { requestState })
    }
    async function run(signal: AbortSignal | undefined, notified: OwnCall['notified']) {
      const timer = deadline(steadyClock, maxTryMs, signal)
      const began = steadyClock.now()
      try {
        const answer = await ownToolCall({ ...call, signal: timer.signal, notified }, asked)
        return answerOf(answer, steadyClock.now() - began)
      } catch (error) {
        throw failed(error)
      } finally {
        timer.close()
        leave()
      }
    }
    return wantsEvents ? streamed(run, leave) : run(undefined, () => {})
  }
)

function streamed(
  run: (signal: AbortSignal, notified: OwnCall['notified']) => Promise<unknown>,
  leave: () => void
): AdminStream {
  return new AdminStream((send, end) => {
    const stop = new AbortController()
    const notified = (method: string, params: JsonObject): void => {
      if (method === 'notifications/progress') send('progress', JSON.stringify(params))
      if (method === 'notifications/message') send('message', JSON.stringify(params))
    }
    void run(stop.signal, notified)
      .then(
        (answer) => send('answer', JSON.stringify(answer)),
        (error: AdminProblem) => send('problem', JSON.stringify({ detail: error.message, remedy: error.remedy }))
      )
      .finally(end)
    return () => stop.abort()
  }, leave)
}

function answerOf({ status, requestId, message, text }: OwnAnswer, ms: number): Static<typeof TryAnswer> {
  const { result, error } = message ?? {}
  return {
    status,
    requestId: requestId ?? null,
    ms: Math.round(ms),
    ...(result !== undefined && { result }),
    ...(result === undefined && { error: error ?? { message: text } })
  }
}

/** A rule over addresses would see that of the gateway, and might allow what it does not allow the administrator. */
function checkAddresses({ policy }: Tenant, endpoint: Endpoint): void {
  const rules = [...(policy?.rules ?? []), ...(endpoint.policy?.rules ?? [])]
  if (!rules.some(({ when }) => when !== undefined && /\baddress\b/.test(when))) return
  throw new AdminProblem(
    'conflict',
    'Rules of this endpoint look at the address of the caller, and this call would come from the gateway.',
    'Call it from where your hosts are: gatehouse call.'
  )
}

const noObject = (member: string): AdminProblem =>
  new AdminProblem('invalid_request', `"${member}" is no object.`, 'Send a JSON object.')

const failed = (error: unknown): AdminProblem =>
  error instanceof AnswerTooLong
    ? new AdminProblem(
        'conflict',
        'The call was made, and its answer is longer than is shown here.',
        'Use gatehouse call, which prints all of it.',
        { mayBeDone: true }
      )
    : new AdminProblem(
        'unavailable',
        'The listener of the gateway gave no whole answer; whether the call took effect is unknown.',
        'See the log.',
        { mayBeDone: true }
      )
