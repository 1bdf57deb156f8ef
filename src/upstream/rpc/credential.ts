// The credential of a caller that an upstream is sent besides the headers of its definition. It may change while a
// connection is open.

import { randomBytes } from 'node:crypto'
import { type JsonObject, type Request, RpcError, rpcCodes } from '../../protocol/messages.ts'
import { type Client, noClient, type Upstream } from '../../protocol/seams.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { CredentialsRefusedError } from './errors.ts'

export interface UpstreamCredential {
  /** The header lines of each request, as they are sent, each with its line end; empty while there is no credential. */
  lines(): string
  /** The secrets that are masked in everything the server sends. The same array until they change. */
  secrets(): readonly string[]
  /**
   * Makes sure that `lines` are valid.
   * @returns a promise that resolves when they are; undefined: they are valid already
   * @throws GatewayError upstream_unavailable if there is no valid credential
   */
  ready(signal: AbortSignal): Promise<void> | undefined
  /**
   * Called when the server refused these lines.
   * @returns whether there are new lines, with which the request may be sent once more
   */
  refused(lines: string, refusal: CredentialsRefusedError, signal: AbortSignal): Promise<boolean>
  /** The advice for the error message when the server refuses the new lines too, as the end of a sentence. */
  hint(): string
}

/**
 * The page where a person connects an account or enters a secret.
 * @param person as `Client.quotaKey`: the page is for nobody else
 */
export type ConnectPage = (person: string | undefined) => { readonly url: string; readonly message: string }

/**
 * The person has to connect an account or enter a secret first: error -32042 of 2025-11-25, with the gateway's page.
 */
export class ConnectRequiredError extends RpcError {
  readonly elicitation: JsonObject

  constructor(message: string, url: string) {
    const elicitation = { mode: 'url', elicitationId: randomBytes(16).toString('base64url'), url, message }
    const reason = 'connect_required'
    super({ code: rpcCodes.urlElicitationRequired, message, data: { reason, elicitations: [elicitation] } }, reason)
    this.elicitation = elicitation
  }
}

/** The tools of an upstream as somebody else's connection listed them, for those who have not connected it. */
export interface ToolsOfOthers {
  /** Returns the tools; an empty list if they cannot be read. Never rejects. */
  read(): Promise<readonly JsonObject[]>
  /** @returns a function that removes the listener */
  onChange(listener: () => void): () => void
}

export interface UpstreamCredentials {
  /** Whether the upstream needs the identity of a caller and this connection has none: then it is not contacted. */
  isForNobody(definition: UpstreamDefinition): boolean
  /** @returns undefined if the definition needs no account or secret, or has it already */
  pageOf(definition: UpstreamDefinition): ConnectPage | undefined
  /** @returns undefined if people without a connection see no tools of others; without this method none do */
  toolsOfOthers?(definition: UpstreamDefinition): ToolsOfOthers | undefined
  /** @returns undefined if only the headers of the definition are sent */
  of(definition: UpstreamDefinition): UpstreamCredential | undefined
  /** Notes that a person used their own connection. It does not throw and must be cheap. */
  used(definition: UpstreamDefinition): void
}

/** The methods that count as use by a person; lists do not, because the gateway reads them too. */
const wanted = new Set(['tools/call', 'prompts/get', 'resources/read'])

/** Wraps `request` of a person's own connection so that calls are noted by `used`. */
export const countedRequest =
  (request: Upstream['request'], used: () => void): Upstream['request'] =>
  (outgoing, client, signal) => {
    if (wanted.has(outgoing.method)) used()
    return request(outgoing, client, signal)
  }

/**
 * Runs `send` with a valid credential, and once more with a new one if the server refuses it: a 401 or 403 proves that
 * the request was not executed (RFC 6750 section 3.1).
 * @param maySendAgain asked after a refusal: whether the request body is still in memory
 */
export async function presenting<T>(
  credential: UpstreamCredential,
  signal: AbortSignal,
  send: () => Promise<T>,
  maySendAgain = (): boolean => true
): Promise<T> {
  const waiting = credential.ready(signal)
  if (waiting !== undefined) await waiting
  const shown = credential.lines()
  try {
    return await send()
  } catch (error) {
    if (!(error instanceof CredentialsRefusedError)) throw error
    if (!(await credential.refused(shown, error, signal)) || !maySendAgain()) throw explained(credential, error)
    return await send().catch((again: unknown) => {
      throw explained(credential, again)
    })
  }
}

function explained(credential: UpstreamCredential, error: unknown): unknown {
  if (error instanceof CredentialsRefusedError) error.explain(credential.hint())
  return error
}

/** Wraps `request` of a connection whose server is sent the credential. */
export const presentedRequest =
  (credential: UpstreamCredential, request: Upstream['request']): Upstream['request'] =>
  (outgoing, client, signal) => {
    const { sent, ask } = client
    // The arguments of a call that waits for a person must be collectable once they are sent.
    let kept: Request | undefined = outgoing
    let sends = 0
    // `noClient` is told by its identity, and is asked nothing.
    const watched: Client =
      client === noClient
        ? client
        : {
            ...client,
            ...(sent && {
              sent(keptBytes) {
                kept = undefined
                sent(keptBytes)
              }
            }),
            // A server that asks something about a call, on the stream of its answer, has accepted its credential.
            ask(serverRequest, options) {
              if (options?.outlivesCall !== true) kept = undefined
              return ask(serverRequest, options)
            }
          }
    return presenting(
      credential,
      signal,
      () => {
        if (kept === undefined) return Promise.reject(new Error('the request is not kept any more'))
        if (sends++ > 0) client.again?.('credential')
        return request(kept, watched, signal)
      },
      () => kept !== undefined
    )
  }
