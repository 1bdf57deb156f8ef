// resources/subscribe and resources/unsubscribe of sessions.

import { GatewayError, type Result } from '../../protocol/messages.ts'
import { hasCapability } from '../../protocol/methods.ts'
import type { LegacyCall } from '../call/call.ts'
import type { SubscriptionRequest } from '../subscriptions/resource-subscriptions.ts'
import { subscribedScopeOf } from '../subscriptions/session-subscribers.ts'
import { connect, type LegacyServices, send } from './legacy-forward.ts'
import { resolveResource, type Target, withClientUri } from './shared.ts'

const maxUriLength = 8_192

/** @throws GatewayError invalid_params, resource_not_found, too_many; whatever the upstream answers */
export async function subscribe(call: LegacyCall, services: LegacyServices): Promise<Result> {
  const { target, uri } = await resolveResource(call, services.catalogs)
  if (target.route.name.length > maxUriLength) {
    throw new GatewayError('invalid_params', `The URI is longer than ${maxUriLength} characters.`)
  }
  try {
    return await services.subscriptions.subscribe(await requestOf(call, target, services), uri)
  } catch (error) {
    throw withClientUri(error, target.uris)
  }
}

/** @throws GatewayError invalid_params, resource_not_found; whatever the upstream answers */
export async function unsubscribe(call: LegacyCall, services: LegacyServices): Promise<Result> {
  const { target } = await resolveResource(call, services.catalogs)
  try {
    return await services.subscriptions.unsubscribe(await requestOf(call, target, services))
  } catch (error) {
    throw withClientUri(error, target.uris)
  }
}

async function requestOf(call: LegacyCall, target: Target, services: LegacyServices): Promise<SubscriptionRequest> {
  const { definition, route } = target
  const connection = await connect(call, target, services)
  if (!hasCapability(connection.upstream.capabilities, ['resources', 'subscribe'])) {
    const message =
      `Upstream ${route.upstream} does not support subscriptions to its resources. ` +
      'Read them again when they are needed.'
    throw new GatewayError('invalid_params', message)
  }
  const { method, params } = call.request
  return {
    subscriber: services.subscribers.of(call.session),
    connection: { ...subscribedScopeOf(definition, call.session), upstream: connection.upstream },
    uri: route.name,
    send: () => send(call, connection, { method, params: { ...params, uri: route.name } }, services),
    signal: call.signal
  }
}
