// HTTP towards an identity provider, which may be hostile or broken: no redirects, no compression, few bytes, little time.

import { request } from 'undici'

export interface FetchInit {
  readonly headers?: Record<string, string>
  readonly signal?: AbortSignal | undefined
}

/** A GET whose answer is complete and bounded when it arrives. Whoever brings another one keeps the same promises. */
export type Fetch = (url: string, init?: FetchInit) => Promise<Response>

export interface FetchLimits {
  readonly maxBytes?: number
  /** For everything together: name, connection, headers, body. */
  readonly timeoutMs?: number
}

/** @throws Error for redirects, compressed, oversized and slow answers, and where there is no connection */
export function createFetch ({ maxBytes = 256 * 1024, timeoutMs = 5000 }: FetchLimits = {}): Fetch {
  return async (url, init = {}) => {
    const timeout = AbortSignal.timeout(timeoutMs)
    const answer = await request(url, {
      headers: { ...init.headers, 'accept-encoding': 'identity' },
      signal: init.signal === undefined ? timeout : AbortSignal.any([timeout, init.signal]),
      // One request in minutes: a kept connection would only be a stale one.
      reset: true
    })
    const bytes = await bounded(answer.body, maxBytes)
    // A redirect could lead to any address that we can reach and the provider cannot.
    if (answer.statusCode >= 300 && answer.statusCode < 400) throw new Error(`${url} redirects, which is not followed; configure the final URL`)
    // Counted bytes say nothing of inflated ones.
    if ((answer.headers['content-encoding'] ?? 'identity') !== 'identity') throw new Error(`${url} answers compressed although told not to`)
    const type = answer.headers['content-type']
    return new Response(answer.statusCode === 204 ? null : bytes, {
      status: answer.statusCode,
      headers: typeof type === 'string' ? { 'content-type': type } : {}
    })
  }
}

/** What the gateway uses. */
export const guardedFetch: Fetch = createFetch()

async function bounded (body: AsyncIterable<Buffer>, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Buffer[] = []
  let size = 0
  // Leaving the loop by a throw destroys the stream and its socket.
  for await (const chunk of body) {
    size += chunk.length
    if (size > maxBytes) throw new Error(`the answer is larger than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return new Uint8Array(Buffer.concat(chunks))
}
