// Long work in short steps: between them the event loop turns, so that nobody waits for the work of another.

import { createFairQueue, type WorkOwner } from './fair-queue.ts'
import { type KindShares, turnShares } from './turn-shares.ts'

/** Milliseconds of such work in one turn of the event loop, of all that is under way in the process. */
const turnMs = 5
const noShares: KindShares = { has: () => true, begin() {} }

export type Steps<T = void> = Generator<undefined, T, undefined>

/**
 * Does as much of the work as fits into this turn of the event loop, and the rest in later ones; work that waits takes
 * turns.
 * @returns the result where it is there already, else a promise of it
 * @throws whatever the steps throw
 */
export type RunSteps = <T>(steps: Steps<T>, owner: WorkOwner) => T | Promise<T>

/** @param shares of tenants, where more than one has work. Default: each has all of a turn */
export function createTurns(now: () => number = () => performance.now(), shares = noShares): RunSteps {
  const waiting = createFairQueue<Work>(takeWork)
  let spentMs = 0
  let scheduled = false
  const hasShare = (tenant: string): boolean => spentMs < turnMs && shares.has(tenant)

  function beginTurn(): void {
    scheduled = false
    spentMs = 0
    for (let work = waiting.next(hasShare); work !== undefined; work = waiting.next(hasShare)) work.goOn()
    if (!waiting.isEmpty) schedule()
  }

  function schedule(): void {
    if (scheduled) return
    scheduled = true
    setImmediate(beginTurn)
  }

  /** @returns undefined where the turn is over before the work is */
  function advance<T>(steps: Steps<T>, { tenant }: WorkOwner): { readonly value: T } | undefined {
    schedule()
    const before = spentMs
    const began = now()
    shares.begin(tenant)
    try {
      while (hasShare(tenant)) {
        const { done, value } = steps.next()
        if (done === true) return { value }
        spentMs = before + now() - began
      }
      return undefined
    } finally {
      // Also of the last step. What it started itself is counted in it.
      spentMs = before + now() - began
    }
  }

  return (steps, owner) => {
    const beforeFirst = spentMs
    const first = advance(steps, owner)
    if (first !== undefined) return first.value
    return new Promise((resolve, reject) => {
      const work: Work = {
        hadMs: spentMs - beforeFirst,
        goOn() {
          const before = spentMs
          try {
            const outcome = advance(steps, owner)
            if (outcome !== undefined) return resolve(outcome.value)
            work.hadMs += spentMs - before
            waiting.add(work, owner)
          } catch (error) {
            reject(error)
          }
        }
      }
      waiting.add(work, owner)
    })
  }
}

/** Work that is not done yet. */
interface Work {
  /** Milliseconds that it had so far. */
  hadMs: number
  goOn(): void
}

/**
 * Takes in alternation the work that has run least, so that short work ends, and the oldest, so that none waits
 * forever.
 */
function takeWork(works: Work[], taken: number): Work | undefined {
  if (taken % 2 === 1) return works.shift()
  let least = 0
  works.forEach(({ hadMs }, at) => {
    if (hadMs < (works[least]?.hadMs ?? 0)) least = at
  })
  return works.splice(least, 1)[0]
}

/** Runs steps in the turns of the process, because there is one event loop. */
export const runSteps = createTurns(undefined, turnShares.long)

/** Does the steps until the signal is aborted. @returns their result; undefined where they were given up */
export function* untilAborted<T>(steps: Steps<T>, signal: AbortSignal): Steps<T | undefined> {
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done === true) return step.value
    yield
    if (signal.aborted) return undefined
  }
}

/** Resolves in the next turn, after work that the system does for a step, such as to take what was written. */
export const nextTurn = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve)
  })

/** Bytes: read in microseconds, as most messages are. */
export const smallSize = 4_096

export interface StepSource {
  pause(): unknown
  resume(): unknown
  /** Gives up this source alone: its work failed by a fault of the gateway. */
  destroy(fault: Error): unknown
}

/**
 * The work that one source makes, done in order. A class, because there is one for each request: for a generator
 * function that is made anew V8 makes a hidden class, which is old from the first and holds all that the function
 * refers to.
 */
export class StepQueue {
  private readonly source: StepSource
  private readonly owner: WorkOwner
  private readonly queue: Steps[] = []
  private running = false
  private closed = false
  private onIdle: Array<() => void> = []

  /** @param source is paused while its work is behind */
  constructor(source: StepSource, owner: WorkOwner) {
    this.source = source
    this.owner = owner
  }

  /**
   * @param size bytes that they read at most; few do not wait for a turn
   */
  push(steps: Steps, size: number): void {
    if (this.closed) return
    if (!this.running && size <= smallSize) {
      this.running = true
      this.queue.push(steps)
      try {
        for (const work = this.all(); work.next().done !== true;);
      } catch (error) {
        return this.failed(error)
      }
      return this.idle()
    }
    this.queue.push(steps)
    if (this.running) return
    this.running = true
    let outcome: void | Promise<void>
    try {
      outcome = runSteps(this.all(), this.owner)
    } catch (error) {
      return this.failed(error)
    }
    if (outcome === undefined) return this.idle()
    this.source.pause()
    this.workOff(outcome).catch((error: unknown) => this.failed(error))
  }

  /** Calls it when all of the work is done, at once if it is; in the order in which they came. */
  whenIdle(run: () => void): void {
    if (this.running) this.onIdle.push(run)
    else run()
  }

  /** Drops the work that is left; nothing is called any more. */
  close(): void {
    this.closed = true
    this.queue.length = 0
  }

  private *all(): Steps {
    for (let steps = this.queue.shift(); steps !== undefined; steps = this.queue.shift()) {
      // Asked before each step: what a step takes up for work that was given up, nobody would give back.
      for (;;) {
        if (this.closed) return
        if (steps.next().done === true) break
        yield
      }
    }
  }

  private idle(): void {
    this.running = false
    const runs = this.onIdle
    this.onIdle = []
    for (const run of runs) if (!this.closed) run()
  }

  private async workOff(begun: Promise<void>): Promise<void> {
    await begun
    // The work of others, done in the same turn before we hear of the end of ours, may have made more.
    while (this.queue.length > 0) await runSteps(this.all(), this.owner)
    this.idle()
    if (!this.closed) this.source.resume()
  }

  /** Nobody waits for the work, and a rejection that nobody takes would end the process. */
  private failed(error: unknown): void {
    this.queue.length = 0
    if (!this.closed) this.source.destroy(error as Error)
    this.idle()
  }
}

/** @returns what runs it at the end of this turn of the event loop, however often it is called until then */
export function onceATurn(run: () => void): () => void {
  let isDue = false
  return () => {
    if (!isDue)
      queueMicrotask(() => {
        isDue = false
        run()
      })
    isDue = true
  }
}
