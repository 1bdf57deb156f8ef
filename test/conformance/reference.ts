// The reference server for a test: the process to start, and the URL it says it is ready at.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const main = fileURLToPath(new URL('server/main.ts', import.meta.url))

interface Teardown { teardown (run: () => unknown): unknown }

/**
 * What an upstream over stdio is configured with.
 * @param cache a folder for compiled code: the suite opens forty sessions, and each is a process of its own
 */
export const stdioReference = (cache: string) => ({ command: process.execPath, args: [main, '--transport', 'stdio'], env: { NODE_COMPILE_CACHE: cache } })

/** Starts the reference server on a free port of loopback; killed with the test. @returns its MCP URL */
export async function startReference (t: Teardown, transport: 'http' | 'sse'): Promise<string> {
  const child = spawn(process.execPath, [main, '--transport', transport, '--port', '0'], {
    // Nothing of the test runner's own environment: it would load itself into the server.
    env: { PATH: process.env['PATH'] },
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
