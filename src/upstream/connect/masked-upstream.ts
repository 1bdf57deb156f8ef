// A connection whose server is kept from telling the secrets that it was configured with: in results, errors,
// notifications and server requests.

import { GatewayError, type Notification, RpcError } from '../../protocol/messages.ts'
import type { Client, Upstream, UpstreamEvents } from '../../protocol/seams.ts'
import { ConnectRequiredError } from '../rpc/credential.ts'
import type { Kept, Mask } from '../rpc/mask.ts'
import type { WorkOwner } from '../../time/fair-queue.ts'

/** Clients name arguments, fields of a form and responses as the server did. */
const namesBelow: ReadonlySet<string> = new Set(['inputSchema', 'requestedSchema', 'inputRequests'])
/** The members that clients send back to the server. */
const handles: Kept = { values: new Set(['requestState', 'taskId', 'nextCursor', 'progressToken']), namesBelow }
/** The members that name entries of lists, and subscribed resources. */
const names: Kept = { values: new Set([...handles.values, 'name', 'uri', 'uriTemplate']), namesBelow }

const maskedNotification = (mask: Mask, notification: Notification): Notification => mask.value(notification, names)

/** Sampling may send a whole conversation. */
const maskedAsk =
  (mask: Mask, { ask }: Pick<Client, 'ask'>, owner: WorkOwner): Client['ask'] =>
  (request, options) => {
    const safe = mask.valueInSteps(request, handles, owner)
    return safe instanceof Promise ? safe.then((known) => ask(known, options)) : ask(safe, options)
  }

/**
 * Masks an error: the same object where its class counts. The cause is for the log, which is no place for secrets
 * either.
 */
export function maskedError(mask: Mask | undefined, error: unknown): unknown {
  // The gateway's own page is in the latter.
  if (mask === undefined || error instanceof ConnectRequiredError) return error
  if (error instanceof RpcError) return new RpcError(mask.value(error.error, handles))
  if (error instanceof GatewayError) {
    error.message = mask.shortened(error.message)
    if (error.cause !== undefined) error.cause = maskedError(mask, error.cause)
  }
  return error
}

/** @param owner of the work that long messages make */
export const maskedEvents = (mask: Mask, events: UpstreamEvents, owner: WorkOwner): UpstreamEvents => ({
  ...events,
  notification: (notification) => events.notification(maskedNotification(mask, notification)),
  ask: maskedAsk(mask, events, owner)
})

/** @param owner of the work that long messages make */
export const maskedRequest =
  (mask: Mask, request: Upstream['request'], owner: WorkOwner): Upstream['request'] =>
  async (outgoing, client, signal) => {
    const asked: Client = {
      ...client,
      notify: (notification) => client.notify(maskedNotification(mask, notification)),
      ask: maskedAsk(mask, client, owner)
    }
    try {
      const result = await request(outgoing, asked, signal)
      return await mask.valueInSteps(result, outgoing.method.endsWith('/list') ? names : handles, owner)
    } catch (error) {
      throw maskedError(mask, error)
    }
  }
