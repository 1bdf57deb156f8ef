// Resolves `${NAME}`, `${NAME:-default}` and `${file:PATH}` inside strings; `$${` stands for `${`. Inserted values are
// not resolved again.

import { quoted, type Path, type Report } from './problems.ts'

export interface ReferenceSources {
  readonly env: Readonly<Record<string, string | undefined>>
  /**
   * The text of the file that a reference names. Throws where it cannot be read; the message of the error is reported.
   */
  readonly readFile: (path: string) => string
}

export interface ResolvedTree {
  readonly value: unknown
  /** Does this string consist of one reference? Then it may stand for a number or a boolean. */
  readonly isReference: (path: Path) => boolean
}

/**
 * A copy of the tree with every reference resolved; those that cannot be resolved stay and are reported.
 * References in keys and in upstreams with `disabled: true` are not resolved.
 */
export function resolveReferences(tree: unknown, sources: ReferenceSources, report: Report): ResolvedTree {
  const whole = new Set<string>()

  function walk(value: unknown, path: Path): unknown {
    if (typeof value === 'string') return value.includes('${') ? text(value, path) : value
    if (Array.isArray(value)) return value.map((item, index) => walk(item, [...path, index]))
    if (typeof value !== 'object' || value === null) return value
    if (isDisabledUpstream(value, path)) return value
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, walk(item, [...path, key])]))
  }

  function text(value: string, path: Path): string {
    const unset: string[] = []
    const unreadable: string[] = []
    let malformed = false
    const result = value.replace(/\$\$\{|\$\{([^{}]*)(\}?)/g, (all: string, inner: string | undefined, end: string) => {
      if (inner === undefined) return '${'
      const reference = end === '}' ? parse(inner) : undefined
      if (reference === undefined) {
        malformed = true
        return all
      }
      if ('file' in reference) {
        try {
          return sources.readFile(reference.file).replace(/\r?\n$/, '')
        } catch (error) {
          unreadable.push(`${quoted(reference.file)} (${reason(error)})`)
          return all
        }
      }
      // As in a shell: `:-` also replaces an empty value.
      const found = Object.hasOwn(sources.env, reference.name) ? sources.env[reference.name] : undefined
      if (found !== undefined && (found !== '' || reference.fallback === undefined)) return found
      if (reference.fallback !== undefined) return reference.fallback
      unset.push(reference.name)
      return all
    })
    // The text itself is not repeated: it may be a secret that happens to hold a "${".
    if (malformed)
      report.add(path, {
        message: 'has a ${ that begins no reference',
        suggestion: 'Write ${NAME}, ${NAME:-default} or ${file:PATH}; a literal ${ is written $${.'
      })
    else if (unset.length > 0)
      report.add(path, {
        message:
          `needs the environment variable${unset.length > 1 ? 's' : ''} ${unset.join(', ')}, which ` +
          `${unset.length > 1 ? 'are' : 'is'} not set`,
        suggestion: `Set ${unset.length > 1 ? 'them' : 'it'}, or give a default as in \${${unset[0]}:-value}.`
      })
    else if (unreadable.length > 0)
      report.add(path, {
        message: `refers to a file that cannot be read: ${unreadable.join(', ')}`,
        suggestion:
          'The path is relative to the folder of the configuration file; check that it exists and may be read.'
      })
    else if (/^\$\{[^{}]*\}$/.test(value)) whole.add(placeKey(path))
    return result
  }

  const value = walk(tree, [])
  return { value, isReference: (path) => whole.has(placeKey(path)) }
}

const placeKey = (path: Path): string => JSON.stringify(path)

type Reference = { readonly name: string; readonly fallback: string | undefined } | { readonly file: string }

function parse(inner: string): Reference | undefined {
  const file = /^file:(.+)$/.exec(inner)?.[1]
  if (file !== undefined) return { file }
  const match = /^([A-Za-z_][A-Za-z0-9_]*)(?::-([^]*))?$/.exec(inner)
  return match?.[1] === undefined ? undefined : { name: match[1], fallback: match[2] }
}

function reason(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown reason'
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  return code === 'ENOENT' ? 'there is no such file' : code === 'EACCES' ? 'no permission' : (code ?? error.message)
}

function isDisabledUpstream(value: object, path: Path): boolean {
  return (
    path.length === 4 &&
    path[0] === 'tenants' &&
    path[2] === 'upstreams' &&
    'disabled' in value &&
    value.disabled === true
  )
}
