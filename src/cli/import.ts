// `import`: converts an mcp.json or claude_desktop_config.json to a configuration in YAML. Notes go to standard error.

import { readFile } from 'node:fs/promises'

import { stringify } from 'yaml'

import { ConfigError } from '../config/problems.ts'
import { importMcpJson } from '../config/mcpjson.ts'
import { printProblems, type Output } from './check.ts'

export interface ImportCommandOptions {
  readonly file: string
  readonly stdout: Output
  readonly stderr: Output
}

/** @returns the exit code: 0 imported, 1 not an mcp.json or not readable */
export async function runImport({ file, stdout, stderr }: ImportCommandOptions): Promise<number> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch {
    stderr.write(`${file} cannot be read. Give the path of an mcp.json or claude_desktop_config.json.\n`)
    return 1
  }
  try {
    const { config, notes } = importMcpJson(text, file)
    stdout.write(stringify(config, { lineWidth: 0 }))
    const keyNote =
      'Set GATEHOUSE_KEY to the API key that clients must send, at least 16 characters. Make one with: openssl ' +
      'rand -hex 32.'
    for (const note of [...notes, keyNote]) stderr.write(`note: ${note}\n`)
    return 0
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    printProblems(error, file, stderr)
    return 1
  }
}
