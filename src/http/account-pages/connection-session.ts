// Who sits before the browser on the pages of connections: a sealed cookie of one tenant, for some hours.

import type { Person } from '../../config/auth/upstream-auth.ts'
import type { TenantId } from '../../protocol/messages.ts'
import { signedOutKey } from '../../store/keys.ts'
import type { Store } from '../../store/port.ts'
import type { Sealer } from '../../store/seal.ts'
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { pageCookie } from './page-cookie.ts'

export interface ConnectionSession {
  readonly person: Person
  /** The name of the person, as people know it. */
  readonly name: string
  /** The token that forms of the pages have to send back. */
  readonly csrf: string
  /** The epoch of the tenant at the sign-in: another one is another tenant, although it has the same name. */
  readonly epoch: number
  /** The sealed value of the cookie: it names this sign-in and no other. */
  readonly sealed: string
  /** Epoch ms. */
  readonly until: number
}

export interface SignedIn extends Person {
  /** The name of the person. Default: the subject. */
  readonly name?: string
  /** The end of the credential that the person signed in with: epoch ms. */
  readonly expiresAt?: number | undefined
}

const sessionMs = 8 * 60 * 60_000
const purpose = 'connections-session'
const cookie = pageCookie('connections')

interface ConnectionSessionsOptions {
  readonly sealer: Pick<Sealer, 'seal' | 'open'>
  readonly store: Pick<Store, 'get' | 'set'>
  readonly wall: { now(): number }
}

export function createConnectionSessions({ sealer, store, wall }: ConnectionSessionsOptions) {
  return {
    /**
     * @param cookies the header
     * @returns undefined where there is none that holds
     * @throws GatewayError unavailable
     */
    async read(tenant: TenantId, cookies: string | undefined, secure: boolean): Promise<ConnectionSession | undefined> {
      const value = cookie.in(tenant, cookies, secure)
      const text = value === undefined ? undefined : sealer.open(purpose, [tenant], value)
      if (value === undefined || text === undefined) return undefined
      const [issuer, subject, until, epoch, name] = JSON.parse(text) as [string, string, number, number, string?]
      if (wall.now() > until || (await store.get(signedOutKey(tenant, text))) !== undefined) return undefined
      const person = { tenant, issuer, subject }
      return { person, name: name ?? subject, csrf: csrfOf(value), epoch, sealed: text, until }
    },
    /**
     * @param epoch of the tenant now
     * @returns the `Set-Cookie` of a person who has signed in; it ends with what they have signed in with
     */
    begin({ tenant, issuer, subject, name, expiresAt = Infinity }: SignedIn, epoch: number, secure: boolean): string {
      const until = Math.min(wall.now() + sessionMs, expiresAt)
      const value = sealer.seal(purpose, [tenant], JSON.stringify([issuer, subject, until, epoch, name, newSignIn()]))
      return cookie.line(tenant, value, sessionMs / 1000, secure)
    },
    /**
     * A copy of its cookie is good no more, at no process.
     * @returns the `Set-Cookie` that takes it away
     * @throws GatewayError unavailable
     */
    async end({ person: { tenant }, sealed, until }: ConnectionSession, secure: boolean): Promise<string> {
      await store.set(signedOutKey(tenant, sealed), 'true', { ttlMs: Math.max(1, until - wall.now()) })
      return cookie.line(tenant, '', 0, secure)
    },
    /** Was the form on a page of this very session? */
    isOwnForm(given: string | undefined, csrf: string): boolean {
      const [one, other] = [Buffer.from(given ?? ''), Buffer.from(csrf)]
      return one.length === other.length && timingSafeEqual(one, other)
    }
  }
}

/** Two sign-ins of one person may end at the same moment. */
const newSignIn = (): string => randomBytes(9).toString('base64url')

const csrfOf = (value: string): string => createHash('sha256').update(`form ${value}`).digest('base64url')
