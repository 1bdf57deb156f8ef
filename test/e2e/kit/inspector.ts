// The Inspector's command line client, as `npx @modelcontextprotocol/inspector --cli` runs it.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { compiledCode } from '../../kit/compiled-code.ts'

const launcher = fileURLToPath(
  new URL('../../../node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js', import.meta.url)
)

export interface Inspected {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
  /** The result that it printed, with `--format json`. */
  readonly result: Record<string, unknown>
}

/**
 * @param home its home folder: what it remembers of servers and tokens must not come from, or go to, the person's own
 */
export async function inspect(args: readonly string[], home: string): Promise<Inspected> {
  const child = spawn(process.execPath, [launcher, '--cli', ...args], {
    cwd: home,
    env: { PATH: process.env['PATH'], HOME: home, ...compiledCode },
    stdio: ['ignore', 'pipe', 'pipe']
  })
  const [[code], stdout, stderr] = (await Promise.all([
    once(child, 'close'),
    text(child.stdout),
    text(child.stderr)
  ])) as [[number], string, string]
  return {
    code,
    stdout,
    stderr,
    get result() {
      return (JSON.parse(stdout) as { result: Record<string, unknown> }).result
    }
  }
}
