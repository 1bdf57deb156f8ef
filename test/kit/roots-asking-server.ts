// A stdio server of 2025-11-25 that asks for the roots as soon as its handshake is over, as many do, whatever is
// called. Its requests are answered when it has been answered itself, with what it was told; but for the tool `quick`.

import { createInterface } from 'node:readline'

type Json = Record<string, unknown>

const say = (message: Json): void => {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
}
let told: unknown
const waiting: Array<() => void> = []

function answer(method: string, params: Json): Json {
  switch (method) {
    case 'initialize':
      return {
        protocolVersion: params['protocolVersion'],
        capabilities: { tools: {}, prompts: {}, completions: {}, logging: {} },
        serverInfo: { name: 'eager', version: '1' }
      }
    case 'tools/list':
      return {
        tools: [
          { name: 'told', inputSchema: { type: 'object' } },
          { name: 'quick', inputSchema: { type: 'object' } }
        ]
      }
    case 'prompts/list':
      return { prompts: [{ name: 'told', arguments: [{ name: 'a' }] }] }
    case 'tools/call':
      return params['name'] === 'quick' ? { content: [] } : { content: [{ type: 'text', text: JSON.stringify(told) }] }
    case 'completion/complete':
      return { completion: { values: [JSON.stringify(told)] } }
    default:
      return {}
  }
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params, result, error } = JSON.parse(line) as {
    id?: unknown
    method?: string
    params?: Json
    result?: unknown
    error?: unknown
  }
  if (method === 'notifications/initialized') say({ id: 'early', method: 'roots/list' })
  else if (method === undefined) {
    told = result ?? error
    for (const go of waiting.splice(0)) go()
  } else if (id !== undefined) {
    const go = (): void => say({ id, result: answer(method, params ?? {}) })
    if (
      told === undefined &&
      ((method === 'tools/call' && params?.['name'] !== 'quick') || method === 'completion/complete')
    )
      waiting.push(go)
    else go()
  }
})
