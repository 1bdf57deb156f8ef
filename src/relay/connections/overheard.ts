// What a server says outside of the answers to calls, in a session in which several processes send calls: one of them
// hears it, and passes on what is about a call of another one.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { createTokenBucket, jsonSizeOf } from '../../limits/limits.ts'
import type { Log } from '../../observe/log.ts'
import { isObject, isRequestId, type JsonObject } from '../../protocol/messages.ts'
import { legacyServerRequests } from '../../protocol/methods.ts'
import type { SessionSharing, Upstream } from '../../protocol/seams.ts'
import type { Bus } from '../../session/bus/bus.ts'
import type { LiveSession, LiveSessions } from '../../session/live-sessions.ts'
import type { Clock } from '../../time/clock.ts'
import { quotaKeyOf } from '../call/call.ts'
import { type Borrowers, createBorrowers } from './borrowers.ts'

/** Of what a server says, other processes are told so much; of a flood the rest stays where it was heard. */
const toldPerSecond = 50
const toldBurst = 500
/** Of one message, in bytes as `jsonSizeOf` counts them: so does a larger one. */
const maxToldBytes = 65_536

/** Which session at which upstream. */
export interface SharedSession {
  /** Of the client's session. */
  readonly key: string
  readonly hash: UpstreamDefinition['hash']
}

export interface Overheard extends SharedSession {
  readonly message: JsonObject
}

/** Of one connection of this process. */
export interface Loans {
  readonly borrowers: Borrowers
  /** Its server asks outside of the streams of calls: whoever has the session has to know which call it can be. */
  asks: boolean
  /** What the borrowers are told. */
  readonly bucket: ReturnType<typeof createTokenBucket>
}

/** @returns the open connection, or one that was given up while calls still run on it */
export type FindConnection = (session: LiveSession, hash: UpstreamDefinition['hash']) => Upstream | undefined

/** @returns those into the session that another process has, or had: the newest first */
export type FindBorrowed = (session: LiveSession, hash: UpstreamDefinition['hash']) => readonly Upstream[]

/** To a client that is not listening these come with the answer of a call. */
const saidToClients = /^notifications\/(?:message|elicitation\/complete)$/

/** These name what they are about. */
const namesCall = ({ method }: JsonObject): boolean =>
  method === 'notifications/progress' || method === 'notifications/cancelled'

/** May other processes be told of it? */
export const isTold = (message: JsonObject): boolean => jsonSizeOf(message, maxToldBytes) <= maxToldBytes

export const newLoans = (clock: Clock): Loans => ({
  borrowers: createBorrowers(clock),
  asks: false,
  bucket: createTokenBucket(clock, toldPerSecond, toldBurst)
})

/** Whom it counts for, and in what it keeps its order. */
export const aboutSession = ({ key, tenant, session }: LiveSession) => ({
  whose: { tenant, caller: quotaKeyOf(session.record.owner) },
  about: key
})

export const isBusy = ({ sharing }: Upstream): boolean => sharing?.isBusy() === true

/** @param borrowed finds also what a process has borrowed before it got the session itself */
export function createOverhearing(
  bus: Bus,
  live: Pick<LiveSessions, 'get'>,
  log: Log,
  own: FindConnection,
  borrowed: FindBorrowed
) {
  /** Exactly one of several may take it. @returns did one whose call it may be about? */
  function takenHere(session: LiveSession, hash: string, message: JsonObject): boolean {
    const busy = borrowed(session, hash).find(isBusy)
    busy?.sharing?.hear(message)
    return busy !== undefined
  }

  bus.serve('take', async (asked) => {
    const { key, hash, message } = asked as Overheard
    const session = live.get(key)
    return session !== undefined && takenHere(session, hash, message)
  })
  bus.hear('overheard', ({ key, hash, message }: Overheard) => {
    const session = live.get(key)
    if (session === undefined) return
    for (const each of namesCall(message) ? borrowed(session, hash) : [own(session, hash)]) each?.sharing?.hear(message)
  })

  /** Asks one process after the other whether it may be about a call of its own. */
  async function isTaken(nodes: readonly string[], session: LiveSession, overheard: Overheard): Promise<boolean> {
    const { tenant } = session
    const { whose } = aboutSession(session)
    for (const node of nodes) {
      const took = await bus.request(node, 'take', whose, overheard).catch((err: unknown) => {
        log.debug({ err, tenant, node }, 'a process did not take what a server said')
        return false
      })
      if (took === true) return true
    }
    return false
  }

  /**
   * The server said this on the stream of the session.
   * @returns true where it is taken: it comes back by `sharing.hear` where nobody else wants it
   */
  return (
    session: LiveSession,
    hash: UpstreamDefinition['hash'],
    sharing: SessionSharing,
    loans: Loans,
    message: JsonObject
  ): boolean => {
    const { method, id, params } = message
    if (typeof method !== 'string') return false
    const nodes = loans.borrowers.nodes()
    const overheard: Overheard = { key: session.key, hash, message }
    const isMuch = (): boolean => !isTold(message) || !loans.bucket.take()

    if (namesCall(message)) {
      for (const each of borrowed(session, hash)) each.sharing?.hear(message)
      const token = isObject(params) ? params['progressToken'] : undefined
      // Who has the question that is withdrawn is not known here.
      const told = method === 'notifications/cancelled' ? nodes : loans.borrowers.ownersOf(token, sharing)
      if (told.length > 0 && !isMuch())
        for (const node of told) void bus.tell(node, 'overheard', overheard, aboutSession(session))
      return false
    }
    const isShared = nodes.length > 0 || borrowed(session, hash).some(isBusy)
    const isQuestion = isRequestId(id) && legacyServerRequests.has(method)
    // Roots are asked for at any time, and answered at once.
    if (isQuestion && isShared && method !== 'roots/list') loans.asks = true
    const isForCall = isQuestion || (saidToClients.test(method) && !session.isListening())
    if (!isForCall || !isShared || sharing.isBusy()) return false
    if (takenHere(session, hash, message)) return true
    if (isMuch()) return false
    void isTaken(nodes, session, overheard).then((taken) => taken || sharing.hear(message))
    return true
  }
}
