// When child processes may start: few at once. A program that starts keeps a processor busy, and on processors that are
// all busy the gateway, which the system holds until the new process runs its program, would wait with all its callers.

import { availableParallelism } from 'node:os'
import { GatewayError } from '../../protocol/messages.ts'
import { abortable, type Clock, deadline } from '../../time/clock.ts'
import { createFairQueue } from '../../time/fair-queue.ts'
import type { StdioDefinition } from '../../config/snapshot.ts'

/** Processors for each process that starts. */
const processorsPerStart = 2
/** After this a start is no longer waited for by the next ones: a server may load something, or never answer. */
const startMs = 500
/** How long a start waits for its turn. */
const maxWaitMs = 15_000

interface Waiting {
  begin(): unknown
}

export function createStarts(
  clock: Clock,
  atOnce = Math.max(1, Math.floor(availableParallelism() / processorsPerStart))
) {
  const waiting = createFairQueue<Waiting>()
  let starting = 0

  function beginNext(): void {
    // Those that were given up begin nothing.
    for (let next = waiting.next(); next !== undefined; next = starting < atOnce ? waiting.next() : undefined)
      next.begin()
  }

  /** @returns ends it, once */
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
     * Waits until a start may begin: tenants take turns, and so do the callers of each.
     * @returns to be called when the server has answered, or will not
     * @throws GatewayError too_many where its turn does not come soon, cancelled where the signal is aborted
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
        // Its turn may have come at the same moment.
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
