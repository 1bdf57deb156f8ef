// Problems of a configuration, collected with their places and remedies. Values of the file are never repeated, because
// any of them may be a secret. Documents of the admin API are judged here, too: there is a limit to the problems that
// are kept, and to the names that are compared for a suggestion.

export const maxProblems = 200
/** The most suggestions that compare names. */
const maxSuggestions = 20
/** Names that one misspelt name is compared with. */
const maxCandidates = 200
const maxDifferences = 5

export type Path = readonly (string | number)[]

export interface Problem {
  /** Key path such as `tenants.acme.upstreams.files.comand`; empty for the file as a whole. */
  readonly path: string
  /** The first line is 1. */
  readonly line?: number
  readonly message: string
  readonly suggestion?: string
  /** Set if the only fault is that these environment variables are not set. */
  readonly variables?: readonly string[]
  /** Set if the only fault is that these files of references are not there, or may not be read. */
  readonly files?: readonly string[]
}

/** The remedy, as a whole sentence; a function where it takes a comparison of names. */
type Suggestion = string | (() => string | undefined)

/** What is wrong, without a full stop, and what to do. */
export type Fault = readonly [message: string, suggestion?: Suggestion | undefined]

/** The configuration cannot be used. `problems` is never empty; `message` names them all. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly file: string
  readonly problems: readonly Problem[]

  constructor(file: string, problems: readonly Problem[]) {
    const lines = problems.map((problem) => `  ${problemLine(problem)}`)
    super(`${file} cannot be used, ${countOf(problems.length, 'problem')}:\n${lines.join('\n')}`)
    this.file = file
    this.problems = problems
  }
}

/** `file line N, path: message. suggestion`: as editors and people look for it. */
export function problemLineIn(file: string, { line, path, message, suggestion }: Problem): string {
  const place = `${file}${line === undefined ? '' : ` line ${line}`}${path === '' ? '' : `, ${path}`}`
  return `${place}: ${message}.${suggestion === undefined ? '' : ` ${suggestion}`}`
}

/** `path (line N): message. suggestion`, where the file is named already, or there is none. */
export function problemLine(problem: Problem): string {
  const line = problem.line === undefined ? '' : `line ${problem.line}`
  const place = problem.path === '' ? line : problem.path + (line === '' ? '' : ` (${line})`)
  const suggestion = problem.suggestion === undefined ? '' : ` ${problem.suggestion}`
  return `${place === '' ? '' : `${place}: `}${problem.message}.${suggestion}`
}

/** `1 problem`, `2 problems` */
export function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/** `tenants.acme.keys[0]`; a key that would be ambiguous stands in brackets and quotes. */
export function pathText(path: Path): string {
  let text = ''
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`
    else if (/^[A-Za-z0-9_-]{1,80}$/.test(step)) text += text === '' ? step : `.${step}`
    else text += `[${quoted(step)}]`
  }
  return text
}

/** A name for use in a message: quoted, on one line, without control characters, shortened. */
export function quoted(name: string): string {
  const short = name.length > 80 ? `${name.slice(0, 79)}…` : name
  return JSON.stringify(short).replace(/[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, '?')
}

export type Report = ReturnType<typeof createReport>

/** @param lineOf line of a path, or of its nearest ancestor */
export function createReport(lineOf: (path: Path) => number | undefined) {
  const places = new Set<string>()
  const kept: Problem[] = []
  let compared = 0
  function textOf(suggestion: Suggestion | undefined): string | undefined {
    if (typeof suggestion !== 'function') return suggestion
    return compared++ < maxSuggestions ? suggestion() : undefined
  }
  return {
    /**
     * Returns the problems in the order of the file; at most 200, of which the last then says how many more there are.
     */
    problems(): readonly Problem[] {
      const shown = places.size > maxProblems ? kept.slice(0, maxProblems - 1) : kept
      const inOrder = shown.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0))
      const more = places.size - shown.length
      return more === 0
        ? inOrder
        : [...inOrder, { path: '', message: `has ${countOf(more, 'more problem')}`, suggestion: 'Mend these first.' }]
    },
    /** Only the first problem of a place is kept: others usually follow from it. `known`: its line, if without key. */
    add(
      path: Path,
      message: string,
      suggestion?: Suggestion,
      known?: number,
      lacks?: Pick<Problem, 'variables' | 'files'>
    ): void {
      const text = pathText(path)
      const line = known ?? lineOf(path)
      const place = text === '' ? `line ${line}` : text
      if (places.has(place)) return
      places.add(place)
      if (places.size > maxProblems) return
      const remedy = textOf(suggestion)
      kept.push({
        path: text,
        ...(line === undefined ? {} : { line }),
        message,
        ...(remedy === undefined ? {} : { suggestion: remedy }),
        ...lacks
      })
    }
  }
}

/** `Did you mean "command"?` for the nearest of the known names, if one is near enough. */
export function didYouMean(name: string, known: Iterable<string>): string | undefined {
  const best = nearest(name, known)
  return best === undefined ? undefined : `Did you mean ${quoted(best)}?`
}

/** The known name that differs least, if at most a third of its letters do, and at most five. */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  const wanted = name.slice(0, 80).toLowerCase()
  const limit = name.length < 3 ? 0 : Math.min(Math.floor(name.length / 3), maxDifferences)
  let best: string | undefined
  let bestDistance = limit + 1
  let compared = 0
  for (const candidate of known) {
    // Each letter that one of the two has more is a difference.
    if (Math.abs(candidate.length - wanted.length) >= bestDistance) continue
    if (++compared > maxCandidates) break
    const distance = editDistance(wanted, candidate.toLowerCase(), bestDistance)
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance]
  }
  return best
}

/**
 * Optimal string alignment: two swapped letters, the most common typing error, count as one difference.
 * @param enough a distance so large that it may as well be larger
 */
function editDistance(a: string, b: string, enough: number): number {
  // Lengths of up to 85: see `nearest`.
  let before = new Uint8Array(b.length + 1)
  let last = Uint8Array.from(before, (_, j) => j)
  let row = new Uint8Array(b.length + 1)
  let leastOfLast = 0
  for (let i = 1; i <= a.length; i++) {
    row.fill(enough)
    row[0] = i
    let least = i
    // Further from the diagonal, the lengths of what was compared differ by more.
    for (let j = Math.max(1, i - enough); j <= Math.min(b.length, i + enough); j++) {
      const isSame = a.charCodeAt(i - 1) === b.charCodeAt(j - 1)
      let cost = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (isSame ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        cost = Math.min(cost, (before[j - 2] ?? 0) + 1)
      row[j] = cost
      least = Math.min(least, cost)
    }
    if (least >= enough && leastOfLast >= enough) return enough
    leastOfLast = least
    ;[before, last, row] = [last, row, before]
  }
  return last[b.length] ?? 0
}

/** Reports each value that stands there a second time. */
export function checkDoubles(
  values: readonly (string | undefined)[],
  place: (index: number) => Path,
  what: string,
  report: Report
): void {
  const first = new Map(values.map((value, index) => [value, index] as const).toReversed())
  values.forEach((value, index) => {
    const earlier = first.get(value) ?? index
    if (value !== undefined && earlier < index)
      report.add(place(index), `${what} entry ${earlier + 1}`, 'Remove or change one of the two.')
  })
}
