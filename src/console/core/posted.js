// The events of one request that is posted: they end with it, and are not asked for again.

import { authorized, fetched, problemIn } from './api.js'
import { readEvents } from './events.js'

/**
 * @param {string} target
 * @param {unknown} body
 * @param {(event: string, data: any) => void} onEvent
 * @param {AbortSignal} signal
 * @throws {import('./api.js').ProblemError}
 */
export async function postEvents(target, body, onEvent, signal) {
  const response = await fetched(target, {
    method: 'POST',
    headers: { ...authorized(), 'Content-Type': 'application/json', Accept: 'text/event-stream' },
    body: JSON.stringify(body),
    signal
  })
  if (!response.ok || response.body === null) throw await problemIn(response)
  await readEvents(response.body, (event, data) => onEvent(event, JSON.parse(data)))
}
