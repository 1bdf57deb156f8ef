// Reads server-sent events with fetch, because EventSource cannot send the token of this page. A broken stream is
// opened again, after longer and longer waits, unless the gateway refuses it with a client error (4xx).

import { authorized, fetched, problemIn, ProblemError } from './api.js'

const firstWaitMs = 1_000
const longestWaitMs = 15_000

/**
 * @param {string} target
 * @param {{
 *   onEvent: (event: string, data: string) => void,
 *   onState: (state: 'open' | 'waiting' | 'ended', problem?: import('./api.js').Problem) => void,
 *   signal: AbortSignal
 * }} options
 */
export async function listen(target, { onEvent, onState, signal }) {
  let waitMs = firstWaitMs
  while (!signal.aborted) {
    try {
      const response = await fetched(target, { headers: { ...authorized(), Accept: 'text/event-stream' }, signal })
      if (!response.ok || response.body === null) throw await problemIn(response)
      onState('open')
      waitMs = firstWaitMs
      await readEvents(response.body, onEvent)
      if (!signal.aborted) onState('waiting')
    } catch (error) {
      if (signal.aborted) return
      const problem = error instanceof ProblemError ? error.problem : undefined
      const isOver = problem !== undefined && problem.status >= 400 && problem.status < 500 && problem.status !== 429
      onState(isOver ? 'ended' : 'waiting', problem)
      if (isOver) return
    }
    await elapsed(waitMs, signal)
    waitMs = Math.min(waitMs * 2, longestWaitMs)
  }
}

/** @param {AsyncIterable<Uint8Array>} body @param {(event: string, data: string) => void} onEvent */
export async function readEvents(body, onEvent) {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true })
    const blocks = text.split('\n\n')
    text = blocks.pop() ?? ''
    for (const block of blocks) {
      const lines = block.split('\n')
      const event = lines.find((line) => line.startsWith('event: '))?.slice(7)
      const data = lines.filter((line) => line.startsWith('data: ')).map((line) => line.slice(6))
      if (event !== undefined) onEvent(event, data.join('\n'))
    }
  }
}

/** @param {number} ms @param {AbortSignal} signal @returns {Promise<void>} */
const elapsed = (ms, signal) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true })
  })
