// Every key and channel of the store: what stands there, for how long, and who may lose it. docs/storage.md repeats the table below.
// What a caller supplied enters a key only as a digest of fixed length, so that no name can reach into another's key.

import { hash } from 'node:crypto'

export interface KeyRow {
  readonly kind: string
  /** The parts after the kind, in order; each stands there as its digest. */
  readonly parts: readonly string[]
  readonly value: string
  readonly ttl: string
  readonly loss: string
}

export const keyTable = {
  session: {
    kind: 'session',
    parts: ['tenant', 'endpoint', 'session id'],
    value: 'JSON: owner { tenant, issuer, subject, clientId }, endpoint, seat, revision, clientInfo, capabilities, logLevel, openedAt, touchedAt (epoch ms). Never the session id',
    ttl: 'limits.sessionIdleMs from the last use, at most what is left of limits.sessionMaxMs',
    loss: 'the client gets 404 and opens a new session'
  },
  principalSeat: {
    kind: 'principal-seat',
    parts: ['tenant', 'issuer', 'subject', 'client id', 'seat'],
    value: 'the session that sits on this seat, of as many seats as limits.sessionsPerPrincipal: its key, never its id',
    ttl: 'that of the session',
    loss: 'the caller may open one session more'
  },
  listing: {
    kind: 'listing',
    parts: ['hash of the upstream definition'],
    value: 'JSON: the last tools, prompts, resources and templates that the upstream told under the gateway\'s own credential',
    ttl: '30 days from the last write',
    loss: 'the next start waits for the upstream, up to limits.coldStartMs'
  },
  events: {
    kind: 'events',
    parts: ['key of the session', 'stream id'],
    value: 'log of "sequence number:message as JSON", the last 1,000 and no more than 4 MiB; `end` marks the end of the stream. Holds what was streamed to the client, results of tools included',
    ttl: '10 minutes from the last event; at once for streams that are open when their session ends',
    loss: 'a client that resumes the stream of a call gets 400 and has to ask again'
  },
  tasks: {
    kind: 'tasks',
    parts: ['tenant', 'endpoint', 'issuer', 'subject', 'client id'],
    value: 'log of JSON [upstream, task id there, over stdio: its connection], the last 1,000 tasks that the principal has created',
    ttl: '7 days from the last task',
    loss: 'tasks/list leaves out the tasks created before; their ids stay valid'
  },
  bridgedTask: {
    kind: 'bridged-task',
    parts: ['tenant', 'endpoint', 'issuer', 'subject', 'client id', 'place'],
    value: 'JSON: a task of 2025-11-25 that ended here and not at its upstream of 2026-07-28, since the call was done at once or the client cancelled; with the result of the call, up to 4 MiB of JSON. A caller has 84 places for results, for 36 MiB in all, and 1,024 for cancelled tasks; a new task takes the place of an older one',
    ttl: 'what the task was promised, 10 minutes where there is a result, at most a day',
    loss: 'the client is told that there is no such task; a cancelled one is shown as its upstream has it'
  },
  bridgedTaskCount: {
    kind: 'bridged-task-count',
    parts: ['tenant', 'endpoint', 'issuer', 'subject', 'client id', 'size'],
    value: 'counter: whose turn it is among the places for results of this size',
    ttl: 'a day from the first one',
    loss: 'a task may take the place of one that is not the oldest'
  },
  sealKey: {
    kind: 'seal-key',
    parts: [],
    value: 'base64url of 32 random bytes: the key behind event ids and sealed task ids. A secret',
    ttl: 'kept for good',
    loss: 'ids given out before are no longer accepted'
  }
} as const satisfies Record<string, KeyRow>

/** On this channel: the key of a session that ended, or `=` and the key of one whose record changed. */
export const sessionsChannel = 'sessions'

/** To one process: what others ask it and answer, sealed (session/bus). @param node its name among those on the same store */
export const nodeChannel = (node: string): string => `node:${node}`

/** An upstream that nobody configures any more is forgotten after this time. */
export const listingTtlMs = 30 * 24 * 60 * 60 * 1000

type Kind = typeof keyTable[keyof typeof keyTable]['kind']

/** SHA-256 in base64url, 43 characters. Of UTF-16: in UTF-8 all unpaired surrogates are one, and two names could meet. */
export function digest (part: string): string {
  return hash('sha256', Buffer.from(part, 'utf16le'), 'base64url')
}

/** Different kinds or parts, different keys: digests have one length, and kinds hold no colon. */
export function key (kind: Kind, ...parts: readonly string[]): string {
  return [kind, ...parts.map(digest)].join(':')
}

/**
 * The record of a legacy session: see `keyTable.session`. The tenant is part of the key, so another tenant with the same id reads nothing.
 * The id is there as its digest only: whoever can read the store, or a log of its keys, cannot use a session.
 */
export function sessionKey (tenant: string, endpoint: string, sessionId: string): string {
  return sessionKeys(tenant, endpoint)(sessionId)
}

/** The same for many sessions of one endpoint: its part of the key is made once. */
export function sessionKeys (tenant: string, endpoint: string): (sessionId: string) => string {
  const prefix = key('session', tenant, endpoint)
  return (sessionId) => `${prefix}:${digest(sessionId)}`
}

/** One of the places behind the cap of sessions per principal: see `keyTable.principalSeat`. */
export function principalSeatKey (tenant: string, issuer: string, subject: string, clientId: string, seat: number): string {
  return key('principal-seat', tenant, issuer, subject, clientId, String(seat))
}

/**
 * The last known listing of an upstream: see `keyTable.listing`. Written with `listingTtlMs`.
 * @param upstreamHash UpstreamDefinition.hash, which covers the tenant
 */
export function listingKey (upstreamHash: string): string {
  return key('listing', upstreamHash)
}

/** The events of one stream to a client: see `keyTable.events`. Written with `eventsTtlMs`, the last `eventsKept`. */
export function eventsKey (sessionKey: string, streamId: string): string {
  return key('events', sessionKey, streamId)
}

export const eventsTtlMs = 10 * 60 * 1000
export const eventsKept = 1_000

/** The tasks of a principal: see `keyTable.tasks`. Written with `tasksTtlMs`, the last `tasksKept`. */
export function tasksKey (tenant: string, endpoint: string, issuer: string, subject: string, clientId: string): string {
  return key('tasks', tenant, endpoint, issuer, subject, clientId)
}

export const tasksTtlMs = 7 * 24 * 60 * 60 * 1000
export const tasksKept = 1_000

/** A task that ended here and not at its upstream: see `keyTable.bridgedTask`. */
export function bridgedTaskKey (tenant: string, endpoint: string, issuer: string, subject: string, clientId: string, place: string): string {
  return key('bridged-task', tenant, endpoint, issuer, subject, clientId, place)
}

/** See `keyTable.bridgedTaskCount`. Written with `bridgedTaskCountTtlMs`. */
export function bridgedTaskCountKey (tenant: string, endpoint: string, issuer: string, subject: string, clientId: string, size: string): string {
  return key('bridged-task-count', tenant, endpoint, issuer, subject, clientId, size)
}

export const bridgedTaskCountTtlMs = 24 * 60 * 60 * 1000

/** See `keyTable.sealKey`. */
export const sealKeyKey = key('seal-key')
