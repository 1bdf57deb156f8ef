// What a legacy upstream is declared for a caller of 2026-07-28. It hears it once, at its handshake, while each request has capabilities of
// its own: so each set of them, in one spelling, gets connections of its own.

import type { Endpoint } from '../../config/snapshot.ts'
import { uiExtension } from '../../protocol/merge.ts'
import { isObject } from '../../protocol/messages.ts'
import type { ClientCapabilities, JsonObject } from '../../protocol/messages.ts'
import { aggregated } from '../asking.ts'

/** Equal profiles have equal members in equal order. What crosses no era (tasks, experimental, `listChanged` of roots) is left out. */
export function profileOf ({ elicitation, sampling, roots, extensions }: ClientCapabilities, endpoint: Endpoint): ClientCapabilities {
  const profile: JsonObject = {}
  if (isObject(elicitation)) {
    const url = isObject(elicitation['url'])
    // client/elicitation: an empty object means form mode.
    profile['elicitation'] = { ...(isObject(elicitation['form']) || !url) && { form: {} }, ...url && { url: {} } }
  }
  if (isObject(sampling)) {
    // "This server" would mean all the servers behind the endpoint.
    const context = isObject(sampling['context']) && !aggregated(endpoint)
    profile['sampling'] = { ...isObject(sampling['tools']) && { tools: {} }, ...context && { context: {} } }
  }
  if (isObject(roots)) profile['roots'] = {}
  if (isObject(extensions) && isObject(extensions[uiExtension])) profile['extensions'] = { [uiExtension]: extensions[uiExtension] }
  return profile
}

/** Does it let a server ask anything? */
export const asksNothing = ({ elicitation, sampling, roots }: ClientCapabilities): boolean => elicitation === undefined && sampling === undefined && roots === undefined
