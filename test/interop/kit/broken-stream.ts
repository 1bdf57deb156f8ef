// Streams of responses that break under a client of an SDK, which is to come back for the rest by itself.

import assert from 'node:assert/strict'

/** A fetch whose event streams can be broken. */
export function breakableFetch() {
  const open = new Set<AbortController>()
  /** The ids of events from which the client asked to go on. */
  const resumedFrom: string[] = []
  return {
    resumedFrom,
    fetch: async (url: string | URL, init: RequestInit = {}): Promise<Response> => {
      const lastEventId = new Headers(init.headers).get('last-event-id')
      if (lastEventId !== null) resumedFrom.push(lastEventId)
      const broken = new AbortController()
      const signals = [broken.signal, ...(init.signal ? [init.signal] : [])]
      const response = await fetch(url, { ...init, signal: AbortSignal.any(signals) })
      if (init.method === 'POST' && response.headers.get('content-type')?.startsWith('text/event-stream') === true)
        open.add(broken)
      return response
    },
    /** Breaks the connections of the responses that are streams. */
    cut(): void {
      assert.ok(open.size > 0, 'there is a stream to break')
      for (const each of open) each.abort()
      open.clear()
    }
  }
}

/** Of a call whose server takes a while for them. */
const steps = 60

/**
 * Breaks the stream of a call after its first progress: the rest has to come all the same, once and in order.
 * @param call calls the tool `progress`, and resolves with the text of the result
 */
export async function resumes(
  { cut, resumedFrom }: ReturnType<typeof breakableFetch>,
  call: (steps: number, onProgress: (progress: number) => void) => Promise<string>
): Promise<void> {
  const heard: number[] = []
  const text = await call(steps, (progress) => {
    if (heard.push(progress) === 1) cut()
  })
  assert.equal(text, 'done')
  assert.deepEqual(
    heard,
    Array.from({ length: steps }, (_, n) => n + 1)
  )
  assert.ok(resumedFrom.length > 0, 'it has asked for the rest by the id of the last event')
}
