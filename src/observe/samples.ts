// Arguments and results of some tool calls in their lines of the log, where a tenant wants that: shortened, and without
// what looks secret. Nowhere else: not in traces, nor among live calls.

import type { Tenant } from '../config/snapshot.ts'
import { isObject, type JsonObject } from '../protocol/messages.ts'
import { firstOf } from '../protocol/own-text.ts'
import { redactedJson } from './redact.ts'

/** Of each of the two. */
const maxSampleChars = 2_000

export interface CallSample {
  readonly config: NonNullable<Tenant['logSample']>
  readonly arguments: string | undefined
  result?: string | undefined
}

/**
 * Before the call, because its arguments are let go of once they are sent.
 * @param requestId random: it decides, so that all that is told of one call agrees
 * @returns undefined where nothing of this call is to be told
 */
export function sampleOf(
  config: Tenant['logSample'],
  { method, params }: { readonly method: string; readonly params?: Readonly<Record<string, unknown>> },
  requestId: string | undefined
): CallSample | undefined {
  if (config === undefined || method !== 'tools/call' || requestId === undefined) return undefined
  if ((parseInt(requestId.slice(0, 8), 16) / 2 ** 32) * 100 >= config.percent) return undefined
  const args = params?.['arguments']
  return { config, arguments: config.arguments && isObject(args) ? shortened(config, args) : undefined }
}

export const sampleOfResult = (config: CallSample['config'], result: JsonObject): string | undefined =>
  config.results ? shortened(config, result) : undefined

/** In a line of the log. */
export const sampleFields = ({ arguments: args, result }: CallSample) => ({ arguments: args, result })

function shortened({ redact }: CallSample['config'], value: object): string {
  const text = redactedJson(value, redact)
  return text === undefined ? '(long)' : firstOf(text, maxSampleChars)
}
