// Every key and channel of the store: what stands there, for how long, and who may lose it. docs/storage.md repeats the
// table below. What a caller supplied enters a key only as a digest of fixed length: no name can reach into the key of
// another.

import { hash } from 'node:crypto'

export interface KeyRow {
  readonly kind: string
  /** The parts after the kind, in order, each as its digest. */
  readonly parts: readonly string[]
  readonly value: string
  readonly ttl: string
  readonly loss: string
}

export const keyTable = {
  session: {
    kind: 'session',
    parts: ['tenant', 'endpoint', 'session id'],
    value:
      'JSON: owner { tenant, issuer, subject, clientId }, endpoint, seat, revision, clientInfo, capabilities, ' +
      'logLevel, openedAt, touchedAt (epoch ms). Never the session id',
    ttl: 'limits.sessionIdleMs from the last use, at most what is left of limits.sessionMaxMs',
    loss: 'the client gets 404 and opens a new session'
  },
  principalSeat: {
    kind: 'principal-seat',
    parts: ['tenant', 'issuer', 'subject', 'client id', 'seat'],
    value: 'the session that has this slot, one of limits.sessionsPerPrincipal: its key, never its id',
    ttl: 'that of the session',
    loss: 'the caller may open one session more'
  },
  listing: {
    kind: 'listing',
    parts: ['hash of the upstream definition'],
    value:
      "JSON: the last tools, prompts, resources and templates that the upstream told under the gateway's own " +
      'credential',
    ttl: '30 days from the last write',
    loss: 'the next start waits for the upstream, up to limits.coldStartMs'
  },
  events: {
    kind: 'events',
    parts: ['key of the session', 'stream id'],
    value:
      'log of "sequence number:message as JSON", the last 1,000 and no more than 4 MiB; `end` marks the end of the ' +
      'stream. Holds what was streamed to the client, results of tools included',
    ttl: '10 minutes from the last event; at once for streams that are open when their session ends',
    loss: 'a client that resumes the stream of a call gets 400 and has to ask again'
  },
  tasks: {
    kind: 'tasks',
    parts: ['tenant', 'endpoint', 'issuer', 'subject', 'client id'],
    value:
      'log of JSON [upstream, task id there, over stdio: its connection], the last 1,000 tasks that the principal ' +
      'has created',
    ttl: '7 days from the last task',
    loss: 'tasks/list leaves out the tasks created before; their ids stay valid'
  },
  bridgedTask: {
    kind: 'bridged-task',
    parts: ['tenant', 'endpoint', 'issuer', 'subject', 'client id', 'place'],
    value:
      'JSON: a task of 2025-11-25 that ended here and not at its upstream of 2026-07-28, since the call was done at ' +
      'once or the client cancelled; with the result of the call, up to 4 MiB of JSON. A caller has 84 places ' +
      'for results, for 36 MiB in all, and 1,024 for cancelled tasks; a new task takes the place of an older one',
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

/**
 * The channel of one process, for sealed messages of the others (session/bus-messages).
 * @param node its name, unique on the store
 */
export const nodeChannel = (node: string): string => `node:${node}`

export const listingTtlMs = 30 * 24 * 60 * 60 * 1000
export const eventsTtlMs = 10 * 60 * 1000
export const eventsKept = 1_000
export const tasksTtlMs = 7 * 24 * 60 * 60 * 1000
export const tasksKept = 1_000
export const bridgedTaskCountTtlMs = 24 * 60 * 60 * 1000

/**
 * SHA-256 in base64url, 43 characters. Of UTF-16: in UTF-8 all unpaired surrogates are one, and two names could meet.
 */
export function digest(part: string): string {
  return hash('sha256', Buffer.from(part, 'utf16le'), 'base64url')
}

/** Different kinds or parts, different keys: digests have one length, and kinds hold no colon. */
export function key(kind: (typeof keyTable)[keyof typeof keyTable]['kind'], ...parts: readonly string[]): string {
  return [kind, ...parts.map(digest)].join(':')
}

/** @returns what makes keys of this row from its parts, in the order of the table */
const keyMaker =
  <Parts extends readonly string[]>({ kind }: { kind: Parameters<typeof key>[0]; parts: Parts }) =>
  (...parts: { readonly [At in keyof Parts]: string }): string =>
    key(kind, ...parts)

/**
 * The keys of the sessions of one endpoint. The tenant is part of the key, so another tenant with the same id reads
 * nothing. The id is there as its digest only: whoever can read the store, or a log of its keys, cannot use a session.
 */
export function sessionKeys(tenant: string, endpoint: string): (sessionId: string) => string {
  const prefix = key('session', tenant, endpoint)
  return (sessionId) => `${prefix}:${digest(sessionId)}`
}

export const principalSeatKey = keyMaker(keyTable.principalSeat)
export const listingKey = keyMaker(keyTable.listing)
export const eventsKey = keyMaker(keyTable.events)
export const tasksKey = keyMaker(keyTable.tasks)
export const bridgedTaskKey = keyMaker(keyTable.bridgedTask)
export const bridgedTaskCountKey = keyMaker(keyTable.bridgedTaskCount)
export const sealKeyKey = key('seal-key')
