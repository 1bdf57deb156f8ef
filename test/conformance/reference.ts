// The reference server for a test: the process to start, and the URL it says it is ready at.

import { type Teardown } from '../kit/until.ts'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { compiledCode } from '../kit/compiled-code.ts'

/** The reference servers, by the requirement set that they meet. */
const mains = {
  '2025-11-25': fileURLToPath(new URL('server/main.ts', import.meta.url)),
  '2026-07-28': fileURLToPath(new URL('modern/main.ts', import.meta.url))
}
export type Requirements = keyof typeof mains

/**
 * What an upstream over stdio is configured with.
 * @param folder for compiled code, since the suite opens forty sessions and each is a process of its own; and for what
 * these have in common
 */
export const stdioReference = (folder: string, requirements: Requirements = '2025-11-25') => ({
  command: process.execPath,
  args: [mains[requirements], '--transport', 'stdio', ...(requirements === '2025-11-25' ? ['--state', folder] : [])],
  env: { NODE_COMPILE_CACHE: folder, ...compiledCode }
})

/** Starts the reference server on a free port of loopback; killed with the test. @returns its MCP URL */
export async function startReference(
  t: Teardown,
  transport: 'http' | 'sse',
  requirements: Requirements = '2025-11-25'
): Promise<string> {
  const child = spawn(process.execPath, [mains[requirements], '--transport', transport], {
    // Nothing more of the test runner's own environment: it would load itself into the server.
    env: { PATH: process.env['PATH'], ...compiledCode },
    stdio: ['ignore', 'pipe', 'inherit']
  })
  const ended = once(child, 'close')
  t.teardown(async () => {
    child.kill()
    await ended
  })
  for await (const line of createInterface(child.stdout)) {
    const url = /^ready (http:\S+)$/.exec(line)?.[1]
    if (url !== undefined) return url
  }
  throw new Error('the reference server ended before it was ready')
}
