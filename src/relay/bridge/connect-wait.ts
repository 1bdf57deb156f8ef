// A client of 2026-07-28 comes back from the page where its person connects something: its "accept" says that the page
// was opened, and no more. The server "may need to block until the request is fulfilled" (client/elicitation "URL Mode
// Flow"): the call waits, and goes on by itself once the person has finished, at whichever process.

import { isObject, type UpstreamName } from '../../protocol/messages.ts'
import { abortable, type Clock, deadline, noReason } from '../../time/clock.ts'
import { isConnectedSince } from '../../vault/personal-views.ts'
import { type ContextOf, type EndpointContext, type ModernCall, quotaKeyOf } from '../call/call.ts'
import type { RequestStates } from './request-state.ts'

/** Then the client is asked again. Those of the official SDKs give a request up after a minute. */
const connectWaitMs = 45_000

interface Asked {
  readonly upstream: UpstreamName
  /** The hash of the definition as the person had it when they were asked. */
  readonly hash: string
}

interface ConnectWaitOptions {
  readonly states: RequestStates
  readonly contextOf: ContextOf
  readonly clock: Clock
  /** The longest time that a call waits for input of its client, in milliseconds. */
  readonly parkedMs?: number | undefined
}

export function createConnectWait({ states, contextOf, clock, parkedMs = connectWaitMs }: ConnectWaitOptions) {
  /** The calls that wait, by person. Limited as the requests of a caller are. */
  const waiting = new Map<string, Set<() => void>>()
  const stopping = new AbortController()

  /** `promise` resolves with the next change of what the person has. Whoever no longer waits forgets it. */
  function changeOf(person: string): { readonly promise: Promise<void>; forget(): void } {
    const { promise, resolve } = Promise.withResolvers<void>()
    const all = waiting.get(person) ?? new Set()
    waiting.set(person, all.add(resolve))
    const forget = (): void => {
      all.delete(resolve)
      if (all.size === 0 && waiting.get(person) === all) waiting.delete(person)
    }
    return { promise, forget }
  }

  async function connected(call: ModernCall, asked: Asked): Promise<ModernCall> {
    const { tenant, endpoint, principal } = call
    const limit = deadline(clock, Math.min(parkedMs, connectWaitMs), AbortSignal.any([call.signal, stopping.signal]))
    try {
      for (;;) {
        const change = changeOf(quotaKeyOf(principal))
        try {
          const context = await contextOf.load(tenant.id, endpoint.name, principal)
          if (call.signal.aborted) throw call.signal.reason
          if (limit.signal.aborted || isOver(context, asked)) return { ...call, ...context }
          await abortable(change.promise, limit.signal).catch(() => undefined)
        } finally {
          change.forget()
        }
      }
    } finally {
      limit.close()
    }
  }

  const isOver = (context: EndpointContext | undefined, { upstream, hash }: Asked): boolean =>
    context === undefined || isConnectedSince(context.tenant.upstreams.get(upstream), hash)

  return {
    /**
     * @returns the call as its person has the endpoint once they have finished, or after a while; undefined where it
     * does not come back from a page
     * @throws GatewayError unavailable, cancelled
     */
    of(call: ModernCall): Promise<ModernCall> | undefined {
      const { requestState, inputResponses } = call.request.params ?? {}
      if (requestState === undefined || !isObject(inputResponses)) return undefined
      const answers = Object.values(inputResponses)
      if (answers.length === 0 || !answers.every((each) => isObject(each) && each['action'] === 'accept'))
        return undefined
      return states.prepare(call).then(() => {
        const asked = states.askedToConnect(call)
        return asked === undefined ? call : connected(call, asked)
      })
    },
    /** Wakes the calls that wait for a person whose connections have changed. @param person as `quotaKeyOf` */
    tellPerson(person: string): void {
      for (const resolve of waiting.get(person) ?? []) resolve()
    },
    /** The process stops: whoever waits is asked again, and comes back by another one. */
    stop: () => stopping.abort(noReason)
  }
}
