// Capabilities of clients in 2026-07-28: what a request lacks, and what an input request needs.

import { inputRequestMethods } from './methods.ts'
import { isObject, type ClientCapabilities, type JsonObject } from './messages.ts'

/**
 * The part of `required` (`data.requiredCapabilities` of error -32021) that a client did not declare. A capability
 * counts as declared when it is present; its settings are not compared.
 * @returns undefined where nothing is missing
 */
export function missingCapabilities(required: unknown, declared: ClientCapabilities): JsonObject | undefined {
  if (!isObject(required)) return undefined
  const missing: JsonObject = {}
  for (const [name, inner] of Object.entries(required)) {
    const given = declared[name]
    const offered = name === 'elicitation' && isObject(given) ? withForm(given) : given
    if (!isObject(offered)) missing[name] = inner
    else {
      const within = missingCapabilities(inner, offered)
      if (within !== undefined) missing[name] = within
    }
  }
  return Object.keys(missing).length === 0 ? undefined : missing
}

// 2026-07-28 client/elicitation: an empty object means form mode.
const withForm = (elicitation: JsonObject): JsonObject =>
  isObject(elicitation['url']) ? elicitation : { form: {}, ...elicitation }

/** The capability that an input request needs of the client; undefined where 2026-07-28 has no such input request. */
export function capabilityForInputRequest(method: unknown): string | undefined {
  return typeof method === 'string' ? inputRequestMethods.get(method)?.capability[0] : undefined
}
