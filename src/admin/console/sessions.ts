// Sessions of the console: whoever signs in gets a cookie that no script can read, and a token that no other page can
// read; each request needs both. Neither opens anything once its half is missing: a page of another port of the same
// machine is sent the cookie, but not the token.

import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { isObject } from '../../protocol/messages.ts'
import { consoleSessionKey, digest } from '../../store/keys.ts'
import type { Store } from '../../store/port.ts'
import type { Clock } from '../../time/clock.ts'
import type { AdminAccess, Administrator, Remembered } from '../access.ts'
import { AdminProblem } from '../problem.ts'
import { consoleCookie } from './cookies.ts'

/** Twelve hours: a working day. Then people sign in again. */
const sessionMs = 12 * 60 * 60 * 1000
/** The most sessions of one administrator; a further one ends the oldest. */
const maxSessions = 8

/** The most signed-out sessions that may have open streams; beyond, such streams end with their time. */
const maxSignedOut = 1_000

const cookie = consoleCookie('gatehouse-console')
const consoleTokenHeader = 'gatehouse-console'

/** A session in the store: digests only, so that a reader of the store can use none. */
interface Session {
  readonly id: string
  readonly token: string
  readonly who: Remembered
  /** Epoch ms. */
  readonly until: number
}

interface ConsoleSessionsOptions {
  readonly store: Pick<Store, 'get' | 'set' | 'delete'>
  readonly wall: Pick<Clock, 'now'>
  readonly access: AdminAccess
}

export type ConsoleSessions = ReturnType<typeof createConsoleSessions>

export function createConsoleSessions({ store, wall, access }: ConsoleSessionsOptions) {
  /** The session of each administrator. */
  const cameBy = new WeakMap<Administrator, Session>()
  const signedOut = new LRUCache<string, true>({ max: maxSignedOut })

  async function read(place: string): Promise<Session | undefined> {
    const [owner = '', seat = ''] = place.split('.')
    const text = await store.get(consoleSessionKey(owner, seat))
    if (text === undefined) return undefined
    const found = JSON.parse(text) as unknown
    return isObject(found) && typeof found['until'] === 'number' && found['until'] > wall.now()
      ? (found as unknown as Session)
      : undefined
  }

  /** The first that is free, or that of the session which ends first. */
  async function seatFor(owner: string): Promise<string> {
    const seats = await Promise.all(
      Array.from({ length: maxSessions }, async (_, at) => ({
        seat: String(at),
        until: (await read(`${owner}.${at}`))?.until ?? 0
      }))
    )
    return seats.reduce((first, each) => (each.until < first.until ? each : first)).seat
  }

  /** @throws AdminProblem unauthenticated, rate_limited */
  async function sessionOf(place: string, { headers, method, ip }: FastifyRequest) {
    checkOwnPage(headers, method)
    const [owner = '', seat = '', id = ''] = place.split('.')
    const session = await read(`${owner}.${seat}`)
    const token = headers[consoleTokenHeader]
    const isOwn =
      typeof token === 'string' &&
      session !== undefined &&
      isDigestOf(session.id, id) &&
      isDigestOf(session.token, token)
    if (!isOwn) {
      // As a request with a wrong key: by its address.
      access.countStranger(ip)
      throw ended()
    }
    return { session, key: consoleSessionKey(owner, seat) }
  }

  return {
    /** Authenticates a request by its key or token, else by its cookie. @throws AdminProblem as of `access` */
    async authenticate(request: FastifyRequest): Promise<Administrator> {
      const place = request.headers.authorization === undefined ? cookie.in(request) : undefined
      if (place === undefined) return await access.authenticate(request.raw.rawHeaders, request.ip)
      const { session } = await sessionOf(place, request)
      const administrator = access.remembered(session.who)
      if (administrator === undefined) throw ended()
      cameBy.set(administrator, session)
      return administrator
    },

    /** Whether the administrator is still let in, and their session has not ended. */
    isLetIn(administrator: Administrator): boolean {
      const session = cameBy.get(administrator)
      if (!access.isLetIn(administrator)) return false
      return session === undefined || (wall.now() < session.until && !signedOut.has(session.id))
    },

    /** @returns the cookie; the token, which the page keeps; and until when it is good, in epoch ms */
    async signIn(administrator: Administrator, { headers }: FastifyRequest) {
      const { by } = administrator
      const who: Remembered = 'kind' in by ? by.holder : { sha256: by.sha256 }
      const owner = digest(JSON.stringify(who))
      const [id, token] = [randomBytes(32).toString('base64url'), randomBytes(32).toString('base64url')]
      const ttlMs = Math.min(sessionMs, 'kind' in by ? by.expiresAt - wall.now() : sessionMs)
      const until = wall.now() + ttlMs
      const seat = await seatFor(owner)
      const session: Session = { id: hash('sha256', id), token: hash('sha256', token), who, until }
      await store.set(consoleSessionKey(owner, seat), JSON.stringify(session), { ttlMs })
      const seconds = Math.floor(ttlMs / 1000)
      return { cookie: cookie.line(headers.origin, `${owner}.${seat}.${id}`, seconds), token, until }
    },

    /** @returns the lines that take both cookies away */
    async signOut(request: FastifyRequest): Promise<string[]> {
      const place = cookie.in(request)
      if (place !== undefined) {
        const { session, key } = await sessionOf(place, request)
        await store.delete(key)
        signedOut.set(session.id, true)
      }
      return cookie.gone(request.headers.origin)
    }
  }
}

/**
 * A browser says which page a request comes from, and no page can make it say otherwise. @throws AdminProblem
 * forbidden_origin
 */
function checkOwnPage({ origin, 'sec-fetch-site': site }: FastifyRequest['headers'], method: string): void {
  const isUnsafe = method !== 'GET'
  if ((site === undefined || site === 'same-origin') && (origin !== undefined || !isUnsafe)) return
  throw new AdminProblem(
    'forbidden_origin',
    'The request does not come from the console.',
    'Sign in to the console; programs send a key in Authorization, and no cookie.'
  )
}

const isDigestOf = (digest: string, presented: string): boolean =>
  timingSafeEqual(Buffer.from(digest, 'hex'), hash('sha256', presented, 'buffer'))

const ended = (): AdminProblem =>
  new AdminProblem('unauthenticated', 'This session of the console has ended.', 'Sign in again.', {
    headers: { 'WWW-Authenticate': 'Bearer realm="admin"' }
  })
