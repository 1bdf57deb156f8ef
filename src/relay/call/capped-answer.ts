// An answer that is longer than its endpoint lets through: its caller gets what says so, and nothing of it.

import { noteAnswer, noteFailure } from '../../observe/call-notes.ts'
import type { CallRecord } from '../../observe/calls.ts'
import type { JsonText } from '../../protocol/json-text.ts'
import { GatewayError, responseMessage, type Request, type RequestId, type Result } from '../../protocol/messages.ts'

/** The methods whose answers come from a server; lists have limits of their own. */
const capped: ReadonlySet<string> = new Set([
  'tools/call',
  'prompts/get',
  'resources/read',
  'tasks/get',
  'tasks/result'
])

/**
 * Notes the answer.
 * @param text of the message that answers with the result
 * @returns the text that is sent
 * @throws GatewayError result_too_large where no result can say it
 */
export function cappedAnswer(
  record: CallRecord,
  request: Request,
  id: RequestId,
  result: Result,
  text: JsonText
): JsonText {
  const { maxAnswerBytes: max } = record
  const bytes = typeof text === 'string' ? Buffer.byteLength(text) : text.length
  noteAnswer(record, request, result, bytes)
  if (max === undefined || !capped.has(request.method)) return text
  if (bytes <= max) return text
  const message =
    `The result has ${bytes} bytes, more than the ${max} that this endpoint lets through. ` +
    'The call has been made. Ask for less.'
  if (request.method !== 'tools/call')
    throw new GatewayError('result_too_large', message, { data: { bytes, maxBytes: max } })
  const { resultType } = result
  const told: Result = {
    ...(resultType !== undefined && { resultType }),
    content: [{ type: 'text', text: message }],
    isError: true
  }
  const shown = JSON.stringify(responseMessage(id, told))
  noteFailure(record, 'result_too_large', message)
  noteAnswer(record, request, told, Buffer.byteLength(shown))
  return shown
}
