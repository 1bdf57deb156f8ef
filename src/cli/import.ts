// `import`: an mcp.json or claude_desktop_config.json in, a gatehouse configuration in YAML out; what had to change goes to standard error.

import { readFile } from 'node:fs/promises'

import { stringify } from 'yaml'

import { ConfigError } from '../config/load.ts'
import { importMcpJson } from '../config/mcpjson.ts'
import { printProblems } from './check.ts'
import type { Output } from './check.ts'

export interface ImportCommand {
  readonly file: string
  readonly stdout: Output
  readonly stderr: Output
}

/** @returns the exit code: 0 imported, 1 not such a file */
export async function runImport ({ file, stdout, stderr }: ImportCommand): Promise<number> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch {
    // Missing, a folder, or not ours to read: to the caller it is all the same.
    stderr.write(`${file} cannot be read. Give the path of an mcp.json or claude_desktop_config.json.\n`)
    return 1
  }
  try {
    const { config, notes } = importMcpJson(text, { path: file })
    stdout.write(stringify(config, { lineWidth: 0 }))
    const keyNote = 'Set GATEHOUSE_KEY to the API key that clients shall send, at least 16 characters; make one with: openssl rand -hex 32.'
    for (const note of [...notes, keyNote]) stderr.write(`note: ${note}\n`)
    return 0
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    printProblems(error, file, stderr)
    return 1
  }
}
