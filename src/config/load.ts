// A configuration file in, a frozen snapshot out; or every problem of the file at once.

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

import { Check } from 'typebox/schema'

import { compile, type Configuration } from './compile.ts'
import { ConfigError, type Problem } from './problems.ts'
import { resolveReferences } from './references.ts'
import { checkRules } from './rules.ts'
import { ConfigSchema } from './schema/schema.ts'
import { checkShape } from './schema/shape.ts'
import { readSource } from './source.ts'

export { ConfigError }

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
  let bytes: Uint8Array
  try {
    bytes = await readFile(path)
  } catch (error) {
    const missing = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    throw new ConfigError(path, [
      missing
        ? { path: '', message: 'there is no such file', suggestion: 'Check the path given with --config.' }
        : {
            path: '',
            message: 'the file cannot be read',
            suggestion: 'Check that it is a file and that its permissions allow reading it.'
          }
    ])
  }
  return compileConfig(decode(bytes, path), { ...options, path })
}

function decode(bytes: Uint8Array, path: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    // No line number can be given for bytes that are not text.
    throw new ConfigError(path, [
      { path: '', message: 'the file is not text in UTF-8', suggestion: 'Save it as UTF-8.' }
    ])
  }
}

/** @throws ConfigError and nothing else, whatever the text */
export function compileConfig(text: string, options: CompileOptions): Configuration {
  const folder = dirname(resolve(options.path))
  const { value: tree, report } = readSource(text)
  if (tree === null)
    report.add([], { message: 'the file is empty', suggestion: 'Start from the example in docs/config.md.' })
  if (tree === undefined || tree === null) throw new ConfigError(options.path, ordered(report.problems))

  const { value, isReference } = resolveReferences(
    tree,
    { env: options.env, readFile: (path) => readReferenced(resolve(folder, path)) },
    report
  )
  const config = checkShape(ConfigSchema, value, [], { report, isReference })
  checkRules(config, report, options.host)
  if (report.problems.length > 0) throw new ConfigError(options.path, ordered(report.problems))
  // checkShape explains faults; the validator guarantees the type.
  if (!Check(ConfigSchema, config))
    throw new ConfigError(options.path, [
      { path: '', message: 'does not match the schema', suggestion: 'Compare it with docs/config.md.' }
    ])
  return compile(config, { folder, dataDir: options.dataDir, host: options.host, port: options.port })
}

function ordered(problems: readonly Problem[]): readonly Problem[] {
  return problems.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0))
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
