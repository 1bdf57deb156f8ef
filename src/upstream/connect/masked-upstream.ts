// Wraps a connection so that the secrets of its definition are masked in everything that the server sends: results,
// errors, notifications and server requests.

import { GatewayError, type Notification, type Result, RpcError } from '../../protocol/messages.ts'
import type { Client, Upstream, UpstreamEvents } from '../../protocol/seams.ts'
import { ConnectRequiredError } from '../rpc/credential.ts'
import type { Kept, Mask } from '../rpc/mask.ts'
import type { WorkOwner } from '../../time/fair-queue.ts'

/** Below these members property names are kept: clients send them back as names of arguments, fields and responses. */
const namesBelow: ReadonlySet<string> = new Set(['inputSchema', 'requestedSchema', 'inputRequests'])
/** Members whose values clients send back to the server: masked, they would mean nothing to it. */
const handles: Kept = { values: new Set(['requestState', 'taskId', 'nextCursor', 'progressToken']), namesBelow }
/** The same, and the members that identify entries of lists and subscribed resources. */
const names: Kept = { values: new Set([...handles.values, 'name', 'uri', 'uriTemplate']), namesBelow }

const maskedNotification = (mask: Mask, notification: Notification): Notification => mask.value(notification, names)

/** A server request may hold a whole conversation (sampling), so it is masked in steps. */
const maskedAsk =
  (mask: Mask, { ask }: Pick<Client, 'ask'>, owner: WorkOwner): Client['ask'] =>
  (request, options) => {
    const safe = mask.valueInSteps(request, handles, owner)
    return safe instanceof Promise ? safe.then((known) => ask(known, options)) : ask(safe, options)
  }

/**
 * Masks the message, the data and the cause of an error; the cause goes to the log. A GatewayError is changed in place,
 * because callers look at its class.
 */
export function maskedError(mask: Mask | undefined, error: unknown): unknown {
  // The URL in a ConnectRequiredError is a page of the gateway and holds no secret of the upstream.
  if (mask === undefined || error instanceof ConnectRequiredError) return error
  if (error instanceof RpcError) return new RpcError(mask.value(error.error, handles))
  if (error instanceof GatewayError) {
    error.message = mask.shortened(error.message)
    if (error.cause !== undefined) error.cause = maskedError(mask, error.cause)
  }
  return error
}

/** @param owner the tenant and caller in whose turns of the event loop long messages are masked */
export const maskedEvents = (mask: Mask, events: UpstreamEvents, owner: WorkOwner): UpstreamEvents => ({
  ...events,
  notification: (notification) => events.notification(maskedNotification(mask, notification)),
  ask: maskedAsk(mask, events, owner)
})

/** @param owner the tenant and caller in whose turns of the event loop long messages are masked */
export const maskedRequest =
  (mask: Mask, request: Upstream['request'], owner: WorkOwner): Upstream['request'] =>
  (outgoing, client, signal) => {
    const kept = outgoing.method.endsWith('/list') ? names : handles
    const asked: Client = {
      ...client,
      notify: (notification) => client.notify(maskedNotification(mask, notification)),
      ask: maskedAsk(mask, client, owner)
    }
    try {
      return maskedResult(mask, request(outgoing, asked, signal), kept, owner)
    } catch (error) {
      return Promise.reject(maskedError(mask, error))
    }
  }

/** Apart from the request: its arguments must be collectable while it waits for a person. */
async function maskedResult(mask: Mask, sent: Promise<Result>, kept: Kept, owner: WorkOwner): Promise<Result> {
  try {
    return await mask.valueInSteps(await sent, kept, owner)
  } catch (error) {
    throw maskedError(mask, error)
  }
}
