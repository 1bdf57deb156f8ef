// Few requests are begun in one turn of the event loop, in which thousands of connections can be ready, and few of one
// tenant where others have work, too. Where more are ready, tenants and callers take turns, and what waits is counted
// as theirs. What has waited too long is refused: who asks again later is answered sooner than from the end of a queue
// that only grows.

import type { Snapshot } from '../config/snapshot.ts'
import { networkOf } from '../limits/client-network.ts'
import type { MemoryAccount } from '../limits/memory.ts'
import type { Log } from '../observe/log.ts'
import { GatewayError, tenantId, type TenantId } from '../protocol/messages.ts'
import type { Clock } from '../time/clock.ts'
import { createFairQueue, type WorkOwner } from '../time/fair-queue.ts'
import { createLoopDelay, type LoopDelay } from '../time/loop-delay.ts'
import { type TurnShares, turnShares } from '../time/turn-shares.ts'
import { clientAddressOf } from './admission.ts'
import type { Connections } from './sockets.ts'
import { readTarget } from './headers.ts'
import type { ClientRequest } from './reply.ts'

/** Requests, each of which takes a tenth of a millisecond or several, with what follows before the loop turns. */
const maxBegunPerTurn = 20
/** What a refusal costs of one that is begun, at most. */
const refusalCost = 0.25
/** Between two lines of the log while requests are refused. */
const loggedMs = 10_000

export interface ReadyRequest extends Pick<ClientRequest, 'socket' | 'headers'> {
  readonly url: string
  /** That it holds while it waits. */
  readonly bytes: number
  begin(): void
  /** There is no memory for it, or it has waited too long. */
  refuse(error: GatewayError): void
  /** However long it waits, it is begun: who asks whether the gateway lives must not hear that it is busy. */
  readonly isProbe?: boolean
}

interface RequestTurnsOptions {
  /** Who was let in on one before: who sends a request is not known until it is begun. */
  readonly connections: Pick<Connections, 'ownerOf'>
  /** What requests that wait may take. */
  readonly memory: MemoryAccount
  /** Says how long one may wait, in milliseconds, and which tenants there are. */
  readonly state: {
    readonly snapshot: {
      readonly limits: { readonly queueMs: number }
      readonly tenants: Pick<ReadonlySet<TenantId>, 'has'>
      readonly trustedProxies?: Snapshot['trustedProxies']
    }
  }
  readonly clock: Clock
  readonly log: Log
  /** Replaced in tests, as the next one. */
  readonly delay?: LoopDelay
  readonly shares?: TurnShares
}

export type RequestTurns = ReturnType<typeof createRequestTurns>

export function createRequestTurns(options: RequestTurnsOptions) {
  const { connections, memory, state, clock, log, delay = createLoopDelay(clock), shares = turnShares } = options
  /** @returns what it costs of the turn */
  const waiting = createFairQueue<() => number>()
  /** Each has a place in `waiting`: the tenants that they name take turns, and the networks at each of these. */
  const strangers = createFairQueue<() => number>()
  let begun = 0
  let isTurnAwaited = false
  /** Since the last line of the log; undefined while none are refused. */
  let refused: number | undefined

  /** @param since when it was read; before that it waited for the event loop */
  const isLate = (since: number): boolean => clock.now() - since + delay.standingMs() > state.snapshot.limits.queueMs

  function refuseLate({ refuse }: ReadyRequest): void {
    refuse(overloaded())
    if (refused !== undefined) return void refused++
    const { queueMs } = state.snapshot.limits
    log.warn({ queueMs }, 'overloaded: requests that wait longer than limits.queueMs are refused with 503')
    refused = 0
    clock.timer(loggedMs, noteRefused).unref()
  }

  function noteRefused(): void {
    const requests = refused ?? 0
    refused = requests === 0 ? undefined : 0
    if (requests === 0) return
    log.warn({ requests, withinMs: loggedMs }, 'overloaded: more requests were refused')
    clock.timer(loggedMs, noteRefused).unref()
  }

  /** Who was let in on its connection before, where that was at this tenant. Else a stranger, by its network. */
  function ownerOf(request: ReadyRequest): WorkOwner {
    const last = connections.ownerOf(request.socket)
    const named = tenantIn(request.url)
    if (named === last.tenant && named !== '') return last
    return { tenant: '', caller: networkOf(clientAddressOf(request, state.snapshot) ?? '') }
  }

  function wait(run: () => number, owner: WorkOwner, { url }: ReadyRequest): void {
    if (owner.tenant !== '') return waiting.add(run, owner)
    const named = tenantIn(url)
    strangers.add(run, { tenant: state.snapshot.tenants.has(named) ? named : '', caller: owner.caller })
    waiting.add(() => strangers.next()?.() ?? 0, owner)
  }

  /** Its owner pays for it already; a stranger only until it is let in, then its tenant pays for all of it. */
  function start(request: ReadyRequest): void {
    request.begin()
    const letIn = ownerOf(request).tenant
    shares.renameRunning(letIn)
    // Who watches over the process takes nothing from a tenant that is alone.
    if (request.isProbe !== true) shares.note(letIn)
  }

  function awaitTurn(): void {
    if (isTurnAwaited) return
    isTurnAwaited = true
    shares.inNextTurn(nextTurn)
  }

  function nextTurn(): void {
    isTurnAwaited = false
    begun = 0
    for (let next = waiting.next(shares.has); next !== undefined; next = waiting.next(shares.has)) {
      begun += next()
      if (begun >= maxBegunPerTurn) break
    }
    if (begun > 0 || !waiting.isEmpty) awaitTurn()
  }

  return {
    close: delay.close,
    /** Begins it at once, or in a later turn. @returns whether it waits: nothing more may be read of its socket then */
    add(request: ReadyRequest): boolean {
      const { bytes, refuse, isProbe = false } = request
      const since = clock.now()
      const owner = ownerOf(request)
      const { tenant } = owner
      // Also for what only waits, or is refused: else whoever had work before would pay for it.
      shares.begin(tenant)
      awaitTurn()
      if (!isProbe && isLate(since)) {
        refuseLate(request)
        return false
      }
      // Of what watches over the process none waits for strangers.
      if (begun < maxBegunPerTurn && (isProbe || shares.has(tenant))) {
        begun++
        start(request)
        return false
      }
      const share = memory.share(tenant, owner.caller)
      if (!share.take(bytes)) {
        refuse(share.refusal(bytes, 'The request'))
        return false
      }
      const run = (): number => {
        shares.begin(tenant)
        share.move(-bytes)
        if (isProbe || !isLate(since)) {
          start(request)
          return 1
        }
        refuseLate(request)
        return refusalCost
      }
      wait(run, owner, request)
      return true
    }
  }
}

/** Of a request target; '' where its path names none. */
const tenantIn = (url: string): TenantId => tenantId(/^\/t\/([^/]+)/.exec(readTarget(url).path)?.[1] ?? '')

const overloaded = (): GatewayError =>
  new GatewayError('overloaded', 'The gateway has more to do than it can. Retry in a second.')
