// The text of an answer. A long one is written in steps; one for an administrator of some tenants counts for the tenant
// until it has left, because whoever asks and does not read would have all answers kept.

import type { Readable } from 'node:stream'
import { jsonSizeOf, jsonSizeSteps } from '../../limits/limits.ts'
import { holdMemory, type MemoryAccount } from '../../limits/memory.ts'
import { longTextSteps } from '../../protocol/json-writer.ts'
import { runSteps } from '../../time/turns.ts'
import type { Administrator } from '../access.ts'
import { AdminProblem } from '../problem.ts'
import { streamed } from './exported.ts'

/** Bytes, as `jsonSizeOf` counts them: a longer answer is written in steps, and counted. */
const longAnswerBytes = 131_072
/** All administrators of a tenant together, as one of its callers. */
const caller = 'administrators'

interface AnswerOptions {
  readonly administrator: Pick<Administrator, 'tenants'>
  /** That the path of the request names. */
  readonly tenant: string | undefined
  readonly memory: Pick<MemoryAccount, 'share'>
}

/**
 * @returns text of JSON; of a long one a body of `length` bytes
 * @throws AdminProblem rate_limited where answers that are not read yet leave no memory for it
 */
export async function adminAnswerText(
  body: unknown,
  { administrator: { tenants }, tenant, memory }: AnswerOptions
): Promise<{ readonly text: string } | { readonly text: Readable; readonly length: number }> {
  if (jsonSizeOf(body, longAnswerBytes) <= longAnswerBytes) return { text: JSON.stringify(body) }
  // Whoever administrates all tenants runs the gateway.
  const whose = tenants && (tenant ?? [...tenants][0] ?? '')
  const held = whose === undefined ? undefined : holdMemory(memory.share(whose, caller))
  function* written() {
    if (held?.take(yield* jsonSizeSteps(body)) === false) throw tooMuch()
    return yield* longTextSteps(body)
  }
  try {
    const { parts, length } = await runSteps(written(), { tenant: whose ?? '', caller: 'admin' })
    held?.set(length)
    return { text: streamed(parts, () => held?.set(0)), length }
  } catch (error) {
    held?.set(0)
    throw error
  }
}

const tooMuch = (): AdminProblem =>
  new AdminProblem(
    'rate_limited',
    'Answers to administrators of this tenant that are not read yet leave no memory for this one.',
    'Read them, or ask for less at a time.',
    { headers: { 'Retry-After': '1' } }
  )
