// HTTP requests to an identity provider, which may be hostile or broken: no redirects, no compression, few bytes,
// little time.

import { request } from 'undici'
import { deadline, steadyClock } from '../time/clock.ts'

interface FetchInit {
  readonly headers?: Record<string, string>
  readonly signal?: AbortSignal | undefined
}

/** A GET whose response is complete and limited in size. Another implementation must keep the same promises. */
export type Fetch = (url: string, init?: FetchInit) => Promise<Response>

export interface FetchLimits {
  readonly maxBytes?: number
  /** For everything together: name, connection, headers, body. */
  readonly timeoutMs?: number
}

/** @throws Error for redirects, compressed, oversized and slow answers, and where there is no connection */
export function createFetch({ maxBytes = 256 * 1024, timeoutMs = 5000 }: FetchLimits = {}): Fetch {
  return async (url, init = {}) => {
    const limit = deadline(steadyClock, timeoutMs, init.signal)
    try {
      return await get(url, init.headers, maxBytes, limit.signal)
    } catch (error) {
      throw limit.passed() ? new Error(`${url} did not answer within ${timeoutMs / 1000} s`) : error
    } finally {
      limit.close()
    }
  }
}

async function get(
  url: string,
  headers: FetchInit['headers'],
  maxBytes: number,
  signal: AbortSignal
): Promise<Response> {
  const answer = await request(url, {
    headers: { ...headers, 'accept-encoding': 'identity' },
    signal,
    // One request in minutes: a kept-alive connection would be stale.
    reset: true
  })
  const bytes = await bounded(answer.body, maxBytes)
  // SSRF: a redirect could lead to any address that the gateway can reach and the provider cannot.
  if (answer.statusCode >= 300 && answer.statusCode < 400)
    throw new Error(`${url} redirects, which is not followed; configure the final URL`)
  // The limit counts bytes as received, which says nothing of their size when inflated.
  if ((answer.headers['content-encoding'] ?? 'identity') !== 'identity')
    throw new Error(`${url} answers compressed although told not to`)
  const type = answer.headers['content-type']
  return new Response(answer.statusCode === 204 ? null : bytes, {
    status: answer.statusCode,
    headers: typeof type === 'string' ? { 'content-type': type } : {}
  })
}

async function bounded(body: AsyncIterable<Buffer>, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Buffer[] = []
  let size = 0
  // A throw out of the loop destroys the stream and its socket.
  for await (const chunk of body) {
    size += chunk.length
    if (size > maxBytes) throw new Error(`the answer is larger than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return new Uint8Array(Buffer.concat(chunks))
}
