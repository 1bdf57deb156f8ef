// Who sits before the browser on the pages of connections: a sealed cookie of one tenant, for some hours.

import type { Person } from '../../config/auth/upstream-auth.ts'
import type { TenantId } from '../../protocol/messages.ts'
import type { Sealer } from '../../store/seal.ts'
import { createHash, timingSafeEqual } from 'node:crypto'
import { pageCookie } from './page-cookie.ts'

export interface ConnectionSession {
  readonly person: Person
  /** As people know them. */
  readonly name: string
  /** What forms of their pages have to send back. */
  readonly csrf: string
  /** Of the tenant when they signed in: another one is another tenant, although it has the same name. */
  readonly epoch: number
}

export interface SignedIn extends Person {
  /** Not given: the subject. */
  readonly name?: string
  /** Of what they have signed in with: epoch ms. */
  readonly expiresAt?: number | undefined
}

const sessionMs = 8 * 60 * 60_000
const purpose = 'connections-session'
const cookie = pageCookie('connections')

export function createConnectionSessions(sealer: Pick<Sealer, 'seal' | 'open'>, wall: { now(): number }) {
  return {
    /** @param cookies the header. @returns undefined where there is none that holds */
    read(tenant: TenantId, cookies: string | undefined, secure: boolean): ConnectionSession | undefined {
      const value = cookie.in(tenant, cookies, secure)
      const text = value === undefined ? undefined : sealer.open(purpose, [tenant], value)
      if (value === undefined || text === undefined) return undefined
      const [issuer, subject, until, epoch, name] = JSON.parse(text) as [string, string, number, number, string?]
      if (wall.now() > until) return undefined
      return { person: { tenant, issuer, subject }, name: name ?? subject, csrf: csrfOf(value), epoch }
    },
    /**
     * @param epoch of the tenant now
     * @returns the `Set-Cookie` of a person who has signed in; it ends with what they have signed in with
     */
    begin({ tenant, issuer, subject, name, expiresAt = Infinity }: SignedIn, epoch: number, secure: boolean): string {
      const until = Math.min(wall.now() + sessionMs, expiresAt)
      const value = sealer.seal(purpose, [tenant], JSON.stringify([issuer, subject, until, epoch, name]))
      return cookie.line(tenant, value, sessionMs / 1000, secure)
    },
    end: (tenant: string, secure: boolean): string => cookie.line(tenant, '', 0, secure),
    /** Was the form on a page of this very session? */
    isOwnForm(given: string | undefined, csrf: string): boolean {
      const [one, other] = [Buffer.from(given ?? ''), Buffer.from(csrf)]
      return one.length === other.length && timingSafeEqual(one, other)
    }
  }
}

const csrfOf = (value: string): string => createHash('sha256').update(`form ${value}`).digest('base64url')
