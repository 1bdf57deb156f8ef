// The two seams. Every transport implements exactly one of them: `Client` towards clients, `Upstream` towards servers.

import {
  type ClientCapabilities,
  type Era,
  GatewayError,
  type Implementation,
  type JsonObject,
  type Notification,
  type Request,
  type Result,
  type Revision,
  type ServerCapabilities,
  type ServerRequest,
  type UpstreamName
} from './messages.ts'

export interface ServerRequestOptions {
  /** Aborted when the server withdraws its request. */
  readonly signal?: AbortSignal
  /** Gets `params` of `notifications/progress` about the request, with the server's own token. */
  readonly progress?: (params: JsonObject) => void
  /** The request may not be about the call during which it came: the end of the call does not withdraw it. */
  readonly outlivesCall?: boolean
}

/**
 * Why a request is sent once more, which none is that may have been executed: the server had forgotten the session,
 * refused the credential, the revision or the headers. `stream`: only the rest of its answer is asked for, where the
 * connection broke (2025-11-25 "Resumability and Redelivery").
 */
export type SentAgain = 'session' | 'credential' | 'revision' | 'headers' | 'stream'

/** The client behind one call. */
export interface Client {
  readonly era: Era
  readonly capabilities: ClientCapabilities
  /** The lowest level of log messages that it wants for this call; undefined: none, or the level of its session. */
  readonly logLevel?: LogLevel | undefined
  /** Who is behind it, for quotas on connections that many use. Never sent. Default: whom the connection serves. */
  readonly quotaKey?: string
  /**
   * A long request has left, and is not sent again from what was given. Default: whoever made it keeps it.
   * @param keptBytes of its text that are kept until the server begins to answer
   */
  readonly sent?: ((keptBytes: number) => void) | undefined
  /** The request goes out once more, or its answer is taken up again, at the same server. Never throws. */
  readonly again?: ((why: SentAgain) => void) | undefined
  /** Progress and log messages of this call, in order ahead of its result. Never throws. */
  notify(notification: Notification): void
  /** Elicitation, sampling, roots: resolves with the client's result; rejects with RpcError or GatewayError. */
  ask(request: ServerRequest, options?: ServerRequestOptions): Promise<unknown>
}

/** For requests that the gateway makes for itself, such as listings. */
export const noClient: Client = {
  era: 'legacy',
  capabilities: {},
  notify() {},
  ask: () => Promise.reject(new GatewayError('method_not_found', 'There is no client behind this call.'))
}

/** A session of the legacy era that a server over HTTP has given, as it is kept for the process that comes next. */
export interface UpstreamSession {
  /** Its Mcp-Session-Id. */
  readonly id: string
  readonly revision: Revision
  readonly capabilities: ServerCapabilities
  readonly serverInfo: Implementation
  readonly instructions: string | undefined
  /** What the ids of its requests are made from. */
  readonly secret: string
  /** How many connections had the session before; each has its own range of ids. The name is stored: keep it. */
  readonly turn: number
}

/** Such a session, in which another process may send requests meanwhile. */
export interface LentSession extends UpstreamSession {
  /** Where the ids of its requests begin in the order that `secret` makes. */
  readonly ids: number
}

/** A connection that sends requests in the session of another connection, which alone begins, renews and ends it. */
export interface SessionLoan {
  readonly session: LentSession
  /**
   * The server has forgotten this session (404). @returns the one in its place; undefined where there is none
   * @throws GatewayError upstream_*, unavailable
   */
  renew(forgotten: UpstreamSession['id']): Promise<LentSession | undefined>
  /** The server does not take requests of this connection in it. Nothing was executed. */
  refused(session: UpstreamSession['id']): void
}

/** What connections that have one session say to each other. */
export interface SessionSharing {
  /** Id of the session; undefined: it has none. */
  id(): string | undefined
  /** @param forgotten the server does not know this one any more. @returns undefined: nobody may be in it */
  lend(forgotten?: UpstreamSession['id']): Promise<LentSession | undefined>
  /** Where the lent ids of its requests begin, and how many are left; undefined: the session is its own. */
  series(): { readonly from: number; readonly left: number } | undefined
  /** Is it the id of a request in the series of lent ids that begins there? */
  isIn(from: number, id: unknown): boolean
  /** Takes what another of these connections has heard of the server, outside of the answers to its own requests. */
  hear(message: JsonObject): void
  /** Does a client wait for it? */
  isBusy(): boolean
}

/** Where the session of a connection is kept. None of these rejects: what cannot be read or written is not kept. */
export interface SessionPlace {
  load(): Promise<UpstreamSession | undefined>
  /**
   * Writes it in place of what this connection has read or written last.
   * @returns false where it is not written, or another connection has written meanwhile: a session that others have
   * had may then not be gone on with, since two would give the same ids to their requests
   */
  keep(session: UpstreamSession): Promise<boolean>
  /** No other connection shall go on in it; this one still has it. */
  forget(): void
  /**
   * This connection has the session no more, and forgets it.
   * @param id of the session
   * @returns whether it may be ended at its server: false where another connection has it now, or may have it
   */
  end(id: UpstreamSession['id']): Promise<boolean>
}

/** How a server is spoken to, in the words of the configuration. */
export type Transport = 'stdio' | 'streamable-http' | 'sse'

/** One connection to one MCP server, after its handshake. */
export interface Upstream {
  /** Unique among the connections of all processes. */
  readonly id: string
  readonly name: UpstreamName
  readonly era: Era
  /** Default: nothing is sent to a server. */
  readonly transport?: Transport | undefined
  readonly revision: Revision
  readonly capabilities: ServerCapabilities
  readonly serverInfo: Implementation
  readonly instructions: string | undefined
  /** For how long a modern server says that it offers this (`server/discover`). Default: not at all. */
  readonly discoveryTtlMs?: number | undefined
  /**
   * Do its server requests name the call that they are about, so that several calls may have some at once? Default: no.
   */
  readonly serverRequestsNameCall?: boolean | undefined
  /**
   * Over HTTP in the legacy era: did the server give it a session, without which no response to a server request finds
   * the call that waits for it? Default: no.
   */
  readonly hasSession?: boolean | undefined
  /** Is its session one that another process began, and may have told what is not known here? Default: no. */
  readonly isContinued?: boolean | undefined
  /** Of one that has a session, or is in that of another one. Default: it shares nothing. */
  readonly sharing?: SessionSharing | undefined
  /**
   * Calls that the gateway gave up and the server may still work on: server requests without a call may be about them.
   * @returns resolves when it has answered all of them or no longer can; undefined where there are none
   */
  readonly abandonedCalls?: (() => Promise<void> | undefined) | undefined
  /**
   * Sends the request at most once and resolves with the server's `result`.
   * The transport replaces `params._meta.progressToken` and maps it back, so that `client.notify` gets the client's
   * token. An aborted signal cancels the request at the server. A modern server gets the envelope of 2026-07-28 with
   * `client.capabilities` and `client.logLevel`, and its result has a `resultType` that the client accepts. For
   * `subscriptions/listen`, `client.notify` gets `notifications/subscriptions/acknowledged` first, then the
   * notifications of the stream, without the server's subscription id.
   * @throws RpcError the server's own error; GatewayError upstream_* or cancelled
   */
  request(request: Request, client: Client, signal: AbortSignal): Promise<Result>
  notify(notification: Notification): void
  /** Aborts requests in flight, tells the server, ends its process. Idempotent. */
  close(): Promise<void>
  /** Like `close`, but a session that is kept is left to the process that comes next. Default: `close`. */
  readonly leave?: (() => Promise<void>) | undefined
  /** Stops taking what the server sends outside of calls: the next process takes it. Default: does nothing. */
  readonly stopListening?: (() => void) | undefined
  /** Like `close`, but at once and without telling the server. Idempotent. */
  destroy(reason: Error): void
}

export type ListKind = 'tools' | 'prompts' | 'resources'

/** Who noticed a change of a list: its server, or the gateway, which may have missed one while it could not listen. */
export type NoticedBy = 'server' | 'gateway'

/** What a connection reports to its owner outside of any call. None of these may throw. */
export interface UpstreamEvents {
  listChanged(kind: ListKind, noticedBy: NoticedBy): void
  /** Log messages, resource updates and the like that belong to no call in flight. */
  notification(notification: Notification): void
  /** A server request that names no call: as `Client.ask`, to the owner of the connection. */
  ask(request: ServerRequest, options?: ServerRequestOptions): Promise<unknown>
  /**
   * The server said this outside of the streams of calls. Default: the connection takes it.
   * @returns is it taken elsewhere, now or later?
   */
  overheard?(message: unknown): boolean
  /** The connection ended by itself. At most once; the object is of no use afterwards. */
  closed(reason: Error): void
  /** It serves no new calls any more, whoever ended it. */
  retired?(): void
  /** A line of its standard error, without secrets. @param leftOut lines lost before it @returns no news? */
  stderr?(line: string, leftOut: number): boolean
}

/** What the gateway declares when it opens a connection. */
export interface HandshakeParams {
  readonly clientInfo: Implementation
  /** The era to use where the server supports both. Default `legacy`. */
  readonly era?: Era
  /** Declared to a legacy server once. A modern one gets the capabilities of each request. */
  readonly capabilities: ClientCapabilities
  /**
   * Does the connection serve a single client, so that a server request which names no call must be for that client?
   * Default: where the isolation of the definition is `session`.
   */
  readonly exclusive?: boolean
  /** Over stdio: does a modern server say what changes in the lists of this process? Default: where lists are read. */
  readonly watchesLists?: boolean
  /** The person whose share of the tenant's quota the connection counts for. Never sent. Default: no one person. */
  readonly quotaKey?: string
  /** Where a session that a server over HTTP gives is kept, and taken up. Default: it ends with the connection. */
  readonly place?: SessionPlace | undefined
  /** In place of a handshake. */
  readonly loan?: SessionLoan
}

/** Those of RFC 5424 (specification, server/utilities/logging). */
export const logLevels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const
export type LogLevel = (typeof logLevels)[number]

export function isLogLevel(value: unknown): value is LogLevel {
  return (logLevels as readonly unknown[]).includes(value)
}

/** Does a client that asked for `wanted` and above get a message of this level? Unknown levels always pass. */
export function passesLogLevel(level: unknown, wanted: LogLevel | undefined): boolean {
  return wanted === undefined || !isLogLevel(level) || logLevels.indexOf(level) >= logLevels.indexOf(wanted)
}

export function moreVerboseLevel(a: LogLevel, b: LogLevel): LogLevel {
  return logLevels.indexOf(a) < logLevels.indexOf(b) ? a : b
}
