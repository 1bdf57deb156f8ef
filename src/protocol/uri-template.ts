// Could a URI have been made from a URI template (RFC 6570)? In linear time, without a regular expression: servers
// write the templates, and clients the URIs.

/** Longer URIs are compared with no template: a server may list thousands of these. */
const maxMatchedLength = 2_048
const maxExpressions = 32

/** @returns whether a URI could have been made from the template; undefined for a template that says too little */
export function uriMatcher(template: string): ((uri: string) => boolean) | undefined {
  // `{id}` stands for characters that delimit nothing, but at the end for whole paths, too: the example of
  // 2025-11-25 server/resources is `file:///{path}`. An expression with an operator is taken for the rest of the URI.
  const operator = /\{([+#./;?&])/.exec(template)
  const parts = template.slice(0, operator?.index).split(/\{[^{}]*\}/)
  const [start = '', ...literals] = parts
  // Without a scheme of its own it would match the resources of every server.
  if (!/^[a-z][a-z0-9+.-]*:/i.test(start) || parts.length > maxExpressions) return undefined
  if (literals.length === 0 && operator === null) return undefined
  const last = literals.pop()
  return (uri) => {
    if (uri.length > maxMatchedLength || !uri.startsWith(start)) return false
    let at = start.length
    for (const literal of literals) {
      // The first place is as good as any later one: what is skipped may hold no delimiter.
      const next = uri.indexOf(literal, at + 1)
      if (next === -1 || !isValue(uri.slice(at, next))) return false
      at = next + literal.length
    }
    if (operator !== null) return endsWithOperator(uri.slice(at), last, operator[1] ?? '')
    if (last === undefined || last === '') return isPath(uri.slice(at))
    return uri.endsWith(last) && isValue(uri.slice(at, -last.length))
  }
}

/** @param last the literal between the last value and the operator; undefined where there is no value */
function endsWithOperator(rest: string, last: string | undefined, operator: string): boolean {
  let tail = rest
  if (last !== undefined) {
    const end = last !== '' ? rest.indexOf(last, 1) : rest.search(operator === '/' ? /[/?#]|$/ : /[?#]|$/)
    if (end < 1 || (last !== '' && !isValue(rest.slice(0, end)))) return false
    tail = rest.slice(end + last.length)
  }
  return operator === '+' ? tail !== '' : tail === '' || tail.startsWith(operator)
}

const isPath = (text: string): boolean => text !== '' && !/[?#]/.test(text)
const isValue = (text: string): boolean => text !== '' && !/[/?#]/.test(text)
