// What a request takes up in memory, at the expense of its caller: reserved before its body is read, counted again when
// it was parsed, and given back when its answer has left.

import { bytesPerValue, jsonSizeOf, jsonSizeSteps } from '../limits/limits.ts'
import type { HeldMemory } from '../limits/memory.ts'
import { finished } from '../protocol/json-steps.ts'
import { holdsKeptText, type JsonText, letGoOfMembers, sourceLengthOf, textOfMessage } from '../protocol/json-text.ts'
import { longTextSteps } from '../protocol/json-writer.ts'
import { GatewayError, isObject, type JsonObject, type Request } from '../protocol/messages.ts'
import { runSteps, type Steps } from '../time/turns.ts'
import type { CallContext, RequestContext } from './admission.ts'

/** Of a request without its body and answer: socket, timers, headers, the call. In bytes; an estimate from above. */
export const requestOverheadBytes = 32_768
/** Bytes as they come, in one piece, and as text: all of them are there while a body is parsed. */
const readFactor = 3
/** Up to so many bytes, a body is not looked at: its worst case is reserved. */
const smallBodyBytes = 4_096
/** The worst case: `[[],[],…` takes so many times its length once it is parsed. */
const denseFactor = 22

const whatOf = (bytes: number): string => `A body of ${bytes} bytes`

/**
 * Before the body is read. One without a length may be as long as any.
 * @param maxBytes that a body may have
 * @throws GatewayError too_many
 */
export function reserveRequest(
  { memory, raw, incoming: { method, headers } }: Pick<RequestContext, 'memory' | 'raw' | 'incoming'>,
  maxBytes: number
): void {
  const release = memory.retain()
  // 'close' has been emitted already, and would not be emitted again.
  if (raw.destroyed) return release()
  raw.once('close', release)
  const given = Number(headers['content-length'] ?? (headers['transfer-encoding'] === undefined ? 0 : Infinity))
  const bytes = method === 'POST' ? Math.min(given, maxBytes) : 0
  const factor = bytes > smallBodyBytes ? readFactor : denseFactor
  memory.require(requestOverheadBytes + bytes * factor, bytes === 0 ? 'The request' : whatOf(bytes))
}

/**
 * Its values are about to be made. Several bodies are read at a time, so what each takes at most is taken before.
 * @throws GatewayError too_many
 */
export function reserveValues({ memory }: RequestContext, bodyBytes: number, values: number): void {
  memory.require(values * bytesPerValue, whatOf(bodyBytes))
}

/**
 * Its values are held until they are sent (`letGoOfArguments`) or the call has ended, and the text that goes to the
 * upstream until it is sent.
 * @throws GatewayError too_many
 */
export function recountBody(context: RequestContext, bodyBytes: number, value: unknown): void {
  context.bodyBytes = bodyBytes
  if (bodyBytes > smallBodyBytes) finished(recountBodySteps(context, bodyBytes, value))
  else if (Array.isArray(value)) finished(measureBatch(context, value))
}

/** The same for a long one. */
export function* recountBodySteps(context: RequestContext, bodyBytes: number, value: unknown): Steps {
  context.bodyBytes = bodyBytes
  const { memory } = context
  const size = requestOverheadBytes + bodyBytes + (yield* jsonSizeSteps(value))
  if (!memory.fit(size)) throw memory.share.refusal(size - memory.bytes, whatOf(bodyBytes))
  if (Array.isArray(value)) yield* measureBatch(context, value)
}

/** Of one that is refused for its length nothing is kept. */
function* measureBatch(context: RequestContext, batch: readonly unknown[]): Steps {
  if (batch.length > context.snapshot.limits.batchMessages) return
  const bytes: number[] = []
  for (const message of batch) {
    bytes.push((yield* longTextSteps(message)).length)
    yield
  }
  context.messageBytes = bytes
}

/** Is the request large enough to let go of its arguments once they are sent? */
export const isLongBody = ({ bodyBytes = 0 }: CallContext): boolean => bodyBytes > smallBodyBytes

/**
 * The arguments were sent, and nobody reads them any more. All functions that wait for the answer hold the object, so
 * it is emptied in place.
 * @param keptBytes of what was sent that are kept
 */
export function letGoOfArguments({ memory }: CallContext, { params = {} }: Request, keptBytes: number): void {
  const { arguments: args, ...others } = params
  const size = jsonSizeOf(others, smallBodyBytes)
  if (size > smallBodyBytes || !isObject(args) || !letGoOfMembers(args)) return
  memory.set(Math.min(memory.bytes, requestOverheadBytes + size + keptBytes))
}

/** Bytes, as `jsonSizeOf` counts them: a larger answer is written in steps. */
const largeAnswerBytes = 131_072
/** No part of a smaller one has kept the text that it was read from. */
const smallAnswerBytes = 32_768

/**
 * The text of an answer that is to be sent.
 * @param message that the result is part of
 * @throws GatewayError too_many: the call was made, and its answer cannot be held
 */
export function answerText(
  { memory }: Pick<RequestContext, 'memory'>,
  result: JsonObject,
  message: JsonObject
): JsonText | Promise<JsonText> {
  if (holdsKeptText(result)) return finished(largeAnswer(memory, result, message))
  const size = jsonSizeOf(result, largeAnswerBytes)
  if (size > largeAnswerBytes) return runSteps(largeAnswer(memory, result, message), memory.share)
  if (size <= smallAnswerBytes) {
    reserveAnswer(memory, size)
    return JSON.stringify(message)
  }
  reserveAnswer(memory, size + sourceLengthOf(result))
  return textOfMessage(message)
}

function* largeAnswer(memory: HeldMemory, result: JsonObject, message: JsonObject): Steps<JsonText> {
  reserveAnswer(memory, (yield* jsonSizeSteps(result)) + sourceLengthOf(result))
  return yield* longTextSteps(message)
}

/** @throws GatewayError too_many: the call was made, and its answer cannot be held */
export function reserveAnswer(memory: HeldMemory, size: number): void {
  if (!memory.take(size)) throw answerRefusal(memory, size)
}

/** The call was made, and its answer cannot be held. */
export function answerRefusal(memory: HeldMemory, size: number): GatewayError {
  const { code, message } = memory.share.refusal(size, 'The answer')
  return new GatewayError(code, `${message} The call has been made.`, { data: { outcome: 'unknown' } })
}

/**
 * Somebody works on the request or its answer, which may outlive its connection.
 * @returns how the work ends; idempotent. After the last one, what its caller has not read yet is left of the request
 */
export function holdRequest({ memory, raw }: RequestContext): () => void {
  const release = memory.retain()
  return () => {
    release()
    if (memory.holders === 1) countUnread({ memory, raw })
  }
}

/** Nothing more is written on the connection: what its client has not read stays in memory until it is closed. */
export function countUnread({ memory, raw }: Pick<RequestContext, 'memory' | 'raw'>): void {
  memory.set(requestOverheadBytes + raw.writableLength)
}
