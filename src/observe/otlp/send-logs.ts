// Log records to a collector by OTLP over HTTP, in JSON (OpenTelemetry Protocol 1.x, "OTLP/HTTP").

import { isObject } from '../../protocol/messages.ts'
import { createFetch, UnreadAnswer } from '../../egress/fetch.ts'

/** How long the collector may take to answer, in milliseconds. */
const maxAnswerMs = 5_000
const maxAnswerBytes = 1024 * 1024
/** Its headers are for the collector alone: no redirect is followed. */
const fetch = createFetch({ maxBytes: maxAnswerBytes, timeoutMs: maxAnswerMs, keepsConnections: true })

export type AnyValue =
  | { readonly stringValue: string }
  | { readonly boolValue: boolean }
  | { readonly intValue: string }
  | { readonly doubleValue: number }

export interface KeyValue {
  readonly key: string
  readonly value: AnyValue
}

export interface LogRecord {
  readonly timeUnixNano: string
  readonly observedTimeUnixNano: string
  readonly severityNumber: number
  readonly severityText: string
  readonly eventName?: string | undefined
  readonly body: AnyValue
  readonly attributes: readonly KeyValue[]
  readonly traceId?: string | undefined
}

export interface LogsPlace {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

/** The collector has said so of all of them, and would again ("Failures", "Retryable Response Codes"). */
export class RefusedForGood extends Error {
  override readonly name = 'RefusedForGood'
}

const retryable: ReadonlySet<number> = new Set([429, 502, 503, 504])

export const attribute = (key: string, stringValue: string): KeyValue => ({ key, value: { stringValue } })

/**
 * @param scope what made the records
 * @param logRecords of JSON, with commas between them; one or more
 * @returns how many the collector has refused for good: they are not to be sent again
 * @throws RefusedForGood where it takes none of them; Error where it could not be reached, or takes none now
 */
export async function sendLogs(
  { url, headers }: LogsPlace,
  resource: readonly KeyValue[],
  scope: string,
  logRecords: readonly Uint8Array[]
): Promise<number> {
  const head = `{"resourceLogs":[{"resource":${JSON.stringify({ attributes: resource })},"scopeLogs":[{`
  const start = Buffer.from(`${head}"scope":${JSON.stringify({ name: scope })},"logRecords":[`)
  const answer = await fetch(url, {
    method: 'POST',
    headers: { ...headers, 'Content-Type': 'application/json' },
    body: Buffer.concat([start, ...logRecords, Buffer.from(']}]}]}')])
  }).catch((error: unknown) => {
    // Its status says what became of them: sent again, they would be there twice, and keep those after them waiting.
    if (error instanceof UnreadAnswer) return new Response(null, { status: error.status })
    throw error
  })
  const text = await answer.text()
  const { ok, status } = answer
  if (!ok) throw new (retryable.has(status) ? Error : RefusedForGood)(`the collector answers ${status}`)
  return rejectedIn(text)
}

/** "Partial Success". */
function rejectedIn(text: string): number {
  try {
    const answer = JSON.parse(text === '' ? '{}' : text) as unknown
    const partial = isObject(answer) ? answer['partialSuccess'] : undefined
    return isObject(partial) ? Number(partial['rejectedLogRecords'] ?? 0) : 0
  } catch {
    return 0 // It has taken them, whatever it says.
  }
}
