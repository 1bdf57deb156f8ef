// How long to wait before the next attempt.

export interface BackoffOptions {
  /** Before the second attempt; every further failure doubles it. */
  readonly firstMs: number
  /** Never longer than this. */
  readonly maxMs: number
  /**
   * A number from 0 up to 1. With it up to a quarter is added, so that replicas which failed together do not come back
   * together.
   */
  readonly random?: () => number
}

/** @param attempt failures in a row before this one: 0 gives `firstMs`. @returns whole milliseconds */
export function backoffMs(attempt: number, { firstMs, maxMs, random }: BackoffOptions): number {
  const jitter = random === undefined ? 1 : 1 + random() * 0.25
  return Math.round(Math.min(maxMs, firstMs * 2 ** attempt * jitter))
}
