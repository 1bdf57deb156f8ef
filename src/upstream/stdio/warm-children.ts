// Starts processes of a stdio upstream before a caller needs one (`warm`), so that the next caller does not wait for
// the start. A waiting process gets no input, so it knows nothing about any caller.

import type { StdioDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import { type Clock, pause } from '../../time/clock.ts'
import type { GatewayError } from '../../protocol/messages.ts'
import type { Child, ChildEvents } from './child-process.ts'

/** How long the next warm process waits to start, so that the process just taken gets the processors first. */
const fillAfterMs = 1_000
/** The most output of a waiting process; a process that writes more is killed. */
const maxUnreadBytes = 65_536

interface WarmChild {
  readonly child: Child
  handTo(events: ChildEvents): void
}

export interface WarmOptions {
  /** @throws GatewayError */
  start(definition: StdioDefinition, events: ChildEvents): Child
  /** Waits for its turn. @returns false if too many processes run to start one that nobody needs yet */
  mayStart(definition: StdioDefinition): Promise<boolean>
  readonly clock: Clock
  readonly log: Log
}

export function createWarmChildren({ start, mayStart, clock, log }: WarmOptions) {
  /** Waiting processes by the hash of their definition, the oldest first. */
  const waiting = new Map<string, Set<WarmChild>>()
  /** The running `fill` of each definition, by hash; a `fill` whose entry was removed or replaced stops. */
  const filling = new Map<string, object>()
  let isClosed = false

  const countOf = ({ hash }: StdioDefinition): number => waiting.get(hash)?.size ?? 0

  function forget({ hash }: StdioDefinition, one: WarmChild): void {
    const all = waiting.get(hash)
    if (all?.delete(one) === true && all.size === 0) waiting.delete(hash)
  }

  function add(definition: StdioDefinition): void {
    const unread: Array<readonly ['stdout' | 'stderr', Buffer]> = []
    let bytes = 0
    let taken: ChildEvents | undefined
    const said = (stream: 'stdout' | 'stderr', chunk: Buffer): void => {
      if (taken !== undefined) return taken[stream](chunk)
      bytes += chunk.length
      if (bytes > maxUnreadBytes) child.kill('it wrote too much before it was asked anything')
      else unread.push([stream, Buffer.from(chunk)])
    }
    const child = start(definition, {
      stdout: (chunk) => said('stdout', chunk),
      stderr: (chunk) => said('stderr', chunk),
      ended(reason: GatewayError) {
        forget(definition, one)
        if (taken !== undefined) return taken.ended(reason)
        const { name, tenant } = definition
        log.debug({ upstream: name, tenant, reason: reason.message }, 'a warm process ended before it was used')
      }
    })
    const one: WarmChild = {
      child,
      handTo(events) {
        forget(definition, one)
        taken = events
        for (const [stream, chunk] of unread.splice(0)) events[stream](chunk)
      }
    }
    waiting.set(definition.hash, (waiting.get(definition.hash) ?? new Set()).add(one))
  }

  async function fill(definition: StdioDefinition, count: number): Promise<void> {
    const { hash } = definition
    if (filling.has(hash)) return
    const own = {}
    const isOver = (): boolean => isClosed || filling.get(hash) !== own
    filling.set(hash, own)
    try {
      await pause(clock, fillAfterMs)
      // At most `count` starts: a process that ends by itself is not replaced before the next one is taken.
      for (let added = 0; added < count && countOf(definition) < count; added++) {
        if (isOver() || !(await mayStart(definition)) || isOver()) return
        add(definition)
      }
    } catch (err) {
      log.debug({ err, upstream: definition.name, tenant: definition.tenant }, 'no warm process is started')
    } finally {
      if (filling.get(hash) === own) filling.delete(hash)
    }
  }

  /** @returns the oldest waiting process that was not killed */
  const firstOf = ({ hash }: StdioDefinition): WarmChild | undefined =>
    waiting
      .get(hash)
      ?.values()
      .find(({ child }) => !child.isEnding())

  function end(isOver: (hash: string) => boolean): void {
    for (const [hash, all] of [...waiting]) {
      if (!isOver(hash)) continue
      waiting.delete(hash)
      for (const { child } of all) child.kill()
    }
  }

  return {
    /** The process that `take` would return. */
    next: (definition: StdioDefinition): Child | undefined => firstOf(definition)?.child,
    /** @returns a process that reports to `events` from now on; undefined if none waits */
    take(definition: StdioDefinition, events: ChildEvents): Child | undefined {
      const one = firstOf(definition)
      one?.handTo(events)
      return one?.child
    },
    /**
     * Starts as many processes as `warm` says, a moment later. Upstreams with `auth` get none: their processes need the
     * secrets of the caller.
     */
    fillSoon(definition: StdioDefinition): void {
      const { warm = 0, isolation, auth } = definition
      if (warm > 0 && isolation !== 'shared' && auth === undefined) void fill(definition, warm)
    },
    /** Ends all waiting processes, because another start needs their place. */
    giveUp: (): void => end(() => true),
    /** Ends the waiting processes of all other definitions, and stops those that are about to start. */
    retain(hashes: Pick<ReadonlySet<string>, 'has'>): void {
      for (const hash of filling.keys()) if (!hashes.has(hash)) filling.delete(hash)
      end((hash) => !hashes.has(hash))
    },
    close(): void {
      isClosed = true
      end(() => true)
    }
  }
}
