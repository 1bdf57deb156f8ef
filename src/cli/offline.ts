// The commands that start nothing: `import` and `schema`.

import { readFile } from 'node:fs/promises'
import { stringify } from 'yaml'
import { ConfigError, countOf, problemLineIn } from '../config/problems.ts'
import { ConfigSchema } from '../config/schema/config.ts'
import { jsonText } from './printed.ts'

/** Where a command writes: process.stdout and its kin. */
export interface Output {
  write(text: string): unknown
}

/**
 * @param form of what `output` gets where the configuration cannot be used
 * @returns the exit code: that of the command, or 1 where the configuration cannot be used: then `output` says why
 */
export async function orProblems(
  file: string,
  output: Output,
  command: () => Promise<number>,
  form: 'text' | 'json' = 'text'
): Promise<number> {
  try {
    return await command()
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    if (form === 'json') {
      output.write(jsonText({ file, problems: error.problems }))
      return 1
    }
    for (const problem of error.problems) output.write(`${problemLineIn(file, problem)}\n`)
    output.write(`${countOf(error.problems.length, 'problem')} in ${file}\n`)
    return 1
  }
}

/** Converts an mcp.json or claude_desktop_config.json to a configuration in YAML. Notes go to standard error. */
export function runImport(file: string, stdout: Output, stderr: Output): Promise<number> {
  return orProblems(file, stderr, async () => {
    const text = await readFile(file, 'utf8').catch(() => undefined)
    if (text === undefined) {
      stderr.write(`${file} cannot be read. Give the path of an mcp.json or claude_desktop_config.json.\n`)
      return 1
    }
    const { importMcpJson } = await import('../config/hosts/mcpjson.ts')
    const { config, notes } = importMcpJson(text, file, process.cwd())
    stdout.write(stringify(config, { lineWidth: 0 }))
    const keyNote =
      'Set GATEHOUSE_KEY to the API key that clients must send, at least 16 characters. Make one with: openssl ' +
      'rand -hex 32.'
    const vaultNote =
      'Set GATEHOUSE_VAULT_KEY to the key under which accounts of people are kept. Make one with: openssl rand ' +
      '-base64 32.'
    const variables = variablesOf(config.tenants.demo.upstreams).filter(
      (name) => !notes.some((note) => note.includes(`Set ${name} `))
    )
    const variableNote =
      variables.length === 0
        ? []
        : [`Set in the environment, before the start, what the servers take from it: ${variables.join(', ')}.`]
    for (const note of [...notes, ...variableNote, keyNote, ...('vault' in config ? [vaultNote] : [])])
      stderr.write(`note: ${note}\n`)
    return 0
  })
}

/** The names of the variables without a default that upstreams refer to or inherit, but for the home folder. */
function variablesOf(upstreams: Readonly<Record<string, Readonly<Record<string, unknown>>>>): readonly string[] {
  const referred = JSON.stringify(upstreams).matchAll(/(?<!\$)\$\{([A-Za-z_]\w*)\}/g)
  const inherited = Object.values(upstreams).flatMap(({ inheritEnv }) => (Array.isArray(inheritEnv) ? inheritEnv : []))
  return [...new Set([...[...referred].map(([, name = '']) => name), ...inherited.map(String)])].filter(
    (name) => name !== 'HOME'
  )
}

/**
 * The JSON Schema (2020-12) of the configuration. The names of formats and the keyword `refused` are the gateway's own,
 * which validators ignore.
 */
export function configJsonSchema(): Readonly<Record<string, unknown>> {
  // The round trip through JSON removes the symbols that the library keeps on its objects.
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    ...(JSON.parse(JSON.stringify(ConfigSchema)) as Record<string, unknown>)
  }
}
