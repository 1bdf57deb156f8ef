// The part of a listen stream that a legacy upstream serves: `resources/subscribe` for each resource. What the server
// has not agreed to in time is not promised, and is ended again.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { hasCapability } from '../../protocol/methods.ts'
import { quotaKeyOf, type Runtime } from '../call/call.ts'
import type { CallerConnections, LeasedConnection } from '../connections/caller-connections.ts'
import { runSteps, type Steps } from '../../time/turns.ts'
import { boundedMeta, type ListenTarget, type UpstreamPart } from './listen-upstream.ts'
import type { ResourceSubscriptions } from './resource-subscriptions.ts'
import { coversUri, maxBackgroundRequests, personOf, type Subscriber } from './subscription-index.ts'

/**
 * @param uris as the upstream knows them
 * @param waitMs what the upstream has not agreed to by then is not granted
 */
export function openLegacyUpstreamPart(
  definition: UpstreamDefinition,
  uris: readonly string[],
  target: ListenTarget,
  waitMs: number,
  connections: Pick<CallerConnections, 'watch'>,
  subscriptions: Pick<ResourceSubscriptions, 'join' | 'subscribe' | 'unsubscribe' | 'drop'>,
  { clock, log }: Pick<Runtime, 'clock' | 'log'>
): UpstreamPart {
  const granted: string[] = []
  const settled = Promise.withResolvers<void>()
  /** Aborted when nothing more is granted. */
  const deadline = new AbortController()
  const timer = clock.timer(waitMs, settle)
  let lease: LeasedConnection | undefined
  let over = false

  const owner = { tenant: target.call.tenant.id, caller: quotaKeyOf(target.call.principal) }
  const subscriber: Subscriber = {
    person: personOf(owner),
    tenant: owner.tenant,
    get over() {
      return over
    },
    get listening() {
      return !over
    },
    updated(_definition, { uri, _meta }) {
      if (typeof uri !== 'string') return
      const below = !granted.includes(uri)
      if (!below || granted.some((each) => coversUri(each, uri))) target.updated(uri, below, boundedMeta(_meta))
    },
    async connect() {
      const { upstream, release } = await connections.watch(definition, target.call)
      // The stream still holds the lease that it began with.
      release()
      return upstream
    },
    // A stream whose upstream is replaced is ended.
    successorOf: () => undefined
  }

  function settle(): void {
    timer.close()
    deadline.abort()
    settled.resolve()
  }

  async function subscribe(connection: LeasedConnection, uri: string): Promise<void> {
    const request = { subscriber, connection: { ...connection, definition, exclusive: false }, uri }
    // A step: many streams may want what the server was asked for already, for which nothing is waited.
    function* join(): Steps<boolean> {
      if (deadline.signal.aborted || !subscriptions.join(request, uri)) return false
      granted.push(uri)
      yield
      return true
    }
    try {
      if (await runSteps(join(), owner)) return
      if (deadline.signal.aborted) return
      await subscriptions.subscribe({ ...request, signal: deadline.signal }, uri)
      if (deadline.signal.aborted) await subscriptions.unsubscribe(request)
      else granted.push(uri)
    } catch (err) {
      log.debug(
        { err, upstream: definition.name, tenant: definition.tenant },
        'an upstream did not agree to a subscription in time; its client is not promised any'
      )
    }
  }

  async function open(): Promise<void> {
    try {
      lease = await connections.watch(definition, target.call)
      if (over) return lease.release()
      const { era, capabilities } = lease.upstream
      // A server that has become modern has listen streams, which the client's next stream will use.
      if (era !== 'legacy' || !hasCapability(capabilities, ['resources', 'subscribe'])) return
      const connection = lease
      const left = uris.values()
      // As many at a time as are sent: streams take turns, and no more waits are given up when the stream ends.
      async function subscribeToRest(): Promise<void> {
        for (const uri of left) {
          if (deadline.signal.aborted) return
          await subscribe(connection, uri)
        }
      }
      await Promise.all(Array.from({ length: maxBackgroundRequests }, subscribeToRest))
    } catch (err) {
      log.info({ err, upstream: definition.name, tenant: definition.tenant }, 'an upstream could not be listened to')
    } finally {
      settle()
    }
  }

  void open()
  return {
    definition,
    settled: settled.promise,
    granted: { uris: granted, taskIds: [] },
    end() {
      over = true
      settle()
      subscriptions.drop(subscriber)
      lease?.release()
    }
  }
}
