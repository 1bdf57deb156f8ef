// How much strangers may begin at a login front, counted in the store, for all processes. One address, or /64 of IPv6,
// has what the configuration says, and all together twice that: a stranger keeps nobody out who comes from elsewhere.

import type { IncomingMessage } from 'node:http'
import type { KoaContextWithOIDC, Provider } from 'oidc-provider'
import type { LoginConfig } from '../../config/auth/login-config.ts'
import { networkOf } from '../../limits/client-network.ts'
import { strangersShare } from '../../limits/stranger-rate.ts'
import type { Log } from '../../observe/log.ts'
import type { Clock } from '../../time/clock.ts'
import { begunBy, limitsOf, type StrangerLimit } from './own-paths.ts'
import type { LoginRecords } from '../records.ts'

interface StrangerLimitsOptions {
  readonly tenant: { readonly id: string }
  readonly config: LoginConfig
  readonly records: LoginRecords
  /** The time of day. */
  readonly clock: Pick<Clock, 'now'>
  readonly log: Log
  readonly addressOf: (request: IncomingMessage) => string | undefined
}

export type StrangerLimits = ReturnType<typeof createStrangerLimits>

/** The name of the counter of all clients. */
const everybody = ''

export function createStrangerLimits({ tenant, config, records, clock, log, addressOf }: StrangerLimitsOptions) {
  const limits = limitsOf(config)
  /** Requests under way that are counted as beginning something: as what, and when. */
  const begun = new WeakMap<IncomingMessage, { readonly name: StrangerLimit; readonly at: number }>()
  const whoOf = (request: IncomingMessage): string => networkOf(addressOf(request) ?? 'unknown')

  const counterOf = (name: StrangerLimit, id: string) => ({ id, windowMs: limits[name].windowMs, now: clock.now() })
  const count = (name: StrangerLimit, who: string, by: number): Promise<number> =>
    records.count(name, { ...counterOf(name, who), by })

  /** @returns in how many seconds a new window begins */
  async function refusal(name: StrangerLimit, who: string): Promise<number> {
    const { key, windowMs, most } = limits[name]
    // Once in each window, whichever process it comes to.
    if (await records.isFirst(`${name} refused`, who, windowMs)) {
      const address = who === everybody ? undefined : who
      log.warn({ tenant: tenant.id, limit: key, most, address }, 'the login front is asked too often')
    }
    return await records.secondsLeft(name, counterOf(name, who))
  }

  /** @returns undefined where it may; otherwise after how many seconds it may again */
  async function take(name: StrangerLimit, request: IncomingMessage): Promise<number | undefined> {
    const { most } = limits[name]
    const ofAll = most / strangersShare
    const who = whoOf(request)
    // First: where nobody gets anything no network leaves a counter.
    if ((await count(name, everybody, 0)) >= ofAll) return await refusal(name, everybody)
    if ((await count(name, who, 1)) > most) return await refusal(name, who)
    return (await count(name, everybody, 1)) > ofAll ? await refusal(name, everybody) : undefined
  }

  return {
    take,
    /** Counts what a request is about to begin, if it begins something. */
    async begin(path: string, request: IncomingMessage): Promise<number | undefined> {
      const name = begunBy(path, request.method)
      const retrySeconds = name === undefined ? undefined : await take(name, request)
      if (name !== undefined && retrySeconds === undefined) begun.set(request, { name, at: clock.now() })
      return retrySeconds
    },
    /** Takes the count of a request back that began nothing. */
    async giveBack(request: IncomingMessage): Promise<void> {
      const counted = begun.get(request)
      if (counted === undefined) return
      begun.delete(request)
      const { name, at } = counted
      for (const who of [whoOf(request), everybody]) {
        const since = await records.windowBegan(name, who)
        // A new window may have begun meanwhile, in which it was not counted.
        if (since === undefined || since > at) continue
        if ((await count(name, who, -1)) < 0) await count(name, who, 1)
      }
    }
  }
}

/** Takes the count back of requests that leave nothing in the store: refusals, and answers that are known at once. */
export function giveBackUnbegun(provider: Provider, { giveBack }: StrangerLimits): void {
  provider.use(async (ctx: KoaContextWithOIDC, next: () => Promise<void>) => {
    await next()
    // While the store is away its counters end with their windows.
    if (!begins(ctx)) await giveBack(ctx.req).catch(() => undefined)
  })
}

function begins({ oidc, status }: KoaContextWithOIDC): boolean {
  const { Interaction: interaction, AuthorizationCode: code } = oidc?.entities ?? {}
  return oidc?.route === 'authorization' ? interaction !== undefined || code !== undefined : status < 400
}
