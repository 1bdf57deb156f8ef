// `node long-answers-server.ts`: a stdio server whose tool `long` answers by so many characters, after so many
// notifications of progress of 900,000 characters each. So many log messages of that length follow, which belong to no
// call.

import { createInterface } from 'node:readline'

interface Incoming {
  readonly id?: number | string
  readonly method: string
  readonly params?: {
    readonly protocolVersion?: string
    readonly arguments?: { readonly chars?: number; readonly progress?: number; readonly logs?: number }
    readonly _meta?: { readonly progressToken?: unknown }
  }
}

const longText = 'x'.repeat(900_000)
const say = (message: object): boolean => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)

async function answer({ id, method, params }: Incoming): Promise<void> {
  if (id === undefined) return
  if (method === 'initialize') {
    const { protocolVersion } = params ?? {}
    say({
      id,
      result: { protocolVersion, capabilities: { tools: {}, logging: {} }, serverInfo: { name: 'long', version: '1' } }
    })
  } else if (method === 'tools/list')
    say({ id, result: { tools: [{ name: 'long', inputSchema: { type: 'object' } }] } })
  else if (method === 'tools/call') {
    const { chars = 0, progress = 0, logs = 0 } = params?.arguments ?? {}
    const { progressToken } = params?._meta ?? {}
    for (let n = 1; n <= progress; n++) {
      const isTaken = say({
        method: 'notifications/progress',
        params: { progressToken, progress: n, message: longText }
      })
      if (!isTaken) await new Promise((resolve) => process.stdout.once('drain', resolve))
    }
    say({ id, result: { content: [{ type: 'text', text: 'y'.repeat(chars) }] } })
    for (let n = 1; n <= logs; n++)
      say({ method: 'notifications/message', params: { level: 'info', data: { n, longText } } })
  } else say({ id, result: {} })
}

createInterface({ input: process.stdin }).on('line', (line) => void answer(JSON.parse(line) as Incoming))
