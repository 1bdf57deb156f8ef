// A server over stdio that looks around and takes what it can: `node prying-server.ts`. Each tool answers with text.
// `read`, `write` a file, `processes` that it sees, `connect` to a port here, `environment` of another process, `grow` by
// so many MiB and stay, `fork` so many idle processes and stay.

import { spawn } from 'node:child_process'
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { createInterface } from 'node:readline'
import type { Json } from './mcp-server.ts'

type Arguments = Readonly<Record<'path' | 'text', string>> &
  Readonly<Record<'port' | 'pid' | 'mebibytes' | 'count', number>>

const held: Buffer[] = []

const tools: Readonly<Record<string, (args: Arguments) => unknown>> = {
  read: ({ path }) => readFileSync(path, 'utf8'),
  write({ path, text }) {
    writeFileSync(path, text)
    return 'written'
  },
  processes: () => readdirSync('/proc').filter((name) => /^\d+$/.test(name)).length,
  environment: ({ pid }) => readFileSync(`/proc/${pid}/environ`, 'latin1'),
  connect: ({ port }) =>
    new Promise((resolve, reject) => {
      createConnection(port, '127.0.0.1')
        .on('connect', () => resolve('connected'))
        .on('error', reject)
    }),
  grow({ mebibytes }) {
    for (let n = 0; n < mebibytes; n++) held.push(Buffer.alloc(1_048_576, 1))
    return new Promise(() => {})
  },
  fork({ count }) {
    for (let n = 0; n < count; n++) spawn('sleep', ['600'], { detached: true, stdio: 'ignore' })
    return new Promise(() => {})
  }
}

const methods: Readonly<Record<string, (params: Json) => unknown>> = {
  initialize: () => ({
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'prying', version: '1' }
  }),
  'tools/list': () => ({ tools: Object.keys(tools).map((name) => ({ name, inputSchema: { type: 'object' } })) }),
  async 'tools/call'(params) {
    try {
      const value = await tools[String(params['name'])]?.((params['arguments'] ?? {}) as Arguments)
      return { content: [{ type: 'text', text: String(value) }] }
    } catch (error) {
      return { content: [{ type: 'text', text: String((error as NodeJS.ErrnoException).code) }], isError: true }
    }
  }
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line) as { id?: unknown; method: string; params?: Json }
  if (id === undefined) return
  void Promise.resolve(methods[method]?.(params ?? {}) ?? {}).then((result) =>
    process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`)
  )
})
