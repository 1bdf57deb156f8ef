// What reaches one process and is about what another one holds of the same session: answers to its server requests,
// cancellations, notifications for its servers, messages for the stream that its client listens on.

import { LRUCache } from 'lru-cache'
import { createTokenBucket } from '../../limits/limits.ts'
import { GatewayError, isRequestId, type Notification, type RequestId } from '../../protocol/messages.ts'
import { everyNode } from '../../store/keys.ts'
import type { Clock } from '../../time/clock.ts'
import type { Bus } from '../bus/bus.ts'
import type { BusCaller, BusKind } from '../bus/bus-places.ts'
import { createBusRetries } from '../bus/bus-retries.ts'
import { answerElsewhere, type ClientResponse } from './client-answers.ts'
import type { LiveSession, LiveSessions, SessionStream } from '../live-sessions.ts'
import { createDeliveryGuard, type Delivery, openRemoteStream, type RemoteStream } from './remote-stream.ts'

/** A message of one process to others about a session, by its key. */
interface About<Said> {
  readonly key: string
  readonly said: Said
}

interface Cancellation {
  readonly requestId: unknown
  readonly reason: string | undefined
}

/** The client listens at the process that says so. */
interface Listening {
  readonly attached: boolean
  /** The stream takes the place of the one before. */
  readonly isNew: boolean
  /** Names the stream, among those of its process. Processes of earlier versions do not. */
  readonly name?: string | undefined
}

type SaidOfSession = Cancellation | Notification | Listening | Delivery | undefined

/** Streams at other processes. */
const maxRemoteStreams = 20_000
/** Cancellations of one person that every process is told, because the call is not where they came. */
const tellAllPerSecond = 10
const tellAllBurst = 100
/** Persons whose cancellations are counted. */
const maxTellers = 20_000
/** Of the reason of a cancellation, other processes are told so much. */
const maxReasonChars = 1_024
/** Notifications of a client for the servers of its session, whose connections the home has. */
const forServers = /^notifications\/(?:roots\/list_changed|tasks\/status)$/

interface SessionBusHandlers {
  /** Called when a client is found to listen at another process. */
  readonly listening: (session: LiveSession) => void
  /** Called when a client has sent another process a notification for the servers of its session. */
  readonly notified: (session: LiveSession, notification: Notification) => void
}

export type SessionBus = ReturnType<typeof createSessionBus>

export function createSessionBus(bus: Bus, live: LiveSessions, clock: Clock, handlers: SessionBusHandlers) {
  const { node, shared } = bus
  const remotes = new LRUCache<string, RemoteStream>({ max: maxRemoteStreams })
  const isNewDelivery = createDeliveryGuard(new LRUCache<string, string>({ max: maxRemoteStreams }))
  const tellings = new LRUCache<string, ReturnType<typeof createTokenBucket>>({ max: maxTellers })
  const retries = createBusRetries(bus, clock, () => live.closed)
  let opened = 0
  const nameOf = streamNames()

  /** The person, as everywhere else. */
  const whoseOf = (key: string): BusCaller => live.get(key)?.memory.share ?? { tenant: '', caller: key }

  /** What is of one kind keeps its order within the session. */
  const tell = (to: string, kind: BusKind, key: string, said: SaidOfSession): Promise<boolean> =>
    bus.tell(to, kind, { key, said } satisfies About<SaidOfSession>, {
      whose: whoseOf(key),
      about: `${kind} ${key}`
    })

  /** Otherwise one caller could have every process work for each of its messages. */
  function mayTellAll({ memory: { share } }: LiveSession): boolean {
    const person = `${share.tenant} ${share.caller}`
    const bucket = tellings.get(person) ?? createTokenBucket(clock, tellAllPerSecond, tellAllBurst)
    tellings.set(person, bucket)
    return bucket.take()
  }

  const isLocal = (session: LiveSession): boolean =>
    session.stream !== undefined && session.stream !== remotes.get(session.key)

  /**
   * The client of the session listens here, or not any more: the home of the session sends what is for its stream.
   * @param isNew its stream takes the place of another one
   * @returns when it is on its way, ahead of whatever is told later; never rejects
   */
  async function announce(session: LiveSession, isNew: boolean, attached = session.isListening()): Promise<void> {
    const { home } = session.session.record
    if (!shared || home === node || !isLocal(session)) return
    await tell(home, 'stream', session.key, { attached, isNew, name: nameOf(session.stream) })
  }

  function openRemote(key: string, at: string, name: string | undefined): RemoteStream {
    const options = {
      at,
      name,
      id: `${node}-${++opened}`,
      deliver: (said: Delivery) => tell(at, 'deliver', key, said),
      isClosing: () => live.closed,
      memory: () => live.get(key)?.memory.share,
      // What waited because nobody seemed to listen.
      onHeard: () => live.get(key)?.stream === remote && live.get(key)?.flushListChanges(),
      clock
    }
    const remote: RemoteStream = openRemoteStream(options, () => bus.leftOut(whoseOf(key)))
    return remote
  }

  const settleHere = ({ key, said }: About<ClientResponse>): boolean =>
    live.get(key)?.serverRequests.settle(said) === true
  bus.serve('response', (question) => Promise.resolve(settleHere(question as About<ClientResponse>)))
  bus.hear('response', (refused: About<ClientResponse>) => void settleHere(refused))
  bus.hear('progress', ({ key, said }: About<Notification>) => live.get(key)?.serverRequests.progress(said))
  bus.hear('notification', ({ key, said }: About<Notification>) => {
    const session = live.get(key)
    if (session !== undefined) handlers.notified(session, said)
  })
  bus.hear('cancel', ({ key, said }: About<Cancellation>, from) => {
    const session = live.get(key)
    if (session !== undefined && from !== node) cancelHere(session, said)
  })
  bus.hear('stream', ({ key, said: { attached, isNew, name } }: About<Listening>, from) => {
    const known = remotes.get(key)
    const session = live.get(key)
    const replaces = isNew || known === undefined || known.over || (session !== undefined && !session.isListening())
    if (known?.at === from && !known.over) known.heard(attached, name)
    else if (attached && replaces) remotes.set(key, openRemote(key, from, name))
    if (session === undefined) return
    const remote = remotes.get(key)
    // A stream that another one has replaced says once more that its client has left: nobody listens to it any more.
    if (remote?.at !== from || remote.over) return
    if (session.stream === remote) session.flushListChanges()
    else session.setStream(remote)
    handlers.listening(session)
  })
  bus.hear('home', ({ key }: About<unknown>, home) => {
    const session = live.get(key)
    if (session === undefined || home === node) return
    session.session = { key, record: { ...session.session.record, home } }
    void announce(session, true)
  })
  bus.hear('deliver', ({ key, said }: About<Delivery>) => {
    const session = live.get(key)
    // Of a stream that is elsewhere by now, nothing is sent on: it could go in circles.
    if (session === undefined || !isLocal(session) || !isNewDelivery(key, said)) return
    if ('message' in said) session.stream?.send(said.message)
    // The end of the stream before may come late.
    else if (said.name === undefined || said.name === nameOf(session.stream)) session.stream?.finish()
  })
  live.onCreate((session) => {
    const remote = remotes.get(session.key)
    if (remote?.isAttached() === true) session.setStream(remote)
  })

  return {
    /**
     * A client answers a server request, whichever process has sent it.
     * @throws GatewayError invalid_request where it was not asked, or the process that asked is gone; upstream_lost,
     * unavailable, too_many
     */
    async settle(session: LiveSession, message: ClientResponse): Promise<void> {
      // An error without an id says that something could not be read, and answers nothing (JSON-RPC 2.0, section 5).
      if (session.serverRequests.settle(message) || message.id === undefined) return
      const asker = askerOf(message.id)
      if (!shared || asker === undefined || asker === node) throw notAsked(message.id)
      const { home } = session.session.record
      if (asker === home) bus.peers.wasThere(home)
      const { id } = message
      if (!(await answerElsewhere(retries, asker, session.memory.share, session.key, message, id))) throw notAsked(id)
    },
    /** The progress of a client on a server request. */
    progress(session: LiveSession, notification: Notification): void {
      if (session.serverRequests.progress(notification) || !shared) return
      const asker = askerOf(notification.params?.['progressToken'])
      if (asker !== undefined && asker !== node) void tell(asker, 'progress', session.key, notification)
    },
    /** The call of this id, at whichever process it runs: at the home of the session, if it needs that. */
    cancel(session: LiveSession, given: Cancellation): void {
      if (!isRequestId(given.requestId) || cancelHere(session, given) || !shared) return
      const { home } = session.session.record
      const cancellation = { ...given, reason: given.reason?.slice(0, maxReasonChars) }
      if (mayTellAll(session)) void tell(everyNode, 'cancel', session.key, cancellation)
      else if (home !== node) void tell(home, 'cancel', session.key, cancellation)
    },
    /** A notification that is about no request, to the home of the session. @returns false where that is here */
    notifyHome(session: LiveSession, notification: Notification): boolean {
      const { home } = session.session.record
      if (!shared || home === node) return false
      if (forServers.test(notification.method)) void tell(home, 'notification', session.key, notification)
      return true
    },
    announce,
    retries,
    /** This process is the home of the session from now on: whoever has its stream is to announce that. */
    becameHome(session: LiveSession): void {
      session.expectStream()
      void tell(everyNode, 'home', session.key, undefined)
    }
  }
}

/** @returns what names a stream, alike each time */
function streamNames(): (stream: SessionStream | undefined) => string | undefined {
  const names = new WeakMap<SessionStream, string>()
  let named = 0
  return (stream) => {
    if (stream === undefined) return undefined
    const name = names.get(stream) ?? `${++named}`
    names.set(stream, name)
    return name
  }
}

/** The process that sent a server request, by its id, which is its progress token, too. */
const askerOf = (id: unknown): string | undefined =>
  typeof id === 'string' ? /^([0-9a-f]{8})-\d+$/.exec(id)?.[1] : undefined

/** @returns whether there is such a call here */
function cancelHere({ calls }: LiveSession, { requestId, reason }: Cancellation): boolean {
  const named = [...calls].filter(({ id }) => id === requestId)
  for (const call of named) call.cancel(reason)
  return named.length > 0
}

const notAsked = (id: RequestId | undefined): GatewayError =>
  new GatewayError(
    'invalid_request',
    `No server request of the id ${JSON.stringify(id)} was sent to this session, or its sender is gone. ` +
      'Answer with the id of the request.'
  )
