// What the listening client of a session heard on its GET stream, over all connections and replicas, and what must hold
// of it.

/** A notification that a call of the same session caused. */
export interface Caused {
  readonly canary: string
  /** The call was answered: the server had sent the notification before. Otherwise it may have. */
  readonly sure: boolean
  /** From when the call was sent until it ended, in milliseconds since the beginning. */
  readonly during: Span
}

export interface Heard {
  readonly session: string
  /** In the order of the calls, which came one after the other. */
  readonly caused: readonly Caused[]
  /** The canaries of the notifications, in the order in which they came. */
  readonly canaries: readonly string[]
  /** The ids of the events with a message, in the order in which they came. */
  readonly ids: readonly string[]
  /** How often the stream was resumed by the id of its last event. */
  readonly resumed: number
  /** Why the stream could not be resumed; undefined where it always could. */
  readonly refused: string | undefined
}

/** From when to when, in milliseconds since the beginning. */
export type Span = readonly [number, number]

/**
 * @param lossy when a replica was killed or Redis was away: what a replica had heard and not yet stored is lost then
 * @returns what went wrong, a sentence each
 */
export function streamViolations(all: readonly Heard[], lossy: readonly Span[] = []): string[] {
  const mayBeLost = ([begun, ended]: Span): boolean => lossy.some(([from, to]) => ended >= from && begun <= to)
  return all.flatMap(({ session, caused, canaries, ids, refused }) => {
    const found: string[] = []
    const heard = new Set(canaries)
    const twice = canaries.filter((canary, at) => canaries.indexOf(canary) !== at)
    if (twice.length > 0) found.push(`heard twice of ${twice.join(', ')}`)
    const own = caused.map(({ canary }) => canary)
    const foreign = canaries.filter((canary) => !own.includes(canary))
    if (foreign.length > 0) found.push(`heard what it had not caused: ${foreign.join(', ')}`)
    const missed = caused.filter(({ canary, sure, during }) => sure && !heard.has(canary) && !mayBeLost(during))
    if (missed.length > 0) found.push(`never heard of ${missed.map(({ canary }) => canary).join(', ')}`)
    const inOrder = own.filter((canary) => heard.has(canary))
    const first = [...heard].filter((canary) => own.includes(canary))
    if (inOrder.some((canary, at) => canary !== first[at])) found.push(`heard out of order: ${canaries.join(', ')}`)
    found.push(...wrongIds(ids))
    if (refused !== undefined) found.push(`could not resume: ${refused}`)
    return found.map((what) => `the stream of session ${session} ${what}`)
  })
}

/** Within each of the streams that it had one after the other, the numbers of events follow one another. */
function wrongIds(ids: readonly string[]): string[] {
  const last = new Map<string, number>()
  return ids.flatMap((id) => {
    const [stream = '', text] = id.split('.')
    const number = Number(text)
    const before = last.get(stream)
    last.set(stream, number)
    if (before === undefined || number === before + 1) return []
    return [`has a ${number > before ? 'gap' : 'repetition'} between the events ${before} and ${number} of one stream`]
  })
}
