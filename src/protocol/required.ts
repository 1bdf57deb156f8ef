// Capabilities of a client as 2026-07-28 weighs them: what a request needs against what it declares, and what an input request needs.

import { isObject } from './messages.ts'
import type { ClientCapabilities, JsonObject } from './messages.ts'

/**
 * What of `required` (`data.requiredCapabilities` of error -32021) a client did not declare. Presence counts; settings are not compared.
 * @returns undefined where it declared all of it, or nothing was named
 */
export function undeclared (required: unknown, declared: ClientCapabilities): JsonObject | undefined {
  if (!isObject(required)) return undefined
  const missing: JsonObject = {}
  for (const [name, inner] of Object.entries(required)) {
    const given = declared[name]
    const offered = name === 'elicitation' && isObject(given) ? withForm(given) : given
    if (!isObject(offered)) missing[name] = inner
    else {
      const within = undeclared(inner, offered)
      if (within !== undefined) missing[name] = within
    }
  }
  return Object.keys(missing).length === 0 ? undefined : missing
}

// 2026-07-28 client/elicitation: an empty object means form mode.
const withForm = (elicitation: JsonObject): JsonObject => isObject(elicitation['url']) ? elicitation : { form: {}, ...elicitation }

/** The capability that an input request needs of the client; undefined: 2026-07-28 has no such input request. */
export function capabilityOf (method: unknown): string | undefined {
  return typeof method === 'string' ? asked.get(method) : undefined
}

const asked: ReadonlyMap<string, string> = new Map([['elicitation/create', 'elicitation'], ['sampling/createMessage', 'sampling'], ['roots/list', 'roots']])
