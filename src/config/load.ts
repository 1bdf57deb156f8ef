// Loads a configuration file: returns a frozen snapshot, or throws with all problems of the file.

import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

import { isOutOfDescriptors } from '../limits/descriptors.ts'
import { compile, type Configuration } from './compile.ts'
import { isHostFile } from './hosts/host-file.ts'
import { ConfigError } from './problems.ts'
import { resolveReferences, type Environment, type InsertedText } from './references.ts'
import { checkRules } from './rules.ts'
import { ConfigSchema, type ConfigInput } from './schema/config.ts'
import { checkShape } from './shape.ts'
import { readSource } from './source.ts'

export interface LoadOptions {
  /** Where `${NAME}` comes from. */
  readonly env: Environment
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

/** By what was compiled, of which they are no part: that is compared and recorded as what it says. */
const digests = new WeakMap<Configuration, string>()

/**
 * @param config of this module
 * @returns equal ones are of equal configurations: of what was read, files and variables included, without comments
 */
export const configDigest = (config: Configuration): string | undefined => digests.get(config)

/** @throws ConfigError also where the file cannot be read; else as `readConfig` */
export const loadConfig = async (path: string, options: LoadOptions): Promise<Configuration> =>
  compileConfig(await readConfig(path), { ...options, path })

/** @throws ConfigError where it cannot be read, or is no text; the error of the system where no descriptor is left */
export async function readConfig(path: string): Promise<string> {
  const bytes = await readFile(path).catch((error: unknown) => {
    if (isOutOfDescriptors(error)) throw error
    const missing = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    throw missing
      ? wholeFileError(path, 'there is no such file', 'Check the path.')
      : wholeFileError(
          path,
          'the file cannot be read',
          'Check that it is a file and that its permissions allow reading it.'
        )
  })
  const text = textOf(bytes)
  // No line number can be given for bytes that are not text.
  if (text === undefined) throw wholeFileError(path, 'the file is not text in UTF-8', 'Save it as UTF-8.')
  if (isHostFile(text, path))
    throw wholeFileError(
      path,
      'this is the file of a host, such as an mcp.json, and no configuration',
      `Serve it as it is with: gatehouse serve --mcp-json ${path}. Make a configuration of it with: ` +
        `gatehouse import ${path}`
    )
  return text
}

/** @returns undefined where it is none */
function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

const wholeFileError = (file: string, message: string, suggestion: string): ConfigError =>
  new ConfigError(file, [{ path: '', message, suggestion }])

/** A valid configuration, with what references have inserted. */
export interface JudgedConfig {
  readonly config: ConfigInput
  readonly inserted: readonly InsertedText[]
  readonly digest: string
}

/** @throws ConfigError and nothing else, whatever the text; the error of the system where no descriptor is left */
export const compileConfig = (text: string, options: CompileOptions): Configuration =>
  compiled(judgeConfig(text, options), options)

export function compiled(
  { config, inserted, digest }: JudgedConfig,
  { path, dataDir, host, port }: CompileOptions
): Configuration {
  const made = compile(config, { folder: dirname(resolve(path)), dataDir, host, port, inserted })
  digests.set(made, digest)
  return made
}

/** @throws as `compileConfig` */
export function judgeConfig(text: string, { path, env, host, port }: CompileOptions): JudgedConfig {
  const folder = dirname(resolve(path))
  const { value: tree, report } = readSource(text)
  if (tree === null) report.add([], 'the file is empty', 'Start from the example in docs/config.md.')
  if (tree === undefined || tree === null) throw new ConfigError(path, report.problems())

  const { value, isReference, inserted } = resolveReferences(tree, folder, env, report)
  const config = checkShape(ConfigSchema, value, report, isReference)
  checkRules(config, report, { host, port, inserted })
  if (report.problems().length > 0) throw new ConfigError(path, report.problems())
  // What checkShape accepts has the type of the schema: test/config/shape.test.ts holds it against a validator.
  const digest = createHash('sha256')
    .update(JSON.stringify([config, inserted]))
    .digest('hex')
  return { config: config as ConfigInput, inserted, digest }
}
