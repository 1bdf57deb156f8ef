// Lets so many through at a time; the others wait in the order in which they came. For work that nobody waits for, and that must not
// fall upon a server all at once.

export type Turnstile = <T>(run: () => Promise<T>) => Promise<T>

/** @returns what runs as soon as fewer than `max` others do, and settles as its run does */
export function createTurnstile (max: number): Turnstile {
  const waiting: Array<() => void> = []
  let through = 0

  return async (run) => {
    if (through < max) through++
    else await new Promise<void>((resolve) => { waiting.push(resolve) })
    try {
      return await run()
    } finally {
      // Handed over, so that nobody who comes now is let in before.
      const next = waiting.shift()
      if (next === undefined) through--
      else next()
    }
  }
}
