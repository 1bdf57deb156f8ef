// The body of a request to an upstream that is let go of while its answer is awaited.

import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'

/** Nothing of the body is left once it was read. */
export function readOnce(headers: string[], body: string): Pick<Dispatcher.DispatchOptions, 'headers' | 'body'> {
  const bytes = Buffer.from(body)
  const parts = [bytes, null]
  return {
    headers: [...headers, 'content-length', String(bytes.length)],
    body: new Readable({
      read() {
        for (const part of parts.splice(0)) this.push(part)
      }
    })
  }
}
