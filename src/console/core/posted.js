// Reads the events of one request, which is never repeated. A broken stream ends like a complete one; the caller knows
// which event must be the last.

import { authorized, fetched, problemIn } from './api.js'
import { readEvents } from './events.js'

/**
 * @param {string} target
 * @param {unknown} body undefined: a GET request
 * @param {(event: string, data: any) => void} onEvent
 * @param {AbortSignal} signal
 * @throws {import('./api.js').ProblemError}
 */
export async function eventsOf(target, body, onEvent, signal) {
  const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
  const type = body === undefined ? {} : { 'Content-Type': 'application/json' }
  const headers = { ...authorized(), ...type, Accept: 'text/event-stream' }
  const response = await fetched(target, { ...sent, headers, signal })
  if (!response.ok || response.body === null) throw await problemIn(response)
  await readEvents(untilBroken(response.body, signal), (event, data) => onEvent(event, JSON.parse(data)))
}

/** @param {ReadableStream<Uint8Array>} body @param {AbortSignal} signal its reason is thrown unchanged */
async function* untilBroken(body, signal) {
  try {
    yield* /** @type {AsyncIterable<Uint8Array>} */ (/** @type {unknown} */ (body))
  } catch (error) {
    if (signal.aborted) throw error
  }
}
