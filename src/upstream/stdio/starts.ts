// Limits how many child processes start at once. A starting program keeps a processor busy, and the gateway is blocked
// until a new process executes its program: if all processors were busy, all callers would wait for that.

import { availableParallelism } from 'node:os'
import { GatewayError } from '../../protocol/messages.ts'
import { abortable, type Clock, deadline } from '../../time/clock.ts'
import { createFairQueue } from '../../time/fair-queue.ts'
import type { StdioDefinition } from '../../config/snapshot.ts'

/** One process may start at once for each of so many processors. */
const processorsPerStart = 2
/** After this time a start no longer counts: the server may be loading data, or may never answer. */
const startMs = 500
/** How long a start waits for its turn. */
const maxWaitMs = 15_000

interface Waiting {
  begin(): unknown
}

/** @param workers the processes that share the processors */
export function createStarts(
  clock: Clock,
  workers = 1,
  atOnce = Math.max(1, Math.floor(availableParallelism() / processorsPerStart / workers))
) {
  const waiting = createFairQueue<Waiting>()
  let starting = 0

  function beginNext(): void {
    // A start that was cancelled does not raise `starting`, so the next one is taken.
    for (let next = waiting.next(); next !== undefined; next = starting < atOnce ? waiting.next() : undefined)
      next.begin()
  }

  /** @returns a function that ends the start; idempotent */
  function begin(): () => void {
    starting++
    const end = (): void => {
      if (over) return
      over = true
      timer.close()
      starting--
      beginNext()
    }
    let over = false
    const timer = clock.timer(startMs, end)
    timer.unref()
    return end
  }

  return {
    /**
     * Waits until a start may begin: tenants take turns, and so do the callers of each tenant.
     * @returns a function to call when the server has answered, or will not
     * @throws GatewayError too_many after `maxWaitMs`, cancelled if the signal is aborted
     */
    async waitToStart(
      { name, tenant }: Pick<StdioDefinition, 'name' | 'tenant'>,
      caller: string,
      signal?: AbortSignal
    ): Promise<() => void> {
      if (starting < atOnce) return begin()
      const limit = deadline(clock, maxWaitMs, signal)
      const begun = new Promise<() => void>((resolve) => {
        waiting.add({ begin: () => !limit.signal.aborted && resolve(begin()) }, { tenant, caller })
      })
      try {
        return await abortable(begun, limit.signal, () => (limit.passed() ? lateError(name) : givenUp(name)))
      } catch (error) {
        // Its turn may have come at the same moment: then that start must be ended.
        void begun.then((end) => end())
        throw error
      } finally {
        limit.close()
      }
    }
  }
}

const givenUp = (name: string): GatewayError =>
  new GatewayError('cancelled', `Connecting to upstream ${name} was given up.`)

function lateError(name: string): GatewayError {
  const text =
    `Upstream ${name} cannot start: so many processes are starting that its turn did not come within ` +
    `${maxWaitMs / 1000} s. Retry in a few seconds, and keep sessions open instead of opening new ones.`
  return new GatewayError('too_many', text, { data: { upstream: name, limit: 'processStarts' } })
}
