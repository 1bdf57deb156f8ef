// The two seams. Every transport implements exactly one of them, and so does every test double: transports number N + M, never N x M.

import type { UpstreamName } from './ids.ts'
import type { LogLevel } from './levels.ts'
import type { ClientCapabilities, Implementation, JsonObject, Notification, Request, Result, ServerCapabilities, ServerRequest } from './messages.ts'
import type { Era, Revision } from './revisions.ts'

export interface AskOptions {
  /** Aborted when the server withdraws its question. */
  readonly signal?: AbortSignal
  /** `params` of `notifications/progress` about the question, with the server's own token. */
  readonly progress?: (params: JsonObject) => void
  /** It only came while the call ran, and may be about something else: the end of the call does not withdraw it. */
  readonly outlives?: boolean
}

/** Whoever asked, as seen from below. One per call. */
export interface Client {
  readonly era: Era
  readonly capabilities: ClientCapabilities
  /** From which level on it wants the log messages of this call; undefined: none, or what its session has said. */
  readonly logLevel?: LogLevel | undefined
  /** Progress and log messages of this call: they ride its own response, in order, ahead of the result. Never throws. */
  notify (notification: Notification): void
  /** Elicitation, sampling, roots: resolves with the client's result; rejects with RpcError or GatewayError. */
  ask (request: ServerRequest, options?: AskOptions): Promise<unknown>
}

/** One connection to one MCP server, after its handshake. */
export interface Upstream {
  readonly name: UpstreamName
  readonly era: Era
  readonly revision: Revision
  readonly capabilities: ServerCapabilities
  readonly serverInfo: Implementation
  readonly instructions: string | undefined
  /** Does what it asks come with the call that it is about, so that several calls may ask at once? Absent: no. */
  readonly namesCalls?: boolean | undefined
  /**
   * Does it still have calls that were given up, and may go on with them? What it asks without naming a call may be about these.
   * @returns resolves when it has answered them, or can no more; undefined where there are none
   */
  readonly owed?: (() => Promise<void> | undefined) | undefined
  /**
   * Sends the request at most once and resolves with the server's `result`.
   * `params._meta.progressToken` is the client's own: the transport puts one of its own in its place and maps back, so that
   * `client.notify` sees the client's token. An aborted signal cancels the request at the server.
   * A modern server is sent the envelope of 2026-07-28 with `client.capabilities` and `client.logLevel`; its result has a `resultType`
   * that the client can take, and `subscriptions/listen` is a request like any other: what comes on it goes to `client.notify`,
   * `notifications/subscriptions/acknowledged` first, without the server's subscription id.
   * @throws RpcError the server's own error; GatewayError upstream_* or cancelled
   */
  request (request: Request, client: Client, signal: AbortSignal): Promise<Result>
  notify (notification: Notification): void
  /** Graceful: what is in flight is aborted, the server is told, the process ends. Idempotent. */
  close (): Promise<void>
  /** Now. Idempotent. */
  destroy (reason: Error): void
}

export type ListKind = 'tools' | 'prompts' | 'resources'

/** What a connection tells its owner outside of any call. None of these may throw. */
export interface UpstreamEvents {
  listChanged (kind: ListKind): void
  /** Log messages, resource updates and the like that belong to no call in flight. */
  notification (notification: Notification): void
  /** The server asks something that names no call: as `Client.ask`, of whoever the connection belongs to. */
  ask (request: ServerRequest, options?: AskOptions): Promise<unknown>
  /** The connection ended and nobody here had asked for it. At most once, after which the object is dead. */
  closed (reason: Error): void
}

/** What we say of ourselves when a connection is opened. */
export interface Handshake {
  readonly clientInfo: Implementation
  /** Which era is meant to serve the caller, where the server speaks both. Default `legacy`. */
  readonly era?: Era
  /** Declared to a legacy server, once for all. A modern one hears of each request's own. */
  readonly capabilities: ClientCapabilities
  /**
   * Does the connection serve one client only, so that a question which names no call can only be about the one in flight? Default: where
   * the definition has isolation `session`.
   */
  readonly exclusive?: boolean
  /** Whose the connection is, opaque: of what a tenant may have, nobody takes all. Never sent. Default: nobody's in particular. */
  readonly share?: string
}
