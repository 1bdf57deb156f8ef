// Text to a plain tree: YAML 1.2 or JSON, without tags, with bounded aliases, and with the line of every key.
// The parser's own messages are not used: they quote the text, and the text holds secrets.

import { isAlias, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument, type YAMLError } from 'yaml'

import { createReport, pathText, quoted, type Fault, type Path } from './problems.ts'

const maxSourceBytes = 4 * 1024 * 1024
const maxNodes = 100_000
const maxDepth = 32

/**
 * Never throws: whatever is wrong stands in the report.
 * @returns objects, arrays, strings, numbers, booleans and null; undefined where the text cannot be read at all
 */
export function readSource(text: string) {
  const lines = new Map<string, number>()
  const report = createReport((path) =>
    path.map((_step, index) => lines.get(pathText(path.slice(0, index + 1)))).findLast((line) => line !== undefined)
  )
  if (Buffer.byteLength(text) > maxSourceBytes) {
    report.add(
      [],
      `is larger than ${maxSourceBytes / 1024 / 1024} MiB`,
      'No configuration is that large: is this the right file?'
    )
    return { value: undefined, report }
  }
  const counter = new LineCounter()
  const document = parseDocument(text, { prettyErrors: false, uniqueKeys: false, lineCounter: counter })
  const errors = [...document.errors, ...document.warnings].toSorted((a, b) => a.pos[0] - b.pos[0])
  const rows = text.split('\n')
  for (const error of errors) {
    // One problem a line: after its first error the rest of a line is misread.
    const line = Math.max(1, counter.linePos(error.pos[0]).line)
    const [message, suggestion] = syntaxFault(error, rows[line - 1] ?? '')
    report.add([], message, suggestion, line)
  }
  let nodes = 0

  function read(node: unknown, path: Path, depth: number): unknown {
    // Aliases are followed by value: ten lines of them can stand for a billion nodes, or for themselves.
    if (++nodes > maxNodes || depth > maxDepth) {
      report.add(
        nodes > maxNodes ? [] : path,
        nodes > maxNodes ? `has more than ${maxNodes} values` : `is nested deeper than ${maxDepth} levels`,
        'Look for an alias (*name) that repeats too much, or itself.'
      )
      return undefined
    }
    if (isAlias(node)) {
      const target = node.resolve(document)
      if (target !== undefined) return read(target, path, depth + 1)
      report.add(
        path,
        'refers to an anchor that is not defined before it',
        'Define it with & first, or put the text in quotes if it was meant to begin with *.'
      )
      return undefined
    }
    if (isScalar(node)) {
      if (node.value === null || ['string', 'number', 'boolean'].includes(typeof node.value)) return node.value
      report.add(path, 'is not a string, number, true or false', 'Put it in quotes.')
      return undefined
    }
    if (isSeq(node)) {
      return node.items.map((item, index) => {
        const place = [...path, index]
        note(item, place)
        return read(item, place, depth + 1)
      })
    }
    return isMap(node) ? mapping(node.items, path, depth) : null
  }

  function mapping(items: readonly { key: unknown; value: unknown }[], path: Path, depth: number) {
    const result: Record<string, unknown> = {}
    for (const pair of items) {
      const key = keyText(pair.key)
      const place = [...path, key ?? '?']
      note(pair.key, place)
      if (key === undefined || key === '__proto__') report.add(place, 'is no possible key', 'Use a plain name.')
      else if (key === '<<')
        report.add(
          place,
          'is a merge key, which YAML 1.2 does not have',
          'Write the keys out, or use an alias for a whole value.'
        )
      else if (Object.hasOwn(result, key))
        report.add(
          place,
          `stands here twice, first on line ${lines.get(pathText(place)) ?? '?'}`,
          'Remove one of the two.',
          lineOf(pair.key)
        )
      else result[key] = read(pair.value, place, depth + 1)
    }
    return result
  }

  function lineOf(node: unknown): number | undefined {
    const at = isNode(node) ? node.range?.[0] : undefined
    return at === undefined ? undefined : counter.linePos(at).line
  }

  function note(node: unknown, path: Path): void {
    const line = lineOf(node)
    const text = pathText(path)
    if (line !== undefined && !lines.has(text)) lines.set(text, line)
  }

  return { value: errors.length > 0 ? undefined : read(document.contents, [], 0), report }
}

/** Names such as 123 or true are read as written, not as the number or the truth value. */
function keyText(node: unknown): string | undefined {
  if (!isScalar(node)) return undefined
  return typeof node.value === 'string' ? node.value : node.source
}

function syntaxFault({ code }: YAMLError, row: string): Fault {
  const known = syntaxFaults[code]
  // `{ key: ${NAME} }` is the commonest of all: braces mean something else inside braces.
  if (row.includes('${') && (known === undefined || code === 'MISSING_CHAR'))
    return ['cannot be read as YAML', `Put the reference in quotes: ${quoted('${NAME}')}.`]
  return (
    known ?? ['cannot be read as YAML', 'Check the quotes, brackets and indentation of this line and the one above.']
  )
}

const syntaxFaults: Readonly<Record<string, Fault>> = {
  BAD_INDENT: [
    'is indented wrongly, or comes after a bracket that is not closed',
    'Indent it as much as its neighbours, with spaces, and check the brackets.'
  ],
  TAB_AS_INDENT: ['is indented with a tab', 'Use spaces.'],
  BAD_DQ_ESCAPE: [
    'has an unknown \\ escape between double quotes',
    'Write \\\\ for a backslash, or use single quotes.'
  ],
  BAD_SCALAR_START: ['begins with a character that YAML reserves', 'Put the text in quotes.'],
  BLOCK_AS_IMPLICIT_KEY: ['has a second ": " on one line', 'Put the text in quotes.'],
  MISSING_CHAR: [
    'lacks a quote, bracket, comma or colon',
    'Check the quotes and brackets of this line and the one above.'
  ],
  MULTILINE_IMPLICIT_KEY: ['lacks a colon after its key', 'Write key: value.'],
  MULTIPLE_DOCS: ['begins a second document', 'Remove the line of three dashes: a configuration is one document.'],
  RESOURCE_EXHAUSTION: ['is nested too deeply', 'Check the brackets.'],
  TAG_RESOLVE_FAILED: ['has a tag (!name), and none are read', 'Remove the tag.']
}
