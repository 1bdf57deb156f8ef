// One side of a question that is under way between two processes: it says that it is there, and finds out that the other side is not.

export interface Leg {
  /** The process at the other side. */
  readonly to: string
  /** Is this message none that came before? Whoever can write into the store may play one again. */
  isNew (n: number): boolean
  /** The other side was there a moment ago. */
  heard (): void
  close (): void
}

export interface LegOptions {
  readonly to: string
  readonly timer: (ms: number, run: () => void) => { close (): unknown, unref (): unknown }
  /** How long the first word may take, and every further one. */
  readonly firstMs: number
  readonly silenceMs: number
  /** Says that this side is there. */
  readonly beat: () => void
  readonly silent: () => void
}

export function createLeg ({ to, timer, firstMs, silenceMs, beat, silent }: LegOptions): Leg {
  const after = (ms: number, run: () => void): { close (): unknown } => {
    const made = timer(ms, run)
    made.unref()
    return made
  }
  const next = (): { close (): unknown } => after(silenceMs / 3, () => {
    beat()
    beating = next()
  })
  let last = 0
  let limit = after(firstMs, silent)
  let beating = next()
  return {
    to,
    isNew (n) {
      if (n <= last) return false
      last = n
      return true
    },
    heard () {
      limit.close()
      limit = after(silenceMs, silent)
    },
    close () {
      limit.close()
      beating.close()
    }
  }
}
