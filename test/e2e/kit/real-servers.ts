// The three real upstreams of the end-to-end tests: server-everything and server-memory over stdio, server-everything
// over HTTP.

import { type Teardown, until } from '../../kit/until.ts'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { compiledCode } from '../../kit/compiled-code.ts'
import { freePort } from '../../kit/free-port.ts'

const pathOf = (specifier: string): string => fileURLToPath(import.meta.resolve(specifier))
const everything = pathOf('@modelcontextprotocol/server-everything/dist/index.js')
const memory = pathOf('@modelcontextprotocol/server-memory/dist/index.js')

interface Program {
  readonly command: string
  readonly args: readonly string[]
  readonly env: Record<string, string>
}

export const everythingOverStdio: Program = {
  command: process.execPath,
  args: [everything, 'stdio'],
  env: { ...compiledCode }
}

/** @param folder where it keeps its graph */
export const memoryOverStdio = (folder: string): Program => ({
  command: process.execPath,
  args: [memory],
  env: { ...compiledCode, MEMORY_FILE_PATH: join(folder, 'memory.jsonl') }
})

/** @returns the URL of a server-everything of the test's own */
export async function everythingOverHttp(t: Teardown): Promise<string> {
  // It says nothing of port 0, so it is given one, which somebody may have taken by the time it listens.
  for (let tries = 0; tries < 3; tries++) {
    const port = await freePort()
    const guard = new URL('../../../src/cli/loopback-only.mjs', import.meta.url).href
    const child = spawn(process.execPath, ['--import', guard, everything, 'streamableHttp'], {
      env: { PORT: String(port), ...compiledCode },
      stdio: 'ignore'
    })
    const ended = once(child, 'exit')
    t.teardown(async () => {
      child.kill('SIGKILL')
      await ended
    })
    const url = `http://127.0.0.1:${port}/mcp`
    const answers = await until('server-everything answers over HTTP', async () =>
      child.exitCode !== null
        ? 'ended'
        : await fetch(url).then(
            () => 'up',
            () => undefined
          )
    )
    if (answers === 'up') return url
  }
  throw new Error('server-everything does not start')
}

/** @returns the `upstreams` of a tenant: everything, memory and remote, in this order */
export async function realUpstreams(t: Teardown & { testdir(): string }): Promise<Record<string, unknown>> {
  return {
    everything: everythingOverStdio,
    memory: memoryOverStdio(t.testdir()),
    remote: { type: 'http', url: await everythingOverHttp(t) }
  }
}
