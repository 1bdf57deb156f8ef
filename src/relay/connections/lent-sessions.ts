// The sessions at servers over HTTP that this process has, as it lends them to other processes: these send calls in
// them without coming here. It stays the only one that begins, renews and ends them, and that hears what their servers
// say outside of the answers to calls; what is about the calls of others it passes on.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import { isObject } from '../../protocol/messages.ts'
import type { LentSession, ListKind, SessionSharing, Upstream } from '../../protocol/seams.ts'
import type { Bus } from '../../session/bus/bus.ts'
import type { LiveSession, LiveSessions } from '../../session/live-sessions.ts'
import type { Clock } from '../../time/clock.ts'
import type { Pool } from '../../upstream/pool/pool.ts'
import { sessionScopeOf } from '../call/call.ts'
import type { OwnLists } from '../catalog/own-lists.ts'
import { createBorrowers, lentMs } from './borrowers.ts'
import {
  createOverhearing,
  type FindBorrowed,
  type FindConnection,
  type Loans,
  newLoans,
  type SharedSession
} from './overheard.ts'

/** What another process wants to know. */
export interface LoanQuestion extends SharedSession {
  /** Id of the upstream session in which it is, and for which it has ids. */
  readonly has?: string | undefined
  /** It sends no new calls, and waits for those that run. */
  readonly isRunning?: boolean
  /** Id of the one that the server does not know any more. */
  readonly forgotten?: string | undefined
  /** Where the series of ids begin that its requests have. An earlier version says nothing of it. */
  readonly ids?: readonly number[]
}

/**
 * `lent`: the session. `same`: the borrower has it already. Neither: calls go to the home; with `soon` only until the
 * home has opened a connection that it can lend.
 */
export interface LoanAnswer {
  readonly lent?: LentSession | undefined
  readonly same?: boolean
  /** An earlier version does not say it. */
  readonly soon?: boolean
}

/** Of a process that stops: answered when no call runs in a session of it any more. */
export interface Recall {
  readonly home: string
}

const kinds: readonly ListKind[] = ['tools', 'prompts', 'resources']

interface BorrowersQuestion extends LoanQuestion {
  /** The process that asks. */
  readonly from: string
}

export type LentSessions = ReturnType<typeof createLentSessions>

export function createLentSessions(
  pool: Pick<Pool, 'lent'>,
  bus: Bus,
  live: Pick<LiveSessions, 'get' | 'use'>,
  { clock, log }: { readonly clock: Clock; readonly log: Log }
) {
  const loans = new WeakMap<SessionSharing, Loans>()
  /** Of all connections. */
  const borrowers = createBorrowers(clock)
  let isRecalled = false
  let overhear: ReturnType<typeof createOverhearing> = () => false

  function loansOf(sharing: SessionSharing): Loans {
    const known = loans.get(sharing) ?? newLoans(clock)
    loans.set(sharing, known)
    return known
  }

  async function answer(question: BorrowersQuestion, upstream: Upstream, hasOwnLists: boolean): Promise<LoanAnswer> {
    const { key, from, has, isRunning, forgotten, ids = [] } = question
    const { sharing } = upstream
    if (sharing === undefined) return {}
    const known = loansOf(sharing)
    const isNew = forgotten === undefined && isRunning !== true
    if (isNew && (isRecalled || hasOwnLists || known.asks)) return {}
    // One that was given up ends with the calls that run in its session.
    if (!pool.lent(upstream, sessionScopeOf(key), lentMs, isNew)) return { soon: true }
    const isSame = forgotten === undefined && has !== undefined && has === sharing.id()
    const lent = isSame ? undefined : await sharing.lend(forgotten)
    if (lent === undefined && !isSame) return {}
    known.borrowers.note(from, lent === undefined ? ids : [...ids, lent.ids])
    borrowers.note(from, [])
    return isSame ? { same: true } : { lent }
  }

  return {
    /**
     * Before this process stops: lends no more, and asks for what is lent.
     * @returns how many processes still have calls in sessions of this one: it listens to their servers
     */
    recall(): () => number {
      isRecalled = true
      const nodes = new Set(borrowers.nodes())
      for (const node of nodes)
        void bus
          .request(node, 'recall', { tenant: '', caller: bus.node }, { home: bus.node } satisfies Recall)
          .catch((err: unknown) => log.debug({ err, node }, 'a process did not say that its calls have ended'))
          .finally(() => nodes.delete(node))
      return () => nodes.size
    },
    /**
     * Answers what other processes ask of sessions, and takes what these overhear.
     * @param own finds the connection of a client's session that lives here
     * @param lists a session that sees other lists than the rest finds its tools here alone
     */
    serve(own: FindConnection, borrowed: FindBorrowed, lists: Pick<OwnLists, 'has'>): void {
      overhear = createOverhearing(bus, live, log, own, borrowed)
      bus.serve('lend', async (asked) => {
        const question = asked as BorrowersQuestion
        const { key, hash } = question
        const session = live.get(key)
        const upstream = session && own(session, hash)
        // The next call that comes here opens the connection.
        if (session?.session.record.home !== bus.node || upstream === undefined) return { soon: !isRecalled }
        // Its client is there, although its calls do not come here.
        live.use(session.session, session.memory.share)
        const hasOwnLists = kinds.some((kind) => lists.has(key, hash, kind))
        return await answer(question, upstream, hasOwnLists)
      })
    },
    /**
     * The server said this on the stream of the session.
     * @returns true where it is taken: it comes back by `sharing.hear` where nobody else wants it
     */
    overheard(
      session: LiveSession | undefined,
      hash: UpstreamDefinition['hash'],
      sharing: SessionSharing | undefined,
      message: unknown
    ): boolean {
      if (session === undefined || sharing === undefined || !isObject(message)) return false
      return overhear(session, hash, sharing, loansOf(sharing), message)
    }
  }
}
