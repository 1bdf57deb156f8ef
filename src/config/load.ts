// A configuration file in, a frozen snapshot out; or every problem of the file at once. On the way `${NAME}`,
// `${NAME:-default}` and `${file:PATH}` are resolved inside strings; `$${` stands for `${`. What is inserted is not
// resolved again.

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

import { Check } from 'typebox/schema'

import { compile, type Configuration } from './compile.ts'
import { ConfigError, quoted, type Fault, type Path, type Report } from './problems.ts'
import { checkRules } from './rules.ts'
import { ConfigSchema } from './schema.ts'
import { checkShape, isTree } from './shape.ts'
import { readSource } from './source.ts'

const maxReferencedBytes = 64 * 1024

export interface LoadOptions {
  /** Where `${NAME}` comes from. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** `--data`: the folder of the file store, which becomes `gatehouse.db`. */
  readonly dataDir?: string | undefined
  /** `--host` and `--port` override the file; the rules about loopback apply to them. */
  readonly host?: string | undefined
  readonly port?: number | undefined
}

export interface CompileOptions extends LoadOptions {
  /** Path of the file: for messages, and as the base of relative paths. */
  readonly path: string
}

/** @throws ConfigError also where the file cannot be read */
export async function loadConfig(path: string, options: LoadOptions): Promise<Configuration> {
  const bytes = await readFile(path).catch((error: unknown) => {
    const missing = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    throw missing
      ? wholeFileError(path, 'there is no such file', 'Check the path given with --config.')
      : wholeFileError(
          path,
          'the file cannot be read',
          'Check that it is a file and that its permissions allow reading it.'
        )
  })
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    // No line number can be given for bytes that are not text.
    throw wholeFileError(path, 'the file is not text in UTF-8', 'Save it as UTF-8.')
  }
  return compileConfig(text, { ...options, path })
}

const wholeFileError = (file: string, message: string, suggestion: string): ConfigError =>
  new ConfigError(file, [{ path: '', message, suggestion }])

/** @throws ConfigError and nothing else, whatever the text */
export function compileConfig(text: string, { path, env, dataDir, host, port }: CompileOptions): Configuration {
  const folder = dirname(resolve(path))
  const { value: tree, report } = readSource(text)
  if (tree === null) report.add([], 'the file is empty', 'Start from the example in docs/config.md.')
  if (tree === undefined || tree === null) throw new ConfigError(path, report.problems())

  const { value, isReference } = resolveReferences(tree, folder, env, report)
  const config = checkShape(ConfigSchema, value, report, isReference)
  checkRules(config, report, host)
  if (report.problems().length > 0) throw new ConfigError(path, report.problems())
  // checkShape explains faults; the validator guarantees the type.
  if (!Check(ConfigSchema, config))
    throw wholeFileError(path, 'does not match the schema', 'Compare it with docs/config.md.')
  return compile(config, { folder, dataDir, host, port })
}

/**
 * References that cannot be resolved stay and are reported; those in keys and in upstreams with `disabled: true` are
 * not resolved.
 * @returns a copy of the tree; `isReference`: does this string consist of one reference? Then it may stand for a number
 * or a boolean
 */
function resolveReferences(tree: unknown, folder: string, env: LoadOptions['env'], report: Report) {
  const whole = new Set<string>()

  function walk(value: unknown, path: Path): unknown {
    if (typeof value === 'string') return value.includes('${') ? text(value, path) : value
    if (Array.isArray(value)) return value.map((item, index) => walk(item, [...path, index]))
    if (!isTree(value) || (isUpstream(path) && value['disabled'] === true)) return value
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, walk(item, [...path, key])]))
  }

  function text(value: string, path: Path): string {
    const unset: string[] = []
    const unreadable: string[] = []
    let malformed = false
    const result = value.replace(/\$\$\{|\$\{(?:([^{}]*)\})?/g, (all: string, inner: string | undefined) => {
      if (all === '$${') return '${'
      const { file, name, fallback } = referencePattern.exec(inner ?? '')?.groups ?? {}
      if (file !== undefined) {
        try {
          return readReferenced(resolve(folder, file)).replace(/\r?\n$/, '')
        } catch (error) {
          unreadable.push(`${quoted(file)} (${reason(error)})`)
          return all
        }
      }
      if (name === undefined) malformed = true
      else {
        // As in a shell: `:-` also replaces an empty value.
        const found = Object.hasOwn(env, name) ? env[name] : undefined
        const given = fallback === undefined ? found : found || fallback
        if (given !== undefined) return given
        unset.push(name)
      }
      return all
    })
    const fault = referenceFault(malformed, unset, unreadable)
    if (fault !== undefined) report.add(path, ...fault)
    else if (/^\$\{[^{}]*\}$/.test(value)) whole.add(JSON.stringify(path))
    return result
  }

  return { value: walk(tree, []), isReference: (path: Path) => whole.has(JSON.stringify(path)) }
}

const referencePattern = /^(?:file:(?<file>.+)|(?<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?<fallback>[^]*))?)$/

const isUpstream = (path: Path): boolean => path.length === 4 && path[0] === 'tenants' && path[2] === 'upstreams'

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

function reason(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown reason'
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  return code === 'ENOENT' ? 'there is no such file' : code === 'EACCES' ? 'no permission' : (code ?? error.message)
}

/** Reads ordinary files of limited size only: a pipe would block, and a device may never end. */
function readReferenced(path: string): string {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    if (!fstatSync(file).isFile()) throw new Error('not an ordinary file')
    const buffer = Buffer.alloc(maxReferencedBytes + 1)
    let length = 0
    for (let read = -1; read !== 0 && length < buffer.length; length += read)
      read = readSync(file, buffer, length, buffer.length - length, null)
    if (length > maxReferencedBytes) throw new Error(`larger than ${maxReferencedBytes / 1024} KiB`)
    return buffer.toString('utf8', 0, length)
  } finally {
    closeSync(file)
  }
}
