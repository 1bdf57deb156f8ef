// `${NAME}`, `${NAME:-default}` and `${file:PATH}` inside the strings of a configuration; `$${` stands for `${`. What
// is inserted is not resolved again.

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { resolve } from 'node:path'

import { isOutOfDescriptors } from '../limits/descriptors.ts'
import { principalNames, principalPartOf, type PrincipalPart, type PrincipalText } from './auth/principal-text.ts'
import { quoted, type Fault, type Path, type Problem, type Report } from './problems.ts'
import { isCredential } from './redis-address.ts'
import { secretForms } from './secret-values.ts'
import { isTree } from './shape.ts'

const maxReferencedBytes = 64 * 1024

export type Environment = Readonly<Record<string, string | undefined>>

/** The text at a place, and each part of it that came from a reference. */
export interface InsertedText {
  readonly path: Path
  readonly texts: readonly string[]
  /** Of the parts those from files, and from variables that hold secrets by their names or by how they look. */
  readonly secrets: readonly string[]
  /** The same text, where parts of it follow from who calls. */
  readonly principal?: PrincipalText
}

/**
 * References that cannot be resolved stay and are reported; those in keys and in upstreams with `disabled: true` are
 * not resolved.
 * @param folder the base of relative paths
 * @returns a copy of the tree; `isReference`: does this string consist of one reference? Then it may stand for a number
 * or a boolean; `files`: the paths of all files that it refers to, read or not; `inserted`: what came from references
 * @throws the error of the system where no descriptor is left: the files are not to blame
 */
export function resolveReferences(tree: unknown, folder: string, env: Environment, report: Report) {
  const whole = new Set<string>()
  const files = new Set<string>()
  const inserted: InsertedText[] = []

  function walk(value: unknown, path: Path): unknown {
    if (typeof value === 'string') return value.includes('${') ? text(value, path) : value
    if (Array.isArray(value)) return value.map((item, index) => walk(item, [...path, index]))
    if (!isTree(value) || (isUpstream(path) && value['disabled'] === true)) return value
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, walk(item, [...path, key])]))
  }

  function text(value: string, path: Path): string {
    const unset: string[] = []
    const unreadable: string[] = []
    const absent: string[] = []
    const parts: string[] = []
    const secrets: string[] = []
    const principal: Array<string | PrincipalPart> = []
    let malformed = false
    let unknown = false
    let literal = ''
    let copied = 0
    const result = value.replace(
      /\$\$\{|\$\{(?:([^{}]*)\})?/g,
      (all: string, inner: string | undefined, at: number) => {
        literal += value.slice(copied, at)
        copied = at + all.length
        const { length } = literal
        const part = principalPartOf(inner ?? '')
        if (part === undefined) {
          const given = replacement(all, inner)
          literal += isStore(path) && given !== all ? inAddress(given, literal, value.slice(copied)) : given
          return literal.slice(length)
        }
        if (part === 'unknown') unknown = true
        else principal.push(literal, part)
        literal = ''
        return all
      }
    )

    function replacement(all: string, inner: string | undefined): string {
      if (all === '$${') return '${'
      const { file, name, fallback } = referencePattern.exec(inner ?? '')?.groups ?? {}
      if (file !== undefined) {
        const path = resolve(folder, file)
        files.add(path)
        try {
          const read = readReferenced(path)
            .toString('utf8')
            .replace(/\r?\n$/, '')
          parts.push(read)
          secrets.push(read)
          return read
        } catch (error) {
          if (isOutOfDescriptors(error)) throw error
          unreadable.push(`${quoted(file)} (${reason(error)})`)
          if (isAbsent(error)) absent.push(file)
          return all
        }
      }
      if (name === undefined) malformed = true
      else {
        // As in a shell: `:-` also replaces an empty value.
        const found = Object.hasOwn(env, name) ? env[name] : undefined
        const given = fallback === undefined ? found : found || fallback
        if (given === undefined) unset.push(name)
        else {
          parts.push(given)
          secrets.push(...secretForms(name, given))
          return given
        }
      }
      return all
    }

    // What is wrong with all variables set and all files there comes first, so that --no-env does not hide it.
    const inText = principalFault(unknown, principal.length > 0, path)
    const isElse = inText !== undefined || malformed || absent.length < unreadable.length
    const fault = inText ?? referenceFault(malformed, isElse ? [] : unset, unreadable)
    if (fault !== undefined) report.add(path, fault[0], fault[1], undefined, isElse ? {} : lacking(unset, absent))
    else if (/^\$\{[^{}]*\}$/.test(value)) whole.add(JSON.stringify(path))
    if (principal.length > 0) {
      const whole = [...principal, literal + value.slice(copied)]
      inserted.push({ path, texts: [result, ...parts], secrets, principal: whole })
    } else if (parts.length > 0) inserted.push({ path, texts: [result, ...parts], secrets })
    return result
  }

  return { value: walk(tree, []), isReference: (path: Path) => whole.has(JSON.stringify(path)), files, inserted }
}

const referencePattern = /^(?:file:(?<file>.+)|(?<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?<fallback>[^]*))?)$/

const isUpstream = (path: Path): boolean => path.length === 4 && path[0] === 'tenants' && path[2] === 'upstreams'

const isStore = (path: Path): boolean => path.length === 1 && path[0] === 'store'

/**
 * What is inserted as a password stands for itself, whatever it consists of. A colon stays one: it may be name and
 * password together.
 */
function inAddress(given: string, before: string, after: string): string {
  const isPart = isCredential(before, after.replace(/\$\{[^{}]*\}/g, ''))
  return isPart ? encodeURIComponent(given).replaceAll('%3A', ':') : given
}

const isHeader = (path: Path): boolean =>
  path.length === 6 && path[0] === 'tenants' && path[2] === 'upstreams' && path[4] === 'headers'

function principalFault(unknown: boolean, known: boolean, path: Path): Fault | undefined {
  if (unknown)
    return [
      'refers to what no caller has',
      `Known are ${principalNames.map((name) => `\${principal.${name}}`).join(', ')}, and claims of the token by ` +
        'their names, such as ${principal.claims.email}.'
    ]
  return known && !isHeader(path)
    ? ['refers to who calls, which only headers of upstreams over HTTP can', 'Give the value itself.']
    : undefined
}

/** The text itself is not repeated: it may be a secret that happens to hold a "${". */
function referenceFault(
  malformed: boolean,
  unset: readonly string[],
  unreadable: readonly string[]
): Fault | undefined {
  const [ending, verb, them] = unset.length > 1 ? ['s', 'are', 'them'] : ['', 'is', 'it']
  if (malformed)
    return [
      'has a ${ that begins no reference',
      'Write ${NAME}, ${NAME:-default} or ${file:PATH}; a literal ${ is written $${.'
    ]
  if (unset.length > 0)
    return [
      `needs the environment variable${ending} ${unset.join(', ')}, which ${verb} not set`,
      `Set ${them}, or give a default as in \${${unset[0]}:-value}.`
    ]
  if (unreadable.length > 0)
    return [
      `refers to a file that cannot be read: ${unreadable.join(', ')}`,
      'The path is relative to the folder of the configuration file; check that it exists and may be read.'
    ]
  return undefined
}

const lacking = (variables: readonly string[], files: readonly string[]): Pick<Problem, 'variables' | 'files'> => ({
  ...(variables.length > 0 && { variables }),
  ...(files.length > 0 && { files })
})

/** Whether the file is not there, or may not be read, as on a machine that does not have the secrets. */
const isAbsent = (error: unknown): boolean => ['ENOENT', 'ENOTDIR', 'EACCES'].includes(codeOf(error) ?? '')

const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined

function reason(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown reason'
  const code = codeOf(error)
  return code === 'ENOENT' ? 'there is no such file' : code === 'EACCES' ? 'no permission' : (code ?? error.message)
}

/** Reads ordinary files of limited size only: a pipe would block, and a device may never end. */
export function readReferenced(path: string): Buffer {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    if (!fstatSync(file).isFile()) throw new Error('not an ordinary file')
    const buffer = Buffer.alloc(maxReferencedBytes + 1)
    let length = 0
    for (let read = -1; read !== 0 && length < buffer.length; length += read)
      read = readSync(file, buffer, length, buffer.length - length, null)
    if (length > maxReferencedBytes) throw new Error(`larger than ${maxReferencedBytes / 1024} KiB`)
    return buffer.subarray(0, length)
  } finally {
    closeSync(file)
  }
}
