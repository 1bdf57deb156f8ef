// What the caller is not told: where an upstream is and how it is started. Its name is enough; the log has the rest.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { GatewayError } from '../../protocol/messages.ts'

/**
 * @returns the error, or one without the upstream's address, command and folder in its message and with the original as
 * its cause
 */
export function redactError(error: unknown, definition: UpstreamDefinition): unknown {
  if (!(error instanceof GatewayError)) return error
  const message = placesOf(definition).reduce((text, place) => text.replaceAll(place, '…'), error.message)
  return message === error.message
    ? error
    : new GatewayError(error.code, message, { cause: error, data: error.data, headers: error.headers })
}

/** The longer ones first: they may hold the shorter ones. A bare command such as `npx` tells nothing. */
function placesOf(definition: UpstreamDefinition): string[] {
  if (definition.type === 'stdio')
    return [definition.command, definition.cwd].filter(
      (place) => place !== undefined && /[\\/]/.test(place)
    ) as string[]
  const { origin, pathname, host } = new URL(definition.url)
  return [origin + pathname, origin, host]
}
