// Lanes: a caller's connections to one upstream where what a server asks names no call. On each of them runs one call at a time, for as long
// as it runs or is parked; calls that follow each other have the first one, so that what the server keeps between them stays.

import { GatewayError } from '../../protocol/errors.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'

export interface Lane {
  readonly number: number
  /** What the connection turned out to be; `true`: calls run side by side, and this one is in nobody's way. */
  opened (namesCalls: boolean): void
  /** Idempotent. */
  leave (): void
}

export interface Lanes {
  /**
   * The first free one.
   * @param caller whose lanes at this upstream are counted together
   * @param scope the set of connections; opaque
   * @throws GatewayError too_many
   */
  enter (definition: UpstreamDefinition, caller: string, scope: string): Promise<Lane>
}

/** Of one caller at one upstream, over all of its conversations. */
export const maxLanes = 8

interface Fleet {
  readonly busy: Set<number>
  /** Until it is known what its first connection is. */
  opening: PromiseWithResolvers<void> | undefined
}

export function createLanes (): Lanes {
  const fleets = new Map<string, Fleet>()
  const counts = new Map<string, number>()
  /** By hash of the definition: what its connections have turned out to be. */
  const sideBySide = new Map<string, boolean>()
  // One process has one pair of pipes for all that it says.
  const known = ({ type, hash }: UpstreamDefinition): boolean | undefined => type === 'stdio' ? false : sideBySide.get(hash)

  return {
    async enter (definition, caller, scope) {
      const { name, hash } = definition
      const key = `${hash}\n${scope}`
      let fleet = fleets.get(key)
      // Two that come at once need not open two connections to a server that can tell their calls apart.
      while (known(definition) === undefined && fleet?.opening !== undefined) {
        await fleet.opening.promise
        fleet = fleets.get(key)
      }
      if (known(definition) === true) return { number: 0, opened: (namesCalls) => { sideBySide.set(hash, namesCalls) }, leave () {} }
      const mine = `${hash}\n${caller}`
      const count = counts.get(mine) ?? 0
      if (count >= maxLanes) {
        throw new GatewayError('too_many', `More than ${maxLanes} calls of this caller run at upstream ${name}, or wait for input there. Retry when one of them has ended.`, { data: { upstream: name } })
      }
      if (fleet === undefined) fleets.set(key, fleet = { busy: new Set(), opening: undefined })
      const own = fleet
      const { busy } = own
      let number = 0
      while (busy.has(number)) number++
      busy.add(number)
      counts.set(mine, count + 1)
      const opening = own.opening ??= Promise.withResolvers<void>()
      let left = false
      const leave = (): void => {
        opening.resolve()
        if (left) return
        left = true
        busy.delete(number)
        if (busy.size === 0) fleets.delete(key)
        else if (own.opening === opening && known(definition) === undefined) own.opening = undefined
        const others = (counts.get(mine) ?? 1) - 1
        if (others === 0) counts.delete(mine)
        else counts.set(mine, others)
      }
      return {
        number,
        opened (namesCalls) {
          sideBySide.set(hash, namesCalls)
          opening.resolve()
          if (namesCalls) leave()
        },
        leave
      }
    }
  }
}
