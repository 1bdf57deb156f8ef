// The events of one request: they end with it, and are not asked for again. A stream that breaks ends like a whole one:
// whoever asked knows which event is the last.

import { authorized, fetched, problemIn } from './api.js'
import { readEvents } from './events.js'

/**
 * @param {string} target
 * @param {unknown} body undefined: nothing is posted
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

/** @param {ReadableStream<Uint8Array>} body @param {AbortSignal} signal whose reason is thrown as it is */
async function* untilBroken(body, signal) {
  try {
    yield* /** @type {AsyncIterable<Uint8Array>} */ (/** @type {unknown} */ (body))
  } catch (error) {
    if (signal.aborted) throw error
  }
}
