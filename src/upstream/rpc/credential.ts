// What a server is shown of who calls, besides the headers of its definition. It changes while a connection lives.

import { randomBytes } from 'node:crypto'
import { type JsonObject, RpcError, rpcCodes } from '../../protocol/messages.ts'
import type { Client, Upstream } from '../../protocol/seams.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { CredentialsRefusedError } from './errors.ts'

export interface UpstreamCredential {
  /** Header lines of each request, as they are sent, each with its line end; empty while there is nothing to show. */
  lines(): string
  /** What the server may repeat, and nobody is told: masked in all that it says. The same array until it changes. */
  secrets(): readonly string[]
  /**
   * @returns resolves once `lines` are good for a request; undefined: they are
   * @throws GatewayError upstream_unavailable where they cannot be had
   */
  ready(signal: AbortSignal): Promise<void> | undefined
  /**
   * The server refused these lines.
   * @returns whether there are others now, with which the request may be sent once more
   */
  refused(lines: string, refusal: CredentialsRefusedError, signal: AbortSignal): Promise<boolean>
  /** What to do where the server refuses it all the same, as the end of a sentence. */
  hint(): string
}

/**
 * The page where a person connects an account or enters a secret.
 * @param person as `Client.quotaKey`: the page is for nobody else
 */
export type ConnectPage = (person: string | undefined) => { readonly url: string; readonly message: string }

/** The person has to connect something first: error -32042 of 2025-11-25, of the gateway's own page. */
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
  /** Never rejects: they are left out then. */
  read(): Promise<readonly JsonObject[]>
  /** @returns what ends it */
  onChange(listener: () => void): () => void
}

export interface UpstreamCredentials {
  /** Is it told who calls, and nobody in particular does? It is not asked then. */
  isForNobody(definition: UpstreamDefinition): boolean
  /** @returns undefined for a definition with which nobody has to connect anything any more */
  pageOf(definition: UpstreamDefinition): ConnectPage | undefined
  /** @returns undefined where those who have not connected it see none. Not given: nowhere do they */
  toolsOfOthers?(definition: UpstreamDefinition): ToolsOfOthers | undefined
  /** @returns undefined where the headers of the definition are all there is */
  of(definition: UpstreamDefinition): UpstreamCredential | undefined
  /** Somebody wanted something of their own upstream. It does not throw, and costs nothing. */
  used(definition: UpstreamDefinition): void
}

/** Lists are read by the gateway, too. */
const wanted = new Set(['tools/call', 'prompts/get', 'resources/read'])

/** Requests of a person's own upstream. */
export const countedRequest =
  (request: Upstream['request'], used: () => void): Upstream['request'] =>
  (outgoing, client, signal) => {
    if (wanted.has(outgoing.method)) used()
    return request(outgoing, client, signal)
  }

/**
 * Runs `send` with a credential that is good, and once more with a new one where the server refuses it: a 401 or 403
 * proves that nothing was executed (RFC 6750 section 3.1).
 * @param maySendAgain asked after a refusal: is what `send` sends still there?
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

/** Requests of a connection whose server is shown the credential. */
export const presentedRequest =
  (credential: UpstreamCredential, request: Upstream['request']): Upstream['request'] =>
  (outgoing, client, signal) => {
    const { sent } = client
    let isHere = true
    let sends = 0
    const watched: Client =
      (sent && {
        ...client,
        sent(keptBytes) {
          isHere = false
          sent(keptBytes)
        }
      }) ||
      client
    return presenting(
      credential,
      signal,
      () => {
        if (sends++ > 0) client.again?.('credential')
        return request(outgoing, watched, signal)
      },
      () => isHere
    )
  }
