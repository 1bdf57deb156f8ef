// One HTTP request to an upstream and the reading of its answer, JSON or SSE. It says how the request ended: whether it was sent at
// all decides what the caller may be told. It repeats nothing and follows nothing.

import { Readable } from 'node:stream'
import { decodeJson, printable } from './decode.ts'
import { createPile } from './pile.ts'
import { createEventReader } from './sse.ts'
import { isObject } from '../protocol/messages.ts'
import type { Dispatcher } from 'undici'
import type { EventReader, EventSink } from './sse.ts'

export type Outcome =
  /** 2xx, read to its end. */
  | { readonly kind: 'answered', readonly status: number, readonly streamed: boolean }
  /** Any other status; `detail`: the message of a JSON-RPC error in the body, if there was one. */
  | { readonly kind: 'refused', readonly status: number, readonly body: unknown, readonly detail: string }
  /** Not a byte of it was sent. */
  | { readonly kind: 'unsent', readonly cause: Error }
  /** It broke after it may have been sent. */
  | { readonly kind: 'broken', readonly cause: Error, readonly streamed: boolean }
  /** The answer is not what it should be. */
  | { readonly kind: 'garbled', readonly reason: string }

export interface DeliverySink extends EventSink {
  /** A 2xx answer begins; before any message. */
  begin (sessionId: string | undefined, streamed: boolean): void
  /** Exactly once, unless it was aborted. */
  end (outcome: Outcome): void
}

export interface DeliveryOptions {
  readonly dispatcher: Dispatcher
  readonly path: string
  readonly method: 'POST' | 'GET' | 'DELETE'
  /** Names and values in turn. */
  readonly headers: string[]
  readonly body: string | null
  readonly maxBytes: number
  /** `status`: what an answer says besides its status is of no interest, whatever its type. Default `messages`. */
  readonly wants?: 'messages' | 'status'
}

/** Stops reading; the sink hears nothing any more. Idempotent. */
export type Abort = () => void

/** Enough of a refusal to explain it. */
const maxRefusalBytes = 65_536
/** undici keeps a body until the answer has been read to its end, which may take as long as a person thinks. */
const maxKeptBody = 16_384
const aborted = new Error('no longer wanted')

export function deliver (options: DeliveryOptions, sink: DeliverySink): Abort {
  const { dispatcher, path, method, headers, body, maxBytes, wants = 'messages' } = options
  let controller: Dispatcher.DispatchController | undefined
  let over = false
  let status = 0
  let reader: EventReader | undefined
  let json = false
  const pile = createPile()

  function end (outcome: Outcome): void {
    if (over) return
    over = true
    sink.end(outcome)
  }

  function giveUp (reason: string): void {
    end({ kind: 'garbled', reason })
    controller?.abort(aborted)
  }

  dispatcher.dispatch({ path, method, ...body !== null && body.length > maxKeptBody ? once(headers, body) : { headers, body } }, {
    onRequestStart (started) {
      controller = started
      if (over) started.abort(aborted)
    },

    onResponseStart (_controller, statusCode, head) {
      if (over || statusCode < 200) return
      status = statusCode
      if (status > 299 || wants === 'status') return
      const encoding = head['content-encoding']
      // We asked for identity: anything else could be a bomb, whose size only shows when it has gone off.
      if (encoding !== undefined && encoding !== 'identity') return giveUp('it is compressed although identity was asked for')
      const type = String(head['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase()
      json = type === 'application/json'
      const sessionId = head['mcp-session-id']
      const streamed = type === 'text/event-stream'
      sink.begin(typeof sessionId === 'string' ? sessionId : undefined, streamed)
      if (streamed) reader = createEventReader(maxBytes, sink)
    },

    onResponseData (_controller, chunk) {
      if (over) return
      if (reader !== undefined) {
        try {
          reader.push(chunk)
        } catch (error) {
          giveUp((error as Error).message)
        }
        return
      }
      pile.add(chunk)
      const refused = status > 299
      if (pile.size > (refused || wants === 'status' ? maxRefusalBytes : maxBytes)) {
        if (refused) end({ kind: 'refused', status, body: undefined, detail: '' })
        else if (wants === 'status') end({ kind: 'answered', status, streamed: false })
        else return giveUp(`it is larger than ${maxBytes} bytes`)
        controller?.abort(aborted)
      }
    },

    onResponseEnd () {
      if (over) return
      if (status > 299) return end(refusal(status, pile.take()))
      if (reader !== undefined) return end({ kind: 'answered', status, streamed: true })
      if (pile.size === 0 || status === 202 || status === 204 || wants === 'status') return end({ kind: 'answered', status, streamed: false })
      if (!json) return end({ kind: 'garbled', reason: 'its Content-Type is neither application/json nor text/event-stream' })
      let value: unknown
      try {
        value = decodeJson(pile.take())
      } catch (error) {
        return end({ kind: 'garbled', reason: `its body is ${(error as Error).message}` })
      }
      sink.message(value)
      end({ kind: 'answered', status, streamed: false })
    },

    onResponseError (_controller, cause) {
      if (over) return
      if (controller === undefined) return end({ kind: 'unsent', cause })
      // Once the answer has begun, the same error means that it was cut short.
      if (status === 0 && isParserError(cause)) return end({ kind: 'garbled', reason: 'it is not HTTP' })
      // The status line alone says that the request was refused.
      if (status > 299) return end(refusal(status, Buffer.alloc(0)))
      if (status > 0 && wants === 'status') return end({ kind: 'answered', status, streamed: false })
      end({ kind: 'broken', cause, streamed: reader !== undefined })
    }
  })

  return () => {
    if (over) return
    over = true
    controller?.abort(aborted)
  }
}

/** Nothing of it is left once it was read. */
function once (headers: string[], body: string): Pick<Dispatcher.DispatchOptions, 'headers' | 'body'> {
  const parts = [Buffer.from(body), null]
  return {
    headers: [...headers, 'content-length', String(Buffer.byteLength(body))],
    body: new Readable({
      read () {
        for (const part of parts.splice(0)) this.push(part)
      }
    })
  }
}

function refusal (status: number, bytes: Buffer): Outcome {
  let body: unknown
  try {
    body = decodeJson(bytes)
  } catch {
    // A page for people, or nothing: the status has to explain it alone.
  }
  const error = isObject(body) ? body['error'] : undefined
  const message = isObject(error) ? error['message'] : undefined
  return { kind: 'refused', status, body, detail: typeof message === 'string' ? printable(message, 200) : '' }
}

/** undici's parser does not always name its errors by code. */
function isParserError (error: Error): boolean {
  return error.name === 'HTTPParserError' || (error as NodeJS.ErrnoException).code === 'UND_ERR_HEADERS_OVERFLOW'
}
