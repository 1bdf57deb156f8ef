// What clients saw while parts failed, written down call by call, and what must hold of it.

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
  readonly era: 'legacy' | 'modern'
  readonly tool: string
  /** Since the beginning, in milliseconds. */
  readonly begun: number
  readonly ended: number
  readonly outcome: Outcome
  /** How many notifications of progress its server sends. */
  readonly steps: number
  /** Of its progress, in the order in which it came, over all connections of its stream. */
  readonly progress: readonly number[]
  /** How many notifications came with the canary of another call. */
  readonly foreign: number
  /** How many events came twice. */
  readonly twice: number
  /** How often its stream was resumed. */
  readonly resumed: number
}

/** Longer than any pause, restart or timeout of a run, in milliseconds. */
export const longestCallMs = 60_000

/**
 * @param executed how often the servers have executed a call
 * @returns what went wrong, a sentence each
 */
export function violations(history: readonly Call[], executed: (canary: string) => number): string[] {
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
    if (call.foreign > 0) found.push(`got ${call.foreign} notifications of others`)
    if (call.twice > 0) found.push(`got ${call.twice} events twice`)
    if (progress.some((value, at) => value !== at + 1))
      found.push(`got its progress with a gap, twice or out of order: ${progress.join(' ')}`)
    else if (outcome.kind === 'answered' && progress.length < steps)
      found.push(`was answered after ${progress.length} of its ${steps} notifications of progress`)
    return found.map((what) => `${era} ${tool} ${canary} (at ${Math.round(call.begun)} ms) ${what}`)
  })
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
