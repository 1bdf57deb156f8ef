// Scripted upstreams for what real servers do not show: two over HTTP in this process, one over stdio whose input is
// written down.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startUpstream, type HttpUpstream } from '../../kit/upstream.ts'
import type { Json } from '../../kit/mcp-server.ts'

export interface Scripted {
  readonly upstreams: Record<string, unknown>
  /** Upstream `plain`: answers with JSON where it can. */
  readonly plain: HttpUpstream
  /** Upstream `streamed`: answers with event streams always. */
  readonly streamed: HttpUpstream
  /** What all processes of upstream `local` have read so far. */
  localReceived(): Promise<Json[]>
}

interface Teardown {
  teardown(run: () => unknown): unknown
  testdir(): string
}

const stdioServer = fileURLToPath(new URL('../../kit/stdio-server.ts', import.meta.url))

export async function scripted(t: Teardown): Promise<Scripted> {
  const [plain, streamed] = await Promise.all([startUpstream(), startUpstream({ answers: 'sse' })])
  t.teardown(() => Promise.all([plain.close(), streamed.close()]))
  const input = join(t.testdir(), 'input.jsonl')
  return {
    upstreams: {
      plain: { type: 'http', url: plain.url },
      streamed: { type: 'http', url: streamed.url },
      local: { command: 'sh', args: ['-c', 'tee -a "$0" | "$1" "$2"', input, process.execPath, stdioServer] }
    },
    plain,
    streamed,
    localReceived: async () =>
      (await readFile(input, 'utf8').catch(() => ''))
        .split('\n')
        .filter((line) => line.endsWith('}'))
        .map((line) => JSON.parse(line) as Json)
  }
}

export const scriptedNames = ['plain', 'streamed', 'local'] as const
