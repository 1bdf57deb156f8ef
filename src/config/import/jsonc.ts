// JSON with comments and trailing commas, as VS Code writes it, to plain JSON. Every character keeps its position, so
// that line numbers in messages are right.

/** @returns the text with comments and trailing commas replaced by spaces; not necessarily valid JSON */
export function plainJson(text: string): string {
  let result = ''
  let at = text.startsWith('\ufeff') ? 1 : 0
  let comma = -1
  let before = '['
  while (at < text.length) {
    const token = nextToken(text, at)
    if (token.kind === 'comment') {
      result += token.text.replace(/[^\n\r]/g, ' ')
    } else {
      if ((token.text === '}' || token.text === ']') && comma >= 0)
        result = `${result.slice(0, comma)} ${result.slice(comma + 1)}`
      if (token.kind !== 'space') {
        // Only a comma after a value can be a trailing one.
        comma = token.text === ',' && !'[{,:'.includes(before) ? result.length : -1
        before = token.text
      }
      result += token.text
    }
    at += token.text.length
  }
  return result
}

interface Token {
  readonly kind: 'comment' | 'space' | 'string' | 'other'
  readonly text: string
}

const tokens: readonly (readonly [Token['kind'], RegExp])[] = [
  ['comment', /\/\/[^\n\r]*|\/\*[^]*?(?:\*\/|$)/y],
  ['space', /\s+/y],
  // An unfinished string ends with its line, so that a missing quote does not hide the rest of the file.
  ['string', /"(?:[^"\\\n\r]|\\.)*"?/y],
  ['other', /[^\s"/,{}[\]]+|[^]/y]
]

function nextToken(text: string, at: number): Token {
  for (const [kind, pattern] of tokens) {
    pattern.lastIndex = at
    const match = pattern.exec(text)?.[0]
    if (match !== undefined && match !== '') return { kind, text: match }
  }
  return { kind: 'other', text: text.slice(at) }
}
