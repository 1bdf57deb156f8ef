// JSON-RPC messages out of the standard output of a child. Servers print banners and debug lines there although they
// must not (2025-11-25 basic/transports "stdio"): such lines are left out, until there are too many.

import { createTokenBucket } from '../../limits/token-bucket.ts'
import { isObject } from '../../protocol/messages.ts'
import { decodeJson, idIn, printable } from '../rpc/decode-json.ts'
import { uncertainError } from '../rpc/errors.ts'
import { createLineReader } from './line-reader.ts'
import type { StdioDefinition } from '../../config/snapshot.ts'
import type { RpcClient } from '../rpc/rpc-client.ts'
import type { LinkContext } from '../rpc/transport.ts'
import type { Mask } from './mask-secrets.ts'

export interface MessageReaderOptions {
  readonly definition: StdioDefinition
  readonly link: LinkContext
  readonly mask: Mask
  /** Gets the messages. */
  readonly rpc: RpcClient
  /** Too many lines are no messages. */
  flooded(reason: Error): void
}

export interface MessageReader {
  push(chunk: Buffer): void
  /** Nothing is read after this. */
  stop(): void
}

/** Debug prints of a busy server pass; what goes on above this rate would keep us from the messages of others. */
const strayPerSecond = 200
const strayBurst = 10_000
/** Enough of a line to mask what is secret in it, and to show what it is. */
const sampleBytes = 4_096
const sampleLength = 200

export function createMessageReader({ definition, link, mask, rpc, flooded }: MessageReaderOptions): MessageReader {
  const { name, maxMessageBytes } = definition
  const { warnings } = link
  const bucket = createTokenBucket(link.clock, strayPerSecond, strayBurst)
  let stopped = false

  function countStray(): void {
    if (bucket.take()) return
    const text =
      `Upstream ${name} floods its standard output with lines that are no messages, so its process was ended: ` +
      'it has to write its log to standard error.'
    flooded(uncertainError(name, 'upstream_protocol', text))
  }

  const lines = createLineReader({
    maxBytes: maxMessageBytes,
    line(line) {
      if (stopped) return
      let message: unknown
      try {
        message = decodeJson(line)
      } catch (error) {
        const sample = printable(mask(line.toString('utf8', 0, sampleBytes)), sampleLength)
        const { message: reason } = error as Error
        warnings.warn({ line: sample, reason }, 'left out a line of the upstream that is no message')
        return countStray()
      }
      rpc.receive(message)
      if (!isObject(message) && !Array.isArray(message)) countStray()
    },
    tooLong(head, tail) {
      if (stopped) return
      warnings.warn({ maxMessageBytes }, 'left out a message of the upstream that is too large')
      const id = idIn(head.toString('latin1'), tail.toString('latin1')) ?? rpc.onlyOpen()
      const text = `The answer of upstream ${name} is larger than its limit of ${maxMessageBytes} bytes.`
      if (id !== undefined) rpc.fail(id, uncertainError(name, 'upstream_protocol', text))
      countStray()
    }
  })

  return {
    push: lines.push,
    stop() {
      stopped = true
    }
  }
}
