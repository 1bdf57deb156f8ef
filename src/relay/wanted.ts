// Waiting for what goes on for others as well: whoever does not want it any more stops waiting.

import { GatewayError } from '../protocol/errors.ts'

/** Resolves when all of it is done, which never rejects, at the latest after `ms`. */
export async function withinMs (work: ReadonlyArray<Promise<unknown>>, ms: number): Promise<void> {
  if (work.length === 0) return
  let timer: NodeJS.Timeout | undefined
  const deadline = new Promise<void>((resolve) => { timer = setTimeout(resolve, ms) })
  await Promise.race([Promise.all(work), deadline])
  clearTimeout(timer)
}

/**
 * Connecting may take half a minute and goes on for whoever else waits for it; a call that is over does not.
 * @throws GatewayError cancelled
 */
export function whileWanted<T> (work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => reject(new GatewayError('cancelled', 'The request was cancelled before it was sent.'))
    if (signal.aborted) giveUp()
    signal.addEventListener('abort', giveUp, { once: true })
    work.then((value) => {
      signal.removeEventListener('abort', giveUp)
      resolve(value)
    }, (error: unknown) => {
      signal.removeEventListener('abort', giveUp)
      reject(error)
    })
  })
}
