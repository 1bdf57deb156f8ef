// Patterns of a configuration: literal text, and `*` for any text, `/` included. Own code instead of a library: these
// are compared with names that servers and callers choose, so the time grows with the length of the text, no faster.

function globMatcher(pattern: string): (text: string) => boolean {
  const [first = '', ...rest] = pattern.split('*')
  const last = rest.pop() ?? ''
  return (text) => {
    const end = text.length - last.length
    if (end < first.length || !text.startsWith(first) || !text.endsWith(last)) return false
    let at = first.length
    for (const part of rest) {
      // The first place is as good as any later one: nothing stands between but `*`.
      const found = text.indexOf(part, at)
      if (found === -1 || found + part.length > end) return false
      at = found + part.length
    }
    return true
  }
}

/** Does it stand for one text only? */
export const isLiteral = (pattern: string): boolean => !pattern.includes('*')

/** @returns does one of the patterns match a whole text? All texts match where none are given */
export function anyMatcher(patterns: readonly string[] | undefined): (text: string) => boolean {
  if (patterns === undefined) return () => true
  // However many literal ones there are, they cost one look-up.
  const literals = new Set(patterns.filter(isLiteral))
  const globs = patterns.filter((pattern) => !isLiteral(pattern)).map(globMatcher)
  // A look-up looks at the whole text, also where there is nothing to be found.
  return (text) => (literals.size > 0 && literals.has(text)) || globs.some((matches) => matches(text))
}
