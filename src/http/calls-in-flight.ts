// The calls that run in this process: so many for one session, one person and one tenant, and each id once in a
// session. And the streams that clients listen on: so many for one tenant.

import { isStopped } from '../auth/principal.ts'
import type { Tenant } from '../config/snapshot.ts'
import { createQuota } from '../limits/limits.ts'
import { createOpenSet } from '../limits/open-set.ts'
import type { CallRecord, ObservedCall } from '../observe/calls.ts'
import type { Log } from '../observe/log.ts'
import { killOfRoute } from '../policy/kills.ts'
import { GatewayError, type Message, type RequestId, type TenantId } from '../protocol/messages.ts'
import type { Bus } from '../session/bus/bus.ts'
import type { LiveSession } from '../session/live-sessions.ts'
import { type Clock, pause } from '../time/clock.ts'
import type { CallContext, RequestContext } from './admission.ts'

export type CallsInFlight = ReturnType<typeof createCallsInFlight>

interface RunningCall {
  readonly controller: AbortController
  readonly call: ObservedCall & { readonly tenant: Pick<Tenant, 'id'>; readonly record: CallRecord }
}

const callStopped = (what: string): GatewayError =>
  new GatewayError(
    'call_stopped',
    `An administrator of this gateway has stopped ${what}. Whether the call took effect is unknown.`,
    { data: { outcome: 'unknown' } }
  )

export function createCallsInFlight() {
  const quota = createQuota()
  const running = createOpenSet<RunningCall>()
  return {
    /** The calls that run, for the drain, kill switches and whoever looks at them, with what is known of each. */
    running,
    /** Yields the tenant of each call that runs. */
    *tenants(): Iterable<string> {
      for (const { call } of running) yield call.tenant.id
    },
    /** Ends those whose tool, upstream, tenant or caller is stopped. */
    endStopped(tenants: ReadonlyMap<TenantId, Tenant>): void {
      for (const { controller, call } of running) {
        const { record } = call
        const tenant = tenants.get(call.tenant.id)
        if (tenant === undefined) continue
        if (isStopped(call.principal, tenant.auth))
          controller.abort(callStopped(tenant.auth.stopped === 'everybody' ? 'the tenant' : 'the caller'))
        // It waits for a list, and goes on with the configuration that it began with.
        else if (record.route === undefined) record.stopped = tenant
        else if (killOfRoute(tenant, record.route) !== undefined) controller.abort(callStopped('what was called'))
      }
    },
    /**
     * Counts one more.
     * @returns ends it; idempotent
     * @throws GatewayError too_many
     */
    enter({ tenant, person, snapshot: { limits } }: CallContext): () => void {
      const { callsPerPrincipal, callsPerTenant } = limits
      const own = tenant.resources?.calls ?? Infinity
      const leave = quota.take(1, [
        [person, callsPerPrincipal],
        [callsOf(tenant.id), Math.min(callsPerTenant, own)]
      ])
      if (leave !== undefined) return leave
      if (quota.amountOf(callsOf(tenant.id)) >= own)
        throw tooManyOf('resources.calls', `${own} requests of this tenant are in flight`, 'Wait for answers')
      throw new GatewayError(
        'too_many',
        `${callsPerPrincipal} requests of this caller (limits.callsPerPrincipal) or ${callsPerTenant} of its tenant ` +
          '(limits.callsPerTenant) are in flight, which is the limit. Wait for answers before sending more.'
      )
    },
    /**
     * Counts a stream that a client is about to listen on, until its connection closes.
     * @throws GatewayError too_many
     */
    listen({ tenant, raw }: Pick<RequestContext, 'tenant' | 'raw'>): void {
      // Its 'close' has been emitted where the client left during the checks, and nothing would give the place back.
      if (raw.destroyed) return
      const max = tenant.resources?.streams ?? Infinity
      const leave = quota.take(1, [[streamsOf(tenant.id), max]])
      if (leave === undefined)
        throw tooManyOf('resources.streams', `${max} streams of this tenant are open`, 'Close one')
      raw.once('close', leave)
    },
    /** Returns how many calls and streams the tenant has now. */
    countsOf: (tenant: TenantId): { readonly calls: number; readonly streams: number } => ({
      calls: quota.amountOf(callsOf(tenant)),
      streams: quota.amountOf(streamsOf(tenant))
    })
  }
}

const callsOf = (tenant: TenantId): string => `tenant ${tenant}`
const streamsOf = (tenant: TenantId): string => `streams ${tenant}`

/** Makes the error of a tenant that uses all that it may at one process. Places become free at any moment. */
const tooManyOf = (limit: string, what: string, remedy: string): GatewayError =>
  new GatewayError('too_many', `${what}, which is its limit (${limit}). ${remedy}, or retry later.`, {
    data: { limit },
    headers: { 'Retry-After': '1' }
  })

/** The interval at which the drain checks whether everything has ended that others wait for. */
const lookMs = 50

/**
 * Begins the drain, after which calls are ended: those of this process, and what it works on for others.
 * @param parkedCalls of 2026-07-28, which wait here for clients that come back by other processes
 * @param cutMs after `drainMs`, for the last answers
 * @returns what resolves when nothing is left that others wait for, or after that time
 */
export function startDrain(
  { running }: Pick<CallsInFlight, 'running'>,
  bus: Pick<Bus, 'shared' | 'isWorking' | 'endWork'>,
  parkedCalls: () => number,
  { drainMs, cutMs, clock, log }: { drainMs: number; cutMs: number; clock: Clock; log: Log }
): () => Promise<void> {
  let isOver = false
  const cutAt = clock.now() + drainMs + cutMs
  const drain = clock.timer(drainMs, () => {
    isOver = true
    abortCalls(running, log)
    bus.endWork()
  })
  const isAwaited = (): boolean => bus.isWorking() || (bus.shared && !isOver && parkedCalls() > 0)
  return async () => {
    while (isAwaited() && clock.now() < cutAt) await pause(clock, lookMs)
    drain.close()
  }
}

function abortCalls(running: Iterable<RunningCall>, log: Log): void {
  const calls = [...running]
  log.warn({ calls: calls.length }, 'drain time is over; aborting calls in flight')
  const stopped = new GatewayError(
    'shutting_down',
    'The gateway stopped before the upstream had answered. Whether the call took effect is unknown.',
    { data: { outcome: 'unknown' } }
  )
  for (const { controller } of calls) controller.abort(stopped)
}

/** @throws GatewayError too_many */
export function refuseCall(callsInFlight: number, maxCalls: number, whose: 'session' | 'caller'): void {
  if (callsInFlight < maxCalls) return
  throw new GatewayError(
    'too_many',
    `More than ${maxCalls} requests of this ${whose} are in flight (limits.callsPerSession). ` +
      'Wait for answers before sending more.'
  )
}

/**
 * JSON-RPC tells answers apart by their ids alone: with two of one id in flight, one gets the answer, or the
 * cancellation, of the other (2025-11-25 basic "Requests": an id MUST NOT have been used before in the session).
 * @throws GatewayError invalid_request
 */
export function refuseIdsInFlight(
  { calls }: LiveSession,
  messages: ReadonlyArray<Message | { readonly kind: 'invalid' }>
): void {
  const ids: RequestId[] = []
  for (const { id } of calls) ids.push(id)
  for (const message of messages) {
    if (message.kind !== 'request') continue
    if (ids.includes(message.id))
      throw new GatewayError(
        'invalid_request',
        'A request with this id is in flight in this session. Wait for its answer, or send another id.'
      )
    ids.push(message.id)
  }
}

/** Returns the context of one request of a batch, which has no body of its own. @param at the place of its message */
export const batchedContext = <T extends CallContext>({ messageBytes, ...context }: T, at: number) => ({
  ...context,
  bodyBytes: undefined,
  ...(messageBytes !== undefined && { messageBytes: messageBytes.slice(at, at + 1) })
})

/** Returns the record of a call for the log. @param sender the client, as it declared itself, and its session */
export const callRecordOf = (
  { address, requestId, traceHeaders, bodyBytes, messageBytes, replyHeaders, endpoint }: CallContext,
  sender: Pick<CallRecord, 'id' | 'revision' | 'software' | 'session'>
): CallRecord => ({
  address,
  requestId,
  traceHeaders,
  bodyBytes: bodyBytes ?? messageBytes?.[0],
  replyHeaders,
  maxAnswerBytes: endpoint.maxResultBytes,
  id: sender.id,
  revision: sender.revision,
  software: sender.software,
  session: sender.session,
  // What nearly every call is given on its way has its place from the first: a property that comes later moves others.
  startedAt: undefined,
  clock: undefined,
  route: undefined,
  allowedBy: undefined,
  waitMs: undefined,
  upstreamMs: undefined,
  failure: undefined,
  answerBytes: undefined
})
