// A configuration file in, a frozen snapshot out; or every problem of the file at once.

import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

import { compile, type Configuration } from './compile.ts'
import { ConfigError } from './problems.ts'
import { resolveReferences, type Environment } from './references.ts'
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

  const { value, isReference, inserted } = resolveReferences(tree, folder, env, report)
  const config = checkShape(ConfigSchema, value, report, isReference)
  checkRules(config, report, { host, port, inserted })
  if (report.problems().length > 0) throw new ConfigError(path, report.problems())
  // What checkShape accepts has the type of the schema: test/config/shape.test.ts holds it against a validator.
  return compile(config as ConfigInput, { folder, dataDir, host, port, inserted })
}
