// The capabilities that `server/discover` has advertised for endpoints at this process: a client may use them for as
// long as it may cache that answer, although no upstream of the endpoint turns out to offer them.

import type { ServerCapabilities } from '../../protocol/messages.ts'
import type { Clock } from '../../time/clock.ts'
import type { EndpointContext } from '../call/call.ts'
import { maxTtlMs } from './freshness.ts'

export type AdvertisedCapabilities = ReturnType<typeof createAdvertisedCapabilities>

export function createAdvertisedCapabilities(clock: Pick<Clock, 'now'>) {
  /** The end of each advertised capability, epoch ms, by endpoint and name. */
  const promised = new Map<string, Map<string, number>>()
  const nameOf = ({ endpoint: { tenant, name } }: EndpointContext): string => `${tenant}/${name}`
  return {
    /**
     * @param isGuess an upstream is unknown: the promise is not to be kept, but clients that have just connected go by
     * it, and the official one asks only once
     */
    keep(context: EndpointContext, capabilities: ServerCapabilities, ttlMs: number, isGuess: boolean): void {
      const name = nameOf(context)
      const untils = promised.get(name) ?? new Map<string, number>()
      promised.set(name, untils)
      const until = clock.now() + (isGuess ? maxTtlMs : ttlMs)
      for (const capability of Object.keys(capabilities))
        untils.set(capability, Math.max(until, untils.get(capability) ?? 0))
    },
    /** @param path of the capability that a method needs */
    holds(context: EndpointContext, path: readonly string[]): boolean {
      const [capability = '', ...deeper] = path
      return deeper.length === 0 && clock.now() < (promised.get(nameOf(context))?.get(capability) ?? 0)
    }
  }
}
