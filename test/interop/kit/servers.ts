// Servers of the tour, as upstreams of a gateway: by command over stdio, or a process of their own that says `ready
// URL`.

import { type Teardown } from '../../kit/until.ts'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { compiledCode } from '../../kit/compiled-code.ts'
import type { Sdk } from './sdks.ts'

const program = fileURLToPath(new URL('../servers/server.ts', import.meta.url))

export interface Command {
  readonly command: string
  readonly args: readonly string[]
}

/** The server on this SDK, for `transport` on its command line. */
export const serverOf = (sdk: Sdk, transport: 'stdio' | 'http' | 'sse'): Command => ({
  command: process.execPath,
  args: [program, sdk.package, transport]
})

/** Starts a server that listens; killed with the test. @returns the URL of its ready line */
export async function startServer(t: Teardown, { command, args }: Command): Promise<string> {
  const child = spawn(command, args, {
    // Nothing of the test runner's own environment: it would load itself into the server.
    env: { PATH: process.env['PATH'], ...compiledCode },
    stdio: ['ignore', 'pipe', 'inherit']
  })
  const ended = once(child, 'close')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  for await (const line of createInterface(child.stdout)) {
    const url = /^ready (http:\S+)$/.exec(line)?.[1]
    if (url === undefined) continue
    child.stdout.resume()
    return url
  }
  throw new Error(`${command} ${args.join(' ')} ended before it was ready`)
}
