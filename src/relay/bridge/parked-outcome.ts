// How a call at an older upstream ended while its client was away: what there is for whoever comes back.

import { GatewayError, type Result, RpcError, type RpcErrorObject, type UpstreamName } from '../../protocol/messages.ts'

export type ParkedOutcome = { readonly result: Result } | { readonly error: unknown }

/**
 * An answer that nobody is there for is kept up to this size; a client that comes back for a larger one has to ask
 * anew.
 */
const keptChars = 1024 * 1024

/**
 * An answer of the upstream is an answer, be it an error; everything else leaves nothing to come back to.
 * @param keep room for so many characters: what gives it back, or undefined where there is none left
 */
export function storedOutcome(
  outcome: ParkedOutcome,
  upstream: UpstreamName,
  keep: (chars: number) => (() => void) | undefined
): { readonly held: ParkedOutcome; readonly letGo: () => void } {
  const gone = (why: string, cause?: unknown): ParkedOutcome => ({
    error: new GatewayError(
      'invalid_state',
      `The call at upstream ${upstream} ended while it waited for input: ${why}`,
      { cause, data: { upstream, outcome: 'unknown' } }
    )
  })
  const nothing = { letGo: (): void => {} }
  if ('error' in outcome && !(outcome.error instanceof RpcError))
    return { held: gone(reasonOf(outcome.error), outcome.error), ...nothing }
  // Kept as the text that is counted: its values may take up twenty times as much.
  const text = JSON.stringify('error' in outcome ? (outcome.error as RpcError).error : outcome.result)
  const letGo = text.length > keptChars ? undefined : keep(text.length)
  if (letGo === undefined)
    return { held: gone('its answer is too large to be kept. It may have taken effect.'), ...nothing }
  const held: ParkedOutcome =
    'error' in outcome
      ? {
          get error() {
            return new RpcError(JSON.parse(text) as RpcErrorObject)
          }
        }
      : {
          get result() {
            return JSON.parse(text) as Result
          }
        }
  return { held, letGo }
}

const reasonOf = (error: unknown): string =>
  error instanceof GatewayError && error.data['outcome'] === 'unknown'
    ? error.message
    : `${error instanceof GatewayError ? error.message : 'The gateway failed.'} Whether it took effect is unknown.`
