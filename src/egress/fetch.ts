// Requests over HTTP to whoever may be hostile or broken, such as an identity provider: no redirects, no compression,
// few bytes, little time.

import type { Agent } from 'undici'
import { deadline, steadyClock } from '../time/clock.ts'
import type { EgressGuard } from './guard.ts'
import { type Guarded, openedEvent, openSocket } from './sockets.ts'

interface FetchInit {
  /** Default GET. */
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: URLSearchParams | Uint8Array | string | null | undefined
  readonly signal?: AbortSignal | undefined
}

const operatorConnectMs = 10_000

/** The server has answered with a body that is not read: one that is too long, or compressed. */
export class UnreadAnswer extends Error {
  override readonly name = 'UnreadAnswer'
  readonly status: number

  constructor(message: string, status: number) {
    super(message)
    this.status = status
  }
}

/** A request whose response is complete and limited in size. Another implementation must keep the same promises. */
export type Fetch = (url: string, init?: FetchInit) => Promise<Response>

interface FetchOptions {
  readonly maxBytes?: number
  /** The time for everything together: name, connection, headers, body. */
  readonly timeoutMs?: number
  /** The guard that judges addresses. Default: none, because an operator wrote the URL. */
  readonly guard?: EgressGuard
  /** The owner of the URL, by whom the guard counts lookups. */
  readonly owner?: string
  /**
   * Keeps connections, for requests every few seconds. Default: each request has a connection of its own, since a kept
   * one would be stale.
   */
  readonly keepsConnections?: boolean
}

/**
 * @throws UnreadAnswer for compressed and oversized answers; Error for redirects, slow answers, and where there is no
 * connection; EgressRefused for where it may not go
 */
export function createFetch({
  maxBytes = 256 * 1024,
  timeoutMs = 5000,
  guard,
  owner = '',
  keepsConnections = false
}: FetchOptions = {}): Fetch {
  let agent: Agent | undefined
  return async (url, { method = 'GET', headers, body, signal } = {}) => {
    // Loaded by the first of few requests: it takes 5 MB, and a tenth of a second of the start.
    const { request } = await import('undici')
    agent ??= await agentOf({ guarded: guard && { guard, owner }, connectMs: timeoutMs })
    const limit = deadline(steadyClock, timeoutMs, signal)
    try {
      const answer = await request(url, {
        method: method as 'GET' | 'POST',
        ...(body !== undefined && body !== null && { body: body instanceof Uint8Array ? body : String(body) }),
        headers: { ...headers, 'accept-encoding': 'identity' },
        signal: limit.signal,
        dispatcher: agent,
        reset: !keepsConnections
      })
      const { statusCode: status, headers: received } = answer
      const bytes = await bounded(answer.body, maxBytes, status)
      // SSRF: a redirect could lead to any address that the gateway can reach and the provider cannot.
      if (status >= 300 && status < 400)
        throw new Error(`${url} redirects, which is not followed; configure the final URL`)
      // The limit counts bytes as received, which says nothing of their size when inflated.
      if ((received['content-encoding'] ?? 'identity') !== 'identity')
        throw new UnreadAnswer(`${url} answers compressed although told not to`, status)
      const { 'content-type': type, 'cache-control': cache, 'www-authenticate': challenge } = received
      return new Response(status === 204 ? null : bytes, {
        status,
        headers: {
          ...(typeof type === 'string' && { 'content-type': type }),
          ...(typeof cache === 'string' && { 'cache-control': cache }),
          ...(challenge !== undefined && { 'www-authenticate': [challenge].flat().join(', ') })
        }
      })
    } catch (error) {
      throw limit.passed() ? new Error(`${url} did not answer within ${timeoutMs / 1000} s`) : error
    } finally {
      limit.close()
    }
  }
}

/**
 * Requests of somebody to what an operator wrote, and to what is found there.
 * @param owner as of `FetchOptions`
 * @param written URLs of the configuration: to their origins it may go wherever they lead
 * @param publicHosts but not to these hosts, which no operator named
 */
export type FetchFor = (
  owner: string,
  written: ReadonlyArray<string | undefined>,
  publicHosts?: readonly string[]
) => Fetch

/** @param options with the guard of every other URL, such as one found in metadata */
export function createFetchFor(options: Omit<FetchOptions, 'owner'> & { readonly guard: EgressGuard }): FetchFor {
  const { guard: _, ...unguarded } = options
  const anywhere = createFetch(unguarded)
  return (owner, written, publicHosts = []) => {
    const guarded = createFetch({ ...options, owner })
    const free = written.flatMap((url) => (url === undefined ? [] : new URL(url)))
    const origins = new Set(free.filter(({ hostname }) => !publicHosts.includes(hostname)).map(({ origin }) => origin))
    return (url, init) => (origins.has(new URL(url).origin) ? anywhere : guarded)(url, init)
  }
}

async function bounded(
  body: AsyncIterable<Buffer>,
  maxBytes: number,
  status: number
): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Buffer[] = []
  let size = 0
  // A throw out of the loop destroys the stream and its socket.
  for await (const chunk of body) {
    size += chunk.length
    if (size > maxBytes) throw new UnreadAnswer(`the answer is larger than ${maxBytes} bytes`, status)
    chunks.push(chunk)
  }
  return new Uint8Array(Buffer.concat(chunks))
}

async function agentOf({ guarded, connectMs }: { readonly guarded: Guarded | undefined; readonly connectMs: number }) {
  const undici = await import('undici')
  return new undici.Agent({
    connect({ protocol, host, hostname }, callback) {
      const url = new URL(`${protocol}//${host ?? hostname}`)
      const socket = openSocket(url, { guarded })
      const late = steadyClock.timer(connectMs, () =>
        socket.destroy(Object.assign(new Error(`not connected within ${connectMs / 1000} s`), { code: 'ETIMEDOUT' }))
      )
      const failed = (error: Error): void => {
        late.close()
        callback(error, null)
      }
      socket.once('error', failed).once(openedEvent(url), () => {
        late.close()
        socket.off('error', failed)
        callback(null, socket)
      })
    }
  })
}

/**
 * `fetch` for a command of an operator, to where they say: an answer may be a stream without end, and no redirect is
 * followed.
 * @returns throws as the global one
 */
export function createOperatorFetch(): (url: string | URL, init: RequestInit) => Promise<Response> {
  let agent: Agent | undefined
  return async (url, init) => {
    const { fetch } = await import('undici')
    agent ??= await agentOf({ guarded: undefined, connectMs: operatorConnectMs })
    const options = { redirect: 'error', ...init, dispatcher: agent } as Parameters<typeof fetch>[1]
    return await fetch(url, options)
  }
}
