// Who uses the admin API: an admin key as a bearer and nothing else, so that no browser sends it by itself. Requests
// are counted before the key is looked at, by address, and after it, by key.

import { LRUCache } from 'lru-cache'
import { createKeyring } from '../auth/authenticate.ts'
import { readBearer } from '../auth/bearer.ts'
import type { AdminConfig, AdminKeyConfig, Snapshot } from '../config/snapshot.ts'
import { createTokenBucket } from '../limits/limits.ts'
import type { Log } from '../observe/log.ts'
import { GatewayError } from '../protocol/messages.ts'
import type { Clock } from '../time/clock.ts'
import { AdminProblem } from './problem.ts'

export type AdminRole = AdminKeyConfig['role']

export interface Administrator {
  /** Of the key. */
  readonly name: string
  readonly role: AdminRole
  /** undefined: all. */
  readonly tenants: ReadonlySet<string> | undefined
}

/** `gatehouse admin-key new` makes such: the digest of anything that a person thought up matches nothing. */
const adminKeyPattern = /^gha_[\w-]{43}$/

/** Of requests: bursts pass, and so many a second. */
const requestsPerAddress = { perSecond: 100, burst: 400 }
const requestsPerKey = { perSecond: 20, burst: 100 }
/** Wrong keys from one address, in a minute. A right key passes nevertheless: nobody locks an operator out. */
const failuresPerMinute = 10
/** Addresses and keys whose requests are counted; beyond, the least recent are forgotten. */
const maxCounted = 10_000

/** @param clock measures durations */
export function createAdminAccess(snapshot: () => Pick<Snapshot, 'admin'>, clock: Clock, log: Log) {
  const perAddress = createRates(clock, requestsPerAddress)
  const perKey = createRates(clock, requestsPerKey)
  const failures = createRates(clock, { perSecond: failuresPerMinute / 60, burst: failuresPerMinute })
  const keyrings = new WeakMap<AdminConfig, ReturnType<typeof createKeyring<AdminKeyConfig>>>()

  function keyOf(presented: string): AdminKeyConfig | undefined {
    const { admin } = snapshot()
    if (admin === undefined || !adminKeyPattern.test(presented)) return undefined
    const keyring = keyrings.get(admin) ?? createKeyring(admin.keys)
    keyrings.set(admin, keyring)
    return keyring.find(presented)
  }

  function refuseKey(address: string): AdminProblem {
    if (failures.take(address))
      return unauthenticated('This is not an admin key of this gateway.', 'error="invalid_token"')
    log.warn({ address, failuresPerMinute }, 'many wrong admin keys from one address')
    return tooMany(
      'This address has sent too many wrong admin keys.',
      'Wait a minute. The right key is still accepted.'
    )
  }

  return {
    /** Before anything else is read of the request. @throws AdminProblem rate_limited */
    countAddress(address: string): void {
      if (!perAddress.take(address)) throw tooMany('This address sends too many requests.', 'Send more slowly.')
    },
    /**
     * @param rawHeaders as node has them: name, value, name, value
     * @throws AdminProblem unauthenticated, rate_limited
     */
    authenticate(rawHeaders: readonly string[], address: string): Administrator {
      const key = keyOf(bearerOf(rawHeaders))
      if (key === undefined) throw refuseKey(address)
      const { name, role, tenants } = key
      if (!perKey.take(key.sha256)) throw tooMany('This key sends too many requests.', 'Send more slowly.')
      return { name, role, tenants: tenants === undefined ? undefined : new Set(tenants) }
    }
  }
}

/** @throws AdminProblem unauthenticated */
function bearerOf(rawHeaders: readonly string[]): string {
  try {
    const bearer = readBearer(rawHeaders)
    if (bearer !== undefined) return bearer
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    throw unauthenticated(error.message)
  }
  throw unauthenticated('The request carries no admin key.')
}

const unauthenticated = (message: string, parameter = ''): AdminProblem =>
  new AdminProblem(
    'unauthenticated',
    message,
    'Send an admin key as "Authorization: Bearer KEY". Make one with: gatehouse admin-key new.',
    { headers: { 'WWW-Authenticate': ['Bearer realm="admin"', parameter].filter(Boolean).join(', ') } }
  )

const tooMany = (message: string, remedy: string): AdminProblem =>
  new AdminProblem('rate_limited', message, remedy, { headers: { 'Retry-After': '1' } })

function createRates(clock: Clock, { perSecond, burst }: { readonly perSecond: number; readonly burst: number }) {
  const buckets = new LRUCache<string, ReturnType<typeof createTokenBucket>>({ max: maxCounted })
  return {
    take(who: string): boolean {
      const bucket = buckets.get(who) ?? createTokenBucket(clock, perSecond, burst)
      buckets.set(who, bucket)
      return bucket.take()
    }
  }
}
