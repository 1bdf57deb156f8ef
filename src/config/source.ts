// Text to a plain tree: YAML 1.2 or JSON, without tags, with bounded aliases, and with the line of every key.
// The parser's own messages are not used: they quote the text, and the text holds secrets.

import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument, type Document, type YAMLError } from 'yaml'

import { createReport, pathText, quoted, type Fault, type Path, type Report } from './problems.ts'

const maxSourceBytes = 4 * 1024 * 1024
const maxNodes = 100_000
const maxDepth = 32

export interface ParsedSource {
  /** Objects, arrays, strings, numbers, booleans and null; undefined where the text cannot be read at all. */
  readonly value: unknown
  readonly report: Report
}

/** Reads the text; whatever is wrong with it stands in the report. Never throws. */
export function readSource(text: string): ParsedSource {
  const lines = new Map<string, number>()
  const report = createReport((path) => nearestLine(lines, path))
  if (Buffer.byteLength(text) > maxSourceBytes) {
    report.add([], {
      message: `is larger than ${maxSourceBytes / 1024 / 1024} MiB`,
      suggestion: 'No configuration is that large: is this the right file?'
    })
    return { value: undefined, report }
  }
  const counter = new LineCounter()
  const document = parseDocument(text, { prettyErrors: false, uniqueKeys: false, lineCounter: counter })
  const errors = [...document.errors, ...document.warnings]
  if (errors.length > 0) {
    const rows = text.split('\n')
    for (const error of errors.toSorted((a, b) => a.pos[0] - b.pos[0])) {
      // One problem a line: after its first error the rest of a line is misread.
      const line = Math.max(1, counter.linePos(error.pos[0]).line)
      report.add([], syntaxFault(error, rows[line - 1] ?? ''), line)
    }
    return { value: undefined, report }
  }
  return { value: createReader(document, counter, lines, report)(document.contents, [], 0), report }
}

function nearestLine(lines: ReadonlyMap<string, number>, path: Path): number | undefined {
  for (let length = path.length; length > 0; length--) {
    const line = lines.get(pathText(path.slice(0, length)))
    if (line !== undefined) return line
  }
  return undefined
}

function createReader(document: Document, counter: LineCounter, lines: Map<string, number>, report: Report) {
  let nodes = 0

  function read(node: unknown, path: Path, depth: number): unknown {
    // Aliases are followed by value: ten lines of them can stand for a billion nodes, or for themselves.
    if (++nodes > maxNodes || depth > maxDepth) {
      report.add(nodes > maxNodes ? [] : path, {
        message: nodes > maxNodes ? `has more than ${maxNodes} values` : `is nested deeper than ${maxDepth} levels`,
        suggestion: 'Look for an alias (*name) that repeats too much, or itself.'
      })
      return undefined
    }
    if (isAlias(node)) {
      const target = node.resolve(document)
      if (target === undefined)
        report.add(path, {
          message: 'refers to an anchor that is not defined before it',
          suggestion: 'Define it with & first, or put the text in quotes if it was meant to begin with *.'
        })
      return target === undefined ? undefined : read(target, path, depth + 1)
    }
    if (isScalar(node)) return scalar(node.value, path)
    if (isSeq(node)) {
      return node.items.map((item, index) => {
        const place = [...path, index]
        note(item, place)
        return read(item, place, depth + 1)
      })
    }
    return isMap(node) ? mapping(node.items, path, depth) : null
  }

  function scalar(value: unknown, path: Path): unknown {
    if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
      return value
    report.add(path, { message: 'is not a string, number, true or false', suggestion: 'Put it in quotes.' })
    return undefined
  }

  function mapping(
    items: readonly { key: unknown; value: unknown }[],
    path: Path,
    depth: number
  ): Record<string, unknown> {
    const result: Record<string, unknown> = {}
    for (const pair of items) {
      const key = keyText(pair.key)
      const place = [...path, key ?? '?']
      note(pair.key, place)
      if (key === undefined || key === '__proto__')
        report.add(place, { message: 'is no possible key', suggestion: 'Use a plain name.' })
      else if (key === '<<')
        report.add(place, {
          message: 'is a merge key, which YAML 1.2 does not have',
          suggestion: 'Write the keys out, or use an alias for a whole value.'
        })
      else if (Object.hasOwn(result, key))
        report.add(
          [...path, key],
          {
            message: `stands here twice, first on line ${lines.get(pathText(place)) ?? '?'}`,
            suggestion: 'Remove one of the two.'
          },
          lineOf(pair.key)
        )
      else result[key] = read(pair.value, place, depth + 1)
    }
    return result
  }

  function lineOf(node: unknown): number | undefined {
    const at = isScalar(node) || isMap(node) || isSeq(node) || isAlias(node) ? node.range?.[0] : undefined
    return at === undefined ? undefined : counter.linePos(at).line
  }

  function note(node: unknown, path: Path): void {
    const line = lineOf(node)
    const text = pathText(path)
    if (line !== undefined && !lines.has(text)) lines.set(text, line)
  }

  return read
}

/** Names such as 123 or true are read as written, not as the number or the truth value. */
function keyText(node: unknown): string | undefined {
  if (!isScalar(node)) return undefined
  return typeof node.value === 'string' ? node.value : node.source
}

function syntaxFault(error: YAMLError, row: string): Fault {
  const known = syntaxFaults[error.code]
  // `{ key: ${NAME} }` is the commonest of all: braces mean something else inside braces.
  if (known === undefined || known === syntaxFaults['UNEXPECTED_TOKEN'] || known === syntaxFaults['MISSING_CHAR']) {
    if (row.includes('${'))
      return { message: 'cannot be read as YAML', suggestion: `Put the reference in quotes: ${quoted('${NAME}')}.` }
  }
  return (
    known ?? {
      message: 'cannot be read as YAML',
      suggestion: 'Check the quotes, brackets and indentation of this line and the one above.'
    }
  )
}

const syntaxFaults: Readonly<Record<string, Fault>> = {
  BAD_INDENT: {
    message: 'is indented wrongly, or comes after a bracket that is not closed',
    suggestion: 'Indent it as much as its neighbours, with spaces, and check the brackets.'
  },
  TAB_AS_INDENT: { message: 'is indented with a tab', suggestion: 'Use spaces.' },
  BAD_DQ_ESCAPE: {
    message: 'has an unknown \\ escape between double quotes',
    suggestion: 'Write \\\\ for a backslash, or use single quotes.'
  },
  BAD_SCALAR_START: { message: 'begins with a character that YAML reserves', suggestion: 'Put the text in quotes.' },
  BLOCK_AS_IMPLICIT_KEY: { message: 'has a second ": " on one line', suggestion: 'Put the text in quotes.' },
  MISSING_CHAR: {
    message: 'lacks a quote, bracket, comma or colon',
    suggestion: 'Check the quotes and brackets of this line and the one above.'
  },
  MULTILINE_IMPLICIT_KEY: { message: 'lacks a colon after its key', suggestion: 'Write key: value.' },
  MULTIPLE_DOCS: {
    message: 'begins a second document',
    suggestion: 'Remove the line of three dashes: a configuration is one document.'
  },
  RESOURCE_EXHAUSTION: { message: 'is nested too deeply', suggestion: 'Check the brackets.' },
  TAG_RESOLVE_FAILED: { message: 'has a tag (!name), and none are read', suggestion: 'Remove the tag.' },
  UNEXPECTED_TOKEN: {
    message: 'cannot be read as YAML',
    suggestion: 'Check the quotes, brackets and indentation of this line and the one above.'
  }
}
