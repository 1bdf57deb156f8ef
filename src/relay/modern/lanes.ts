// Lanes: a caller's connections to one upstream where what a server asks names no call. On each of them runs one call at a time, for as long
// as it runs or is parked; calls that follow each other have the first one, so that what the server keeps between them stays. Clients that never
// come back with their input are nothing unusual: what they left behind makes room for newer calls. A lane whose call was given up is free when
// the server has answered it, or has gone: what it asks until then could not be told from a question of the next call.

import { GatewayError } from '../../protocol/errors.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { PaceClock } from '../pace.ts'

export interface Lane {
  readonly number: number
  /** What the connection turned out to be; `true`: calls run side by side, and this one is in nobody's way. */
  opened (namesCalls: boolean): void
  /**
   * The call waits for its client from now on, and gives up when it has to make room; `undefined`: it does not wait any more.
   * @param giveUp makes the call leave soon
   */
  waits (giveUp: (() => void) | undefined): void
  /** Idempotent. @param debt the server has not answered the call */
  leave (debt?: Debt): void
}

export interface Debt {
  /** Resolves when it has, or cannot any more. */
  readonly paid: Promise<void>
  /** Closes the connection, so that the next one on this lane is another. @returns false where that cannot be now */
  readonly close: () => boolean
}

export interface Lanes {
  /**
   * The first free one. Where all are taken, one that a server is in debt of, as soon as it is free; else the one whose call has waited
   * longest for its client, as soon as it has been left; else, for a while, the next one that a running call leaves.
   * @param caller whose lanes at this upstream are counted together
   * @param scope the set of connections; opaque
   * @throws GatewayError too_many: none of them waits, and too many calls wait for one already
   */
  enter (definition: UpstreamDefinition, caller: string, scope: string): Promise<Lane>
  /** A reload: forgets what connections to other definitions have turned out to be. */
  retain (hashes: ReadonlySet<string>): void
}

/** Of one caller at one upstream, over all of its conversations. */
export const maxLanes = 8
/** Calls that wait for a lane, each in turn. */
export const maxQueued = 64
/**
 * How long a server may take to answer what was given up; then it has obeyed, as servers do without an answer, and keeps what it remembers. And how
 * long where another call waits for the lane: then it is taken from it.
 */
const graceMs = 10_000
const hurriedMs = 1_000

interface Fleet {
  readonly busy: Set<number>
  /** Until it is known what its first connection is. */
  opening: PromiseWithResolvers<void> | undefined
}

/** What one caller has at one upstream. */
interface Share {
  lanes: number
  /** How those that wait for their clients give up, the one that has waited longest first. */
  readonly waiting: Map<symbol, () => void>
  /** Lanes whose servers still owe an answer: how they are hurried. */
  readonly indebted: Map<symbol, () => void>
  /** Calls to which the next lanes go that are left. */
  readonly next: Array<() => void>
  /** Lanes that make room for one of these each; the rest of them waits for what runs. */
  readonly leaving: Set<symbol>
}

export function createLanes (clock: Pick<PaceClock, 'timer'>): Lanes {
  const fleets = new Map<string, Fleet>()
  const shares = new Map<string, Share>()
  /** By hash of the definition: what its connections have turned out to be. */
  const sideBySide = new Map<string, boolean>()
  // One process has one pair of pipes for all that it says.
  const known = ({ type, hash }: UpstreamDefinition): boolean | undefined => type === 'stdio' ? false : sideBySide.get(hash)

  /** Resolves when somebody has left whose lane counts as that of the new call from then on. */
  function makeRoom (share: Share, name: string): Promise<void> {
    const { waiting, indebted, next, leaving } = share
    if (waiting.size + indebted.size === 0 && next.length - leaving.size >= maxQueued) {
      throw new GatewayError('too_many', `${maxLanes} calls of this caller run at upstream ${name}, and ${maxQueued} wait for them. Retry when some have ended.`, { data: { upstream: name } })
    }
    return new Promise((resolve) => {
      next.push(resolve)
      hurry(share)
    })
  }

  /** One that does nothing leaves for a call that has nothing else to wait for. */
  function hurry (share: Share): void {
    const { waiting, indebted } = share
    const from = indebted.size > 0 ? indebted : waiting
    const [longest] = from
    if (longest === undefined) return
    const [id, leaveSoon] = longest
    from.delete(id)
    share.leaving.add(id)
    leaveSoon()
  }

  /** Calls that have all come to wait for their clients would keep for ever whoever waits for them. */
  function unblock (share: Share): void {
    const { next, leaving, waiting, indebted, lanes } = share
    if (next.length > leaving.size && waiting.size + indebted.size + leaving.size >= lanes) hurry(share)
  }

  function giveBack (owner: string, share: Share, id?: symbol): void {
    if (id !== undefined) share.leaving.delete(id)
    const taker = share.next.shift()
    if (taker !== undefined) taker()
    else if (--share.lanes === 0) shares.delete(owner)
  }

  /** Nothing of what the last call left behind can come on the lane any more. */
  function whenPaid (share: Share, id: symbol, { paid, close }: Debt, free: () => void): void {
    const within = (ms: number, run: () => void): ReturnType<PaceClock['timer']> => {
      const made = clock.timer(ms, run)
      made.unref()
      return made
    }
    const leaveSoon = (): void => {
      timer.close()
      timer = within(hurriedMs, () => {
        if (close()) end()
        else timer = within(graceMs, end)
      })
    }
    let over = false
    let timer = within(graceMs, () => end())
    const end = (): void => {
      if (over) return
      over = true
      timer.close()
      share.indebted.delete(id)
      free()
    }
    if (share.next.length > share.leaving.size) {
      share.leaving.add(id)
      leaveSoon()
    } else share.indebted.set(id, leaveSoon)
    void paid.then(end)
  }

  return {
    async enter (definition, caller, scope) {
      const { name, hash } = definition
      const key = `${hash}\n${scope}`
      const inNobodysWay: Lane = { number: 0, opened: (namesCalls) => { sideBySide.set(hash, namesCalls) }, waits () {}, leave () {} }
      let fleet = fleets.get(key)
      // Two that come at once need not open two connections to a server that can tell their calls apart.
      while (known(definition) === undefined && fleet?.opening !== undefined) {
        await fleet.opening.promise
        fleet = fleets.get(key)
      }
      if (known(definition) === true) return inNobodysWay
      const owner = `${hash}\n${caller}`
      const share = shares.get(owner) ?? { lanes: 0, waiting: new Map(), indebted: new Map(), next: [], leaving: new Set() }
      shares.set(owner, share)
      if (share.lanes < maxLanes) share.lanes++
      else {
        await makeRoom(share, name)
        // Meanwhile the server may have been replaced.
        if (known(definition) === true) {
          giveBack(owner, share)
          return inNobodysWay
        }
        fleet = fleets.get(key)
      }
      if (fleet === undefined) fleets.set(key, fleet = { busy: new Set(), opening: undefined })
      const own = fleet
      const { busy } = own
      let number = 0
      while (busy.has(number)) number++
      busy.add(number)
      const id = Symbol('lane')
      const opening = own.opening ??= Promise.withResolvers<void>()
      let left = false
      const free = (): void => {
        busy.delete(number)
        if (busy.size === 0) fleets.delete(key)
        else if (own.opening === opening && known(definition) === undefined) own.opening = undefined
        giveBack(owner, share, id)
      }
      const leave = (debt?: Debt): void => {
        opening.resolve()
        if (left) return
        left = true
        share.waiting.delete(id)
        if (debt === undefined) free()
        else whenPaid(share, id, debt, free)
      }
      return {
        number,
        opened (namesCalls) {
          sideBySide.set(hash, namesCalls)
          opening.resolve()
          // Should it be forgotten, nobody waits for what is over.
          if (own.opening === opening) own.opening = undefined
          if (namesCalls) leave()
        },
        waits (giveUp) {
          share.waiting.delete(id)
          if (giveUp === undefined || left) return
          share.waiting.set(id, giveUp)
          unblock(share)
        },
        leave
      }
    },
    retain (hashes) {
      for (const hash of sideBySide.keys()) if (!hashes.has(hash)) sideBySide.delete(hash)
    }
  }
}
