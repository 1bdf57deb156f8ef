// Processes of stdio upstreams that are started before anybody needs one (`warm`): who comes next has not to wait for
// the start. Nothing is said to them before, so that they know nothing of anybody.

import type { StdioDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import { type Clock, pause } from '../../time/clock.ts'
import type { GatewayError } from '../../protocol/messages.ts'
import type { Child, ChildEvents } from './child-process.ts'

/** Whoever has just got a process needs the processors first. In milliseconds. */
const fillAfterMs = 1_000
/** What one may write before it is asked anything, in bytes. */
const maxUnreadBytes = 65_536

interface WarmChild {
  readonly child: Child
  handTo(events: ChildEvents): void
}

export interface WarmOptions {
  /** @throws GatewayError */
  start(definition: StdioDefinition, events: ChildEvents): Child
  /** Waits for its turn. @returns false where none may start now that nobody needs */
  mayStart(definition: StdioDefinition): Promise<boolean>
  readonly clock: Clock
  readonly log: Log
}

export function createWarmChildren({ start, mayStart, clock, log }: WarmOptions) {
  /** By hash of the definition, the longest waiting first. */
  const waiting = new Map<string, Set<WarmChild>>()
  /** By hash of the definition; one that is not there any more ends. */
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
        log.debug({ upstream: name, tenant, reason: reason.message }, 'a process that nobody had taken has ended')
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
      // One that ends by itself is not started again before somebody has needed one.
      for (let added = 0; added < count && countOf(definition) < count; added++) {
        if (isOver() || !(await mayStart(definition)) || isOver()) return
        add(definition)
      }
    } catch (err) {
      log.debug({ err, upstream: definition.name, tenant: definition.tenant }, 'no process is started ahead')
    } finally {
      if (filling.get(hash) === own) filling.delete(hash)
    }
  }

  /** The longest waiting; not one that is being killed, which would end under whoever takes it. */
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
    /** The one that would be taken. */
    next: (definition: StdioDefinition): Child | undefined => firstOf(definition)?.child,
    /** @returns undefined where none waits; else the events of the process are these from now on */
    take(definition: StdioDefinition, events: ChildEvents): Child | undefined {
      const one = firstOf(definition)
      one?.handTo(events)
      return one?.child
    },
    /** A moment later as many wait as the configuration wants. Secrets of one person are in no process that waits. */
    fillSoon(definition: StdioDefinition): void {
      const { warm = 0, isolation, auth } = definition
      if (warm > 0 && isolation !== 'shared' && auth === undefined) void fill(definition, warm)
    },
    /** Somebody else needs the room. */
    giveUp: (): void => end(() => true),
    /** Of others there are none from now on, those included that are about to be started. */
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
