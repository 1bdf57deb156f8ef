// How often the hosts of one person may refresh: each refresh token is kept until its end when it is spent, too, so
// that a second use of it is noticed (RFC 9700 section 4.14).

import type { errors as Errors, KoaContextWithOIDC } from 'oidc-provider'
import type { LoginConfig } from '../config/auth/login-config.ts'
import type { Clock } from '../time/clock.ts'
import type { LoginRecords } from './records.ts'

const windowMs = 60 * 60_000
/** Hosts of one person that are in use all day: each refreshes when its access token ends. */
const busyHosts = 20
/** Refreshes in an hour, at the least: hosts that are started anew refresh each time. */
const leastRefreshes = 60

interface RefreshRateOptions {
  readonly records: LoginRecords
  readonly config: Pick<LoginConfig, 'tokenSeconds'>
  /** The time of day. */
  readonly clock: Pick<Clock, 'now'>
  readonly errors: typeof Errors
}

export function createRefreshRate({ records, config, clock, errors }: RefreshRateOptions) {
  const most = Math.max(leastRefreshes, Math.floor((busyHosts * 3_600) / config.tokenSeconds))
  /** @throws OIDCProviderError where it is too often: nothing is used up, and the host comes back */
  return async (ctx: KoaContextWithOIDC, subject: string): Promise<void> => {
    const counter = { id: subject, windowMs, now: clock.now() }
    if ((await records.count('refreshes', { ...counter, by: 1 })) <= most) return
    ctx.set('retry-after', String(await records.secondsLeft('refreshes', counter)))
    const error = new errors.TemporarilyUnavailable(`more than ${most} refreshes of one person in an hour; try later`)
    throw Object.assign(error, { status: 429, statusCode: 429 })
  }
}
