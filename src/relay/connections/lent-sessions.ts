// The sessions at servers over HTTP that this process has, as it lends them to other processes: these send calls in
// them without coming here. It stays the only one that begins, renews and ends them, and that hears what their servers
// say outside of the answers to calls; what is about the calls of others it passes on.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { createTokenBucket } from '../../limits/limits.ts'
import type { Log } from '../../observe/log.ts'
import { isObject, isRequestId, type JsonObject } from '../../protocol/messages.ts'
import { legacyServerRequests } from '../../protocol/methods.ts'
import type { LentSession, ListKind, SessionSharing, Upstream } from '../../protocol/seams.ts'
import type { Bus } from '../../session/bus/bus.ts'
import type { LiveSession, LiveSessions } from '../../session/live-sessions.ts'
import type { Clock } from '../../time/clock.ts'
import type { Pool } from '../../upstream/pool/pool.ts'
import { quotaKeyOf, sessionScopeOf } from '../call/call.ts'
import type { OwnLists } from '../catalog/own-lists.ts'

/** Of the process that sends calls in a session of this one: it is asked again before half of it is over. */
export const lentMs = 10_000

/** Which session at which upstream. */
export interface SharedSession {
  /** Of the client's session. */
  readonly key: string
  readonly hash: UpstreamDefinition['hash']
}

/** Of what a server says, other processes are told so much; of a flood the rest stays here. */
const toldPerSecond = 50
const toldBurst = 500

/** What another process wants to know. */
export interface LoanQuestion extends SharedSession {
  /** Id of the upstream session in which it is, and for which it has ids. */
  readonly has?: string | undefined
  /** It sends no new calls, and waits for those that run. */
  readonly isRunning?: boolean
  /** Id of the one that the server does not know any more. */
  readonly forgotten?: string | undefined
}

/** `same`: as it has it. Neither: the call has to come here. */
export interface LoanAnswer {
  readonly lent?: LentSession | undefined
  readonly same?: boolean
}

/** Of a process that stops: answered when no call runs in a session of it any more. */
export interface Recall {
  readonly home: string
}

/** What the server said, outside of the answers to calls. */
export interface Overheard extends SharedSession {
  readonly message: JsonObject
}

const kinds: readonly ListKind[] = ['tools', 'prompts', 'resources']
/** To a client that is not listening these come with the answer of a call. */
const saidToClients = /^notifications\/(?:message|elicitation\/complete)$/
/** These name what they are about. */
const toldAll = /^notifications\/(?:progress|cancelled)$/

interface BorrowersQuestion extends LoanQuestion {
  /** The process that asks. */
  readonly from: string
}

/** Of one connection. */
interface Loans {
  /** Processes that are in its session, and until when. */
  readonly borrowers: Map<string, number>
  /** Its server asks outside of the streams of calls: whoever has the session has to know which call it can be. */
  asks: boolean
  /** What they are told. */
  readonly bucket: ReturnType<typeof createTokenBucket>
}

/** @returns the open connection, or one that was given up while calls still run on it */
type FindConnection = (session: LiveSession, hash: UpstreamDefinition['hash']) => Upstream | undefined

export type LentSessions = ReturnType<typeof createLentSessions>

export function createLentSessions(
  pool: Pick<Pool, 'lent'>,
  bus: Bus,
  live: Pick<LiveSessions, 'get' | 'use'>,
  { clock, log }: { readonly clock: Clock; readonly log: Log }
) {
  const loans = new WeakMap<SessionSharing, Loans>()
  /** Processes that are in any session of this one, and until when. */
  const allBorrowers = new Map<string, number>()
  let isRecalled = false

  function loansOf(sharing: SessionSharing): Loans {
    const known = loans.get(sharing)
    if (known !== undefined) return known
    const none: Loans = {
      borrowers: new Map(),
      asks: false,
      bucket: createTokenBucket(clock, toldPerSecond, toldBurst)
    }
    loans.set(sharing, none)
    return none
  }

  function present(borrowers: Map<string, number>): string[] {
    const now = clock.now()
    for (const [node, until] of borrowers) if (until <= now) borrowers.delete(node)
    return [...borrowers.keys()]
  }

  async function answer(question: BorrowersQuestion, upstream: Upstream, hasOwnLists: boolean): Promise<LoanAnswer> {
    const { key, from, has, isRunning, forgotten } = question
    const { sharing } = upstream
    const known = sharing && loansOf(sharing)
    const isNew = forgotten === undefined && isRunning !== true
    if (known === undefined || (isNew && (isRecalled || hasOwnLists || known.asks))) return {}
    const isSame = forgotten === undefined && has !== undefined && has === sharing?.id()
    const lent = isSame ? undefined : await sharing?.lend(forgotten)
    if (lent === undefined && !isSame) return {}
    pool.lent(upstream, sessionScopeOf(key), lentMs)
    for (const each of [known.borrowers, allBorrowers]) each.set(from, clock.now() + lentMs)
    return isSame ? { same: true } : { lent }
  }

  /** Asks one process after the other whether the request may be about a call of its own. */
  async function giveAway(nodes: readonly string[], session: LiveSession, overheard: Overheard): Promise<boolean> {
    const { tenant } = session
    const whose = { tenant, caller: quotaKeyOf(session.session.record.owner) }
    for (const node of nodes) {
      const isTaken = await bus.request(node, 'take', whose, overheard).catch((err: unknown) => {
        log.debug({ err, tenant, node }, 'a process did not take what a server asked')
        return false
      })
      if (isTaken === true) return true
    }
    return false
  }

  return {
    /**
     * Before this process stops: lends no more, and asks for what is lent.
     * @returns how many processes still have calls in sessions of this one: it listens to their servers
     */
    recall(): () => number {
      isRecalled = true
      const nodes = new Set(present(allBorrowers))
      for (const node of nodes)
        void bus
          .request(node, 'recall', { tenant: '', caller: bus.node }, { home: bus.node } satisfies Recall)
          .catch((err: unknown) => log.debug({ err, node }, 'a process did not say that its calls have ended'))
          .finally(() => nodes.delete(node))
      return () => nodes.size
    },
    /**
     * Answers what other processes ask of sessions, and takes what these overhear.
     * @param own finds the connection of a client's session that lives here, borrowed that of one that lives elsewhere
     * @param lists a session that sees other lists than the rest finds its tools here alone
     */
    serve(own: FindConnection, borrowed: FindConnection, lists: Pick<OwnLists, 'has'>): void {
      bus.serve('lend', async (asked) => {
        const question = asked as BorrowersQuestion
        const { key, hash } = question
        const session = live.get(key)
        const upstream = session && own(session, hash)
        if (session?.session.record.home !== bus.node || upstream === undefined) return {}
        // Its client is there, although its calls do not come here.
        live.use(session.session, session.memory.share)
        const hasOwnLists = kinds.some((kind) => lists.has(key, hash, kind))
        return await answer(question, upstream, hasOwnLists)
      })
      bus.serve('take', async (asked) => {
        const { key, hash, message } = asked as Overheard
        const session = live.get(key)
        const sharing = session && borrowed(session, hash)?.sharing
        if (sharing?.isBusy() !== true) return false
        sharing.hear(message)
        return true
      })
      bus.hear('overheard', ({ key, hash, message }: Overheard) => {
        const session = live.get(key)
        const upstream = session && (own(session, hash) ?? borrowed(session, hash))
        upstream?.sharing?.hear(message)
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
      const { method, id } = message
      if (typeof method !== 'string') return false
      const known = loansOf(sharing)
      const nodes = present(known.borrowers)
      const isBusy = sharing.isBusy()
      const isQuestion = isRequestId(id) && legacyServerRequests.has(method)
      // Roots are asked for at any time, and answered at once.
      if (isQuestion && method !== 'roots/list' && (isBusy || nodes.length > 0)) known.asks = true
      if (nodes.length === 0 || !known.bucket.take()) return false
      const overheard: Overheard = { key: session.key, hash, message }
      const tellAll = (): void => nodes.forEach((node) => void bus.tell(node, 'overheard', overheard))
      if (toldAll.test(method)) tellAll()
      if (isBusy) return false
      if (isQuestion) void giveAway(nodes, session, overheard).then((isTaken) => isTaken || sharing.hear(message))
      else if (saidToClients.test(method) && !session.isListening()) tellAll()
      else return false
      return true
    }
  }
}
