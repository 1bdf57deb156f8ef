// What clients saw while parts failed, written down call by call, and what must hold of it.

import { noWord } from '../kit/canary-server.ts'

/** How a call ended, as its client saw it. */
export type Outcome =
  /** With a result. */
  | { readonly kind: 'answered'; readonly text: string }
  /** By an error that says, or does not deny, that the call may have taken effect; or the connection was lost. */
  | { readonly kind: 'unknown'; readonly why: string }
  /** By an error that says that nothing was executed. */
  | { readonly kind: 'refused'; readonly why: string }
  /** The session is unknown, although nobody ended it. */
  | { readonly kind: 'session lost'; readonly why: string }

export interface Call {
  /** Unguessable, and the same nowhere else: its arguments carry it, and its answer has to. */
  readonly canary: string
  /** `sse`: legacy, over HTTP+SSE. */
  readonly era: 'legacy' | 'modern' | 'sse'
  readonly tool: string
  /** Since the beginning, in milliseconds. */
  readonly begun: number
  readonly ended: number
  readonly outcome: Outcome
  /** How many notifications of progress its server sends. */
  readonly steps: number
  /** Of its progress, in the order in which it came, over all connections of its stream. */
  readonly progress: readonly number[]
  /** How many messages came with the canary of another call. */
  readonly foreign: number
  /** How many events came twice. */
  readonly twice: number
  /** How often its stream was resumed. */
  readonly resumed: number
  /** Of a call that is to cause a notification: whether its server says that it sent it. */
  readonly told?: boolean
  /** Where its server has a question for the client. */
  readonly asked?: Asked
}

export interface Asked {
  /** What the client answers; the same nowhere else. */
  readonly word: string
  /** How many questions came, each of an id of its own. */
  readonly questions: number
  /** What the server says that it was answered; undefined where the call has no result. */
  readonly heard: string | undefined
  /** Why the last answer to the question was not taken; undefined where it was. */
  readonly refused: string | undefined
}

/** What servers did, by the canary of a call. */
export interface Servers {
  /** How often they executed it. */
  executed(canary: string): number
  /** What its question was answered with, each time. */
  answered(canary: string): readonly string[]
}

/** Longer than any pause, restart or timeout of a run, in milliseconds. */
export const longestCallMs = 60_000

/** @returns what went wrong, a sentence each */
export function violations(history: readonly Call[], { executed, answered }: Servers): string[] {
  return history.flatMap((call) => {
    const { canary, outcome, era, tool, steps, progress } = call
    const times = executed(canary)
    const found: string[] = []
    if (times > 1) found.push(`was executed ${times} times`)
    if (outcome.kind === 'answered' && outcome.text !== canary) found.push(`got the answer of another: ${outcome.text}`)
    if (outcome.kind === 'answered' && times === 0) found.push('was answered and never executed')
    if (outcome.kind === 'refused' && times > 0) found.push(`was executed and then refused: ${outcome.why}`)
    if (outcome.kind === 'session lost') found.push(`lost its session: ${outcome.why}`)
    if (call.ended - call.begun > longestCallMs) found.push(`took ${Math.round(call.ended - call.begun)} ms`)
    if (call.foreign > 0) found.push(`got ${call.foreign} messages of others`)
    if (call.twice > 0) found.push(`got ${call.twice} events twice`)
    if (progress.some((value, at) => value !== at + 1))
      found.push(`got its progress with a gap, twice or out of order: ${progress.join(' ')}`)
    else if (outcome.kind === 'answered' && progress.length < steps)
      found.push(`was answered after ${progress.length} of its ${steps} notifications of progress`)
    if (call.asked !== undefined) found.push(...wronglyAsked(call.asked, outcome, answered(canary)))
    return found.map((what) => `${era} ${tool} ${canary} (at ${Math.round(call.begun)} ms) ${what}`)
  })
}

function wronglyAsked(
  { word, questions, heard, refused }: Asked,
  outcome: Outcome,
  answers: readonly string[]
): string[] {
  const found: string[] = []
  if (questions > 1) found.push(`was asked ${questions} times`)
  if (answers.length > 1) found.push(`had its question answered ${answers.length} times: ${answers.join(', ')}`)
  const strange = answers.filter((each) => each !== word && each !== noWord)
  if (strange.length > 0) found.push(`had its question answered by ${strange.join(', ')} in place of ${word}`)
  if (outcome.kind !== 'answered') return found
  if (heard !== word) found.push(`was answered by a server that had heard ${heard} in place of ${word}`)
  if (answers.length === 0) found.push('was answered although nobody had answered its question')
  if (refused !== undefined) found.push(`was answered although the answer to its question was refused: ${refused}`)
  return found
}

const reasonLength = 160

/** What calls were refused with, and what left them unknown: the texts without what differs, and how often. */
export function reasonsOf(history: readonly Call[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { outcome } of history) {
    if (outcome.kind === 'answered') continue
    const said = /"reason":"(\w+)"/.exec(outcome.why)?.[1] ?? outcome.why.replaceAll(/[0-9a-f-]{36}|\d+ ms/g, '*')
    const reason = `${outcome.kind}: ${said.slice(0, reasonLength)}`
    counts[reason] = (counts[reason] ?? 0) + 1
  }
  return counts
}
