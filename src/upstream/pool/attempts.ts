// Attempts to connect to upstreams, and what their outcomes prove about the upstream. Only one caller at a time tries
// an upstream that is away (one that failed for all callers and was not reached since).

import { GatewayError } from '../../protocol/messages.ts'
import { type Clock, settledWithin } from '../../time/clock.ts'
import type { MemoryAccount } from '../../limits/memory.ts'
import { UnreachableError } from '../rpc/errors.ts'
import { hashOfEverybody } from '../rpc/personal-hash.ts'
import { createConnectBackoff } from './connect-backoff.ts'
import { createLostConnections } from './lost-connections.ts'
import type { PooledConnection } from './pooled-connection.ts'
import { createStderrTails } from './stderr-tails.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import type { Upstream } from '../../protocol/seams.ts'
import type { ConnectionUse } from '../rpc/transport.ts'

export const isOf = ({ hash }: UpstreamDefinition, ofEverybody: string): boolean =>
  hashOfEverybody(hash) === ofEverybody

/** How long a call waits for the attempt of another call to reach an upstream that is away, in milliseconds. */
export const probeWaitMs = 1_000

export type Attempts = ReturnType<typeof createAttempts>

export function createAttempts(clock: Clock, random: () => number, log: Log, memory: MemoryAccount) {
  const backoff = createConnectBackoff(clock, random)
  const lost = createLostConnections(clock, log)
  /** The running attempt that began last, by hash of the definition. */
  const running = new Map<string, Promise<unknown>>()
  const tails = createStderrTails(clock, memory)

  function failed(definition: UpstreamDefinition, key: string, err: Error, use: ConnectionUse): void {
    if (err instanceof GatewayError && (err.code === 'cancelled' || err.code === 'too_many')) return
    // The connection for the listing declares no client's capabilities, so it fails because of the upstream.
    const forAll = use === 'listing' || err instanceof UnreachableError
    const failures = backoff.failed(definition, key, err, forAll)
    // No warning in the log: the caller gets the error, and the listing warns once for all callers.
    log.debug({ err, upstream: definition.name, tenant: definition.tenant, failures }, 'cannot connect to the upstream')
    if (!(err instanceof GatewayError)) return
    // A call that probed an upstream that is away gets the same message as calls that may not try it now.
    if (!forAll && !backoff.isAway(definition.hash)) return
    const { text, data } = backoff.outlook(definition.hash)
    err.message = `${err.message} ${text}`
    Object.assign(err.data, data)
  }

  return {
    backoff,
    /** Returns why no connection may be tried now; undefined: one may be. */
    refusal: (definition: UpstreamDefinition, key: string, use: ConnectionUse): GatewayError | undefined =>
      backoff.refusal(definition, key, use !== 'view'),
    /** Waits at most `probeWaitMs` for the running attempt of another caller. */
    async other({ hash }: UpstreamDefinition): Promise<void> {
      const attempt = running.get(hash)
      if (attempt !== undefined) await settledWithin(clock, probeWaitMs, attempt)
    },
    /** Runs an attempt, and notes how it ended. */
    async run(
      definition: UpstreamDefinition,
      key: string,
      use: ConnectionUse,
      connect: () => Promise<Upstream>
    ): Promise<Upstream> {
      const { hash } = definition
      backoff.attempted(definition)
      const attempt = connect()
      running.set(hash, attempt)
      try {
        const upstream = await attempt
        backoff.reached(definition)
        return upstream
      } catch (err) {
        failed(definition, key, err as Error, use)
        throw err
      } finally {
        if (running.get(hash) === attempt) running.delete(hash)
      }
    },
    /**
     * Takes a line of the upstream's standard error.
     * @returns whether the upstream is away, which was logged already
     */
    said(definition: UpstreamDefinition, line: string, leftOut: number): boolean {
      tails.add(definition, line, leftOut)
      return backoff.isAway(definition.hash)
    },
    /** The last lines of the upstream's standard error, of all its processes together. */
    stderrOf: tails.of,
    /**
     * The state of an upstream: its open connections, the calls on them, their revisions, the transport of the newest
     * (undefined: none is open), whether it is away and why. Connections with personal credentials count; stand-ins
     * (unconnected-upstream.ts) do not.
     * @param connections all connections of the pool
     */
    stateOf({ hash }: UpstreamDefinition, connections: Iterable<PooledConnection>) {
      const open = [...connections].filter(({ definition, upstream }) => isOf(definition, hash) && upstream?.transport)
      return {
        connections: open.length,
        calls: open.reduce((sum, { inFlight }) => sum + inFlight, 0),
        transport: open.findLast(({ upstream }) => upstream?.transport)?.upstream?.transport,
        revisions: [...new Set(open.flatMap(({ upstream }) => upstream?.revision ?? []))].sort(),
        lastLine: tails.lastOf(hash),
        ...backoff.stateOf(
          hash,
          open.some(({ definition, isBorrowed }) => !isBorrowed && !backoff.isAway(definition.hash))
        )
      }
    },
    /** A shorter state of many upstreams, in one pass over the connections. */
    statesOf(
      definitions: readonly UpstreamDefinition[],
      connections: Iterable<PooledConnection>,
      isSilent: (hash: string) => boolean
    ) {
      const counted = new Map<string, { connections: number; calls: number }>()
      const working = new Set<string>()
      const countOf = (hash: string) => counted.get(hash) ?? { connections: 0, calls: 0 }
      for (const { definition, upstream, inFlight, isBorrowed } of connections) {
        const own = hashOfEverybody(definition.hash)
        const { connections: before, calls } = countOf(own)
        if (upstream?.transport && !isBorrowed && !backoff.isAway(definition.hash)) working.add(own)
        if (upstream) counted.set(own, { connections: before + 1, calls: calls + inFlight })
      }
      const away = backoff.away()
      return definitions.map(({ tenant, name, hash }) => ({
        ...{ tenant, name, isSilent: isSilent(hash) },
        isAway: backoff.isAway(hash) || (away.has(hash) && !working.has(hash)),
        ...countOf(hash)
      }))
    },
    retain(hashes: Pick<ReadonlySet<string>, 'has'>): void {
      backoff.retain(hashes)
      tails.retain(hashes)
    },
    /** An open connection ended by itself, `ageMs` after it was opened. */
    ended(definition: UpstreamDefinition, key: string, ageMs: number, reason: Error): void {
      lost.note(definition, reason)
      backoff.ended(key, ageMs, reason)
    },
    /** A request on an open connection ended. Over HTTP a connection may stay open while its server is away. */
    requestEnded(
      { definition, key }: { readonly definition: UpstreamDefinition; readonly key: string },
      error: unknown
    ) {
      if (error === undefined) backoff.reached(definition)
      else if (error instanceof UnreachableError) failed(definition, key, error, 'calls')
    }
  }
}
