// A connection into a session at a server over HTTP that another process lends: what it is opened with, what becomes of
// what the server says outside of calls, and whether that process is there.

import type { Endpoint, HttpDefinition, UpstreamDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import type { Implementation, JsonObject, ServerRequest } from '../../protocol/messages.ts'
import type { LentSession, ServerRequestOptions, Upstream } from '../../protocol/seams.ts'
import type { Bus } from '../../session/bus/bus.ts'
import type { LiveSession, LiveSessions } from '../../session/live-sessions.ts'
import type { Clock } from '../../time/clock.ts'
import type { Pool } from '../../upstream/pool/pool.ts'
import { quotaKeyOf } from '../call/call.ts'
import { createPacedReports } from '../catalog/freshness.ts'
import { declaredAtHandshake } from '../client/declared-capabilities.ts'
import type { LoanAnswer, LoanQuestion } from './lent-sessions.ts'
import { aboutSession, isTold, type Overheard } from './overheard.ts'

export interface Loan {
  readonly session: LiveSession
  readonly definition: HttpDefinition
  /** As the newest call has it. */
  endpoint: Endpoint
  /** The process that lends. */
  home: string
  /** In ms since the epoch. 0: nothing is lent. */
  until: number
  /** When the home may be asked for it. */
  dueAt: number
  /** When it was told last that this process is in its session. */
  heldAt: number
  /** Without a pause of `lentMs`, here or at the home. */
  calls: number
  calledAt: number
  isAsking: boolean
  /** How often the loan has ended: whoever waited for something notices by it that the loan ended meanwhile. */
  ends: number
  /** Id of the upstream session in which the server takes no calls from here. */
  refused: string | undefined
  /** Open ones: the newest, and those before it on which calls still run. */
  readonly connections: Set<Upstream>
}

export const nothingLent = () => ({
  ...{ home: '', until: 0, dueAt: 0, heldAt: 0, calls: 0, calledAt: 0 },
  ...{ isAsking: false, ends: 0, refused: undefined }
})

export interface BorrowedSessionsOptions {
  readonly pool: Pick<Pool, 'acquire' | 'use' | 'peek' | 'leave' | 'release'>
  readonly bus: Bus
  readonly live: Pick<LiveSessions, 'get' | 'onDrop'>
  readonly clientInfo: Implementation
  readonly clock: Clock
  readonly log: Log
  /** A server request on the connection that names no call. */
  readonly ask: (
    session: LiveSession,
    definition: UpstreamDefinition,
    request: ServerRequest,
    options: ServerRequestOptions | undefined
  ) => Promise<unknown>
}

/** None of those that the session has of its own; each upstream has one, as each is lent by itself. */
export const borrowedScopeOf = ({ key }: Pick<LiveSession, 'key'>, { hash }: Pick<HttpDefinition, 'hash'>): string =>
  `borrowed:${key}:${hash}`

export function createBorrowedConnections({ pool, bus, clientInfo, clock, ask }: BorrowedSessionsOptions) {
  /** @throws GatewayError where the home is gone, or does not know the question */
  async function question(
    { session, definition, home, connections }: Loan,
    asked: Partial<LoanQuestion>
  ): Promise<LoanAnswer> {
    const { whose } = aboutSession(session)
    const ids = [...connections].flatMap(({ sharing }) => sharing?.series()?.from ?? [])
    const about = { key: session.key, hash: definition.hash, from: bus.node, ids, ...asked }
    return (await bus.request(home, 'lend', whose, about)) as LoanAnswer
  }

  /** @throws GatewayError upstream_unavailable, too_many */
  async function connect(loan: Loan, lent: LentSession): Promise<Upstream> {
    const { session, definition, endpoint } = loan
    const { record } = session.session
    const said = (message: JsonObject): void => {
      const overheard: Overheard = { key: session.key, hash: definition.hash, message }
      if (isTold(message)) void bus.tell(loan.home, 'overheard', overheard, aboutSession(session))
    }
    const report = createPacedReports(clock, (kinds) => {
      for (const kind of kinds) said({ method: `notifications/${kind}/list_changed` })
    })
    const handshake = {
      clientInfo,
      capabilities: declaredAtHandshake(definition, endpoint, record),
      quotaKey: quotaKeyOf(record.owner),
      loan: {
        session: lent,
        renew: async (forgotten: string) => (await question(loan, { forgotten })).lent,
        refused: (id: string) => void Object.assign(loan, { refused: id, until: 0 })
      }
    }
    return await pool.acquire(definition, borrowedScopeOf(session, definition), handshake, {
      listChanged(kind, noticedBy) {
        if (noticedBy === 'server') report(kind)
      },
      notification: ({ method, params }) => said(params === undefined ? { method } : { method, params }),
      ask: (request, options) => ask(session, definition, request, options),
      closed: () => void (loan.until = 0)
    })
  }

  return { question, connect }
}

/** Looks whether the processes that have lent something are there. */
export function createFollowedHomes({ peers }: Pick<Bus, 'peers'>, onGone: (home: string) => void) {
  const followed = new Map<string, () => void>()
  return {
    follow(home: string): void {
      if (!followed.has(home))
        followed.set(
          home,
          peers.follow(home, () => onGone(home))
        )
    },
    /** Of the others nothing is lent any more. */
    keep(homes: ReadonlySet<string>): void {
      for (const [home, unfollow] of followed) {
        if (homes.has(home)) continue
        followed.delete(home)
        unfollow()
      }
    }
  }
}
