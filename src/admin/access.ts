// Authenticates administrators: by an admin key, or an access token of an issuer of administrators, as a bearer token
// only, so that no browser sends it by itself. Requests with a valid key or a known token are rate-limited by it, all
// others by address (of IPv6, the /64): so strangers behind the proxy of an operator cannot lock the operator out.

import { createKeyring } from '../auth/keyring.ts'
import { readBearer } from '../auth/bearer.ts'
import type { FetchFor } from '../egress/fetch.ts'
import { isJwt } from '../auth/token.ts'
import type { AdminConfig, AdminKeyConfig, Snapshot } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import { shownName } from '../observe/pseudonyms.ts'
import { canonicalJsonOf } from '../protocol/json-text.ts'
import { GatewayError } from '../protocol/messages.ts'
import type { Clock } from '../time/clock.ts'
import { createTokenAdministrators, holderName, type TokenHolder } from './oidc/token-administrators.ts'
import { AdminProblem } from './problem.ts'
import { createAddressRates, createRates } from './rates.ts'

export type AdminRole = AdminKeyConfig['role']

export interface Administrator {
  /** The name of the key; for a token its subject and issuer. */
  readonly name: string
  readonly role: AdminRole
  /** undefined: all. */
  readonly tenants: ReadonlySet<string> | undefined
  /** The configured key or access rules by which the administrator was let in. */
  readonly by: AdminKeyConfig | TokenCredential
  /**
   * Counts what a body costs beside its request, before it is parsed.
   * @throws AdminProblem rate_limited
   */
  chargeBody(bytes: number): void
  /**
   * Counts what a change costs beyond its body, before it is validated: the whole document is validated, however small
   * the changed part.
   * @param chars of the document
   * @throws AdminProblem rate_limited
   */
  charge(chars: number): void
}

/** An administrator before its requests are counted. */
export type Identified = Omit<Administrator, 'charge' | 'chargeBody'>

/** What a session of the console keeps of an administrator: the digest of a key, or claims of a token. */
export type Remembered = Pick<AdminKeyConfig, 'sha256'> | TokenHolder

interface TokenCredential {
  readonly kind: 'token'
  readonly holder: TokenHolder
  readonly config: NonNullable<AdminConfig['oidc']>
  /** Epoch ms. */
  readonly expiresAt: number
}

interface AdminAccessOptions {
  readonly snapshot: () => Pick<Snapshot, 'admin' | 'pseudonyms'>
  /** Measures durations. */
  readonly clock: Clock
  /** The time of day. */
  readonly wall: Pick<Clock, 'now'>
  readonly fetchFor: FetchFor
  readonly log: Log
}

/** The form of generated keys (`gatehouse admin-key new`): a text made up by a person is never accepted. */
const adminKeyPattern = /^gha_[\w-]{43}$/

/** The rate of requests without a valid key, by address: bursts pass. */
const requestsPerAddress = { perSecond: 100, burst: 400 }
const requestsPerKey = { perSecond: 20, burst: 100 }
/** The characters of a validated document that count as one request. */
const charsPerRequest = 4_096
/** The most wrong keys from one address in a minute, and the most warnings about them. */
const failuresPerMinute = 10
const warningsPerMinute = 1

export type AdminAccess = ReturnType<typeof createAdminAccess>

export function createAdminAccess({ snapshot, clock, wall, fetchFor, log }: AdminAccessOptions) {
  const nameOf = (tenant: string, name: string): string => shownName(snapshot(), tenant, name)
  const tokens = createTokenAdministrators({ wall, fetchFor, log, nameOf })
  const perAddress = createAddressRates(clock, requestsPerAddress)
  const perKey = createRates(clock, requestsPerKey)
  const failures = createAddressRates(clock, { perSecond: failuresPerMinute / 60, burst: failuresPerMinute })
  const warnings = createAddressRates(clock, { perSecond: warningsPerMinute / 60, burst: warningsPerMinute })
  const keyrings = new WeakMap<AdminConfig, ReturnType<typeof createKeyring<AdminKeyConfig>>>()

  function keyOf(presented: string): AdminKeyConfig | undefined {
    const { admin } = snapshot()
    if (admin === undefined || !adminKeyPattern.test(presented)) return undefined
    const keyring = keyrings.get(admin) ?? createKeyring(admin.keys)
    keyrings.set(admin, keyring)
    return keyring.find(presented)
  }

  function refused(presented: string | AdminProblem, address: string): AdminProblem {
    if (!perAddress.take(address))
      return tooMany(
        'This address sends too many requests without a right key.',
        'Send more slowly. A right key is still accepted.'
      )
    if (presented instanceof AdminProblem) return presented
    return failed('This is not an admin key of this gateway.', address)
  }

  function failed(message: string, address: string): AdminProblem {
    if (failures.take(address)) return unauthenticated(message, 'error="invalid_token"')
    if (warnings.take(address)) log.warn({ address, failuresPerMinute }, 'many wrong admin keys from one address')
    return tooMany('This address has sent too many wrong admin keys.', 'Wait a minute. A right key is still accepted.')
  }

  /** @throws AdminProblem rate_limited */
  function count(counted: string): void {
    if (!perKey.take(counted)) throw tooMany('This key sends too many requests.', 'Send more slowly.')
  }

  /** @param counted by which its requests are counted */
  function charged(administrator: Identified, counted: string): Administrator {
    let paid = 0
    const charge = (chars: number): void => {
      const due = chars - paid
      // Of short ones the request is counted already.
      if (administrator.role === 'platform-admin' || due < charsPerRequest) return
      count(counted)
      perKey.spend(counted, due / charsPerRequest)
    }
    return {
      ...administrator,
      chargeBody(bytes) {
        charge(bytes)
        paid = bytes
      },
      charge(chars) {
        charge(chars)
        // After a conflict with another change the document is validated again.
        paid = 0
      }
    }
  }

  /** Lets a token in. The request is counted before a signature is checked, or an issuer asked. */
  async function byToken(token: string, config: TokenCredential['config'], address: string): Promise<Administrator> {
    if (!tokens.isKnown(token, config) && !perAddress.take(address))
      throw tooMany('This address sends too many requests without a token that is known.', 'Send more slowly.')
    const holder = await tokens.holderOf(token, config).catch((error: unknown) => {
      if (!(error instanceof GatewayError) || error.code !== 'unauthenticated') throw error
      throw failed(error.message, address)
    })
    return holding(holder, config)
  }

  /** Counted also for holders without a role: everybody at the issuer may get a valid token. */
  function holding(holder: TokenHolder, config: TokenCredential['config']): Administrator {
    const name = holderName(holder)
    count(name)
    return charged(tokens.administratorFor(holder, config), name)
  }

  return {
    /**
     * Counts a request of an unauthenticated client: for a file of the console, or to sign in.
     * @throws AdminProblem rate_limited
     */
    countStranger(address: string): void {
      if (!perAddress.take(address)) throw tooMany('This address sends too many requests.', 'Send more slowly.')
    },
    /**
     * Returns the administrator of a console session, by the present configuration.
     * @throws AdminProblem forbidden if the administrator has no role any more, rate_limited
     * @returns undefined if the key or the token is no longer accepted
     */
    remembered(remembered: Remembered): Administrator | undefined {
      const { keys = [], oidc } = snapshot().admin ?? {}
      if ('sha256' in remembered) {
        const key = keys.find(({ sha256 }) => sha256 === remembered.sha256)
        if (key === undefined) return undefined
        count(key.sha256)
        return charged(keyHolder(key), key.sha256)
      }
      const isTrusted =
        oidc?.login?.issuer === remembered.issuer || oidc?.issuers.some(({ issuer }) => issuer === remembered.issuer)
      if (oidc === undefined || isTrusted !== true || wall.now() >= (remembered.expiresAt ?? 0)) return undefined
      return holding(remembered, oidc)
    },
    /**
     * Returns the administrator who signed in at the provider of the console.
     * @throws AdminProblem forbidden without a role, rate_limited
     */
    signedIn(holder: TokenHolder): Administrator {
      const { oidc } = snapshot().admin ?? {}
      if (oidc === undefined) throw unauthenticated('Nobody signs in by a provider here.')
      return holding(holder, oidc)
    },
    /**
     * @param rawHeaders as node has them: name, value, name, value
     * @throws AdminProblem unauthenticated, forbidden, rate_limited; GatewayError unavailable where an issuer is away
     */
    async authenticate(rawHeaders: readonly string[], address: string): Promise<Administrator> {
      const presented = bearerOf(rawHeaders)
      // Before anything is counted: to look a key up costs one SHA-256, no more than to refuse the request.
      const key = presented instanceof AdminProblem ? undefined : keyOf(presented)
      const { oidc } = snapshot().admin ?? {}
      if (key === undefined && oidc !== undefined && typeof presented === 'string' && isJwt(presented))
        return await byToken(presented, oidc, address)
      if (key === undefined) throw refused(presented, address)
      count(key.sha256)
      return charged(keyHolder(key), key.sha256)
    },
    /** Whether the key or the access rules that let the administrator in are unchanged. */
    isLetIn({ by }: Administrator): boolean {
      const { keys = [], oidc } = snapshot().admin ?? {}
      if ('kind' in by)
        return wall.now() < by.expiresAt && (by.config === oidc || canonicalJsonOf(by.config) === canonicalJsonOf(oidc))
      return keys.some((each) => each === by || canonicalJsonOf(each) === canonicalJsonOf(by))
    },
    close: tokens.close
  }
}

const keyHolder = (key: AdminKeyConfig): Identified => ({
  name: key.name,
  role: key.role,
  tenants: key.tenants === undefined ? undefined : new Set(key.tenants),
  by: key
})

/** @returns unauthenticated where there is none, or more than one */
function bearerOf(rawHeaders: readonly string[]): string | AdminProblem {
  try {
    return readBearer(rawHeaders) ?? unauthenticated('The request carries no admin key.')
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return unauthenticated(error.message)
  }
}

const unauthenticated = (message: string, parameter = ''): AdminProblem =>
  new AdminProblem(
    'unauthenticated',
    message,
    'Send an admin key, or a token that is for the admin API, as "Authorization: Bearer KEY". Make a key with: ' +
      'gatehouse admin-key new.',
    { headers: { 'WWW-Authenticate': ['Bearer realm="admin"', parameter].filter(Boolean).join(', ') } }
  )

const tooMany = (message: string, remedy: string): AdminProblem =>
  new AdminProblem('rate_limited', message, remedy, { headers: { 'Retry-After': '1' } })
