// What the MCP servers of the bench answer, whatever carries it: the handshake of either era, a list, four tools, and
// a task that never ends. It checks nothing that is not needed, so that what is measured is not it.

import { largeBytes, legacyRevision, modernRevision, toolResult, toolsOf } from '../messages.ts'

export interface Message {
  readonly id?: number | string
  readonly method?: string
  readonly params?: {
    readonly name?: string
    readonly task?: unknown
    readonly taskId?: string
    readonly _meta?: { readonly progressToken?: unknown }
  }
}

export type Era = 'legacy' | 'modern'

const serverInfo = { name: 'bench-upstream', version: '1.0.0' }
const line = 'Line of a large document.\n'
const largeResult = JSON.stringify(
  toolResult({ arguments: { text: line.repeat(Math.ceil(largeBytes / line.length)).slice(0, largeBytes) } })
)
const task = {
  taskId: 'bench-task',
  status: 'working',
  createdAt: '2026-01-01T00:00:00Z',
  lastUpdatedAt: '2026-01-01T00:00:00Z',
  ttl: 3_600_000,
  pollInterval: 1_000
}
const cached = { ttlMs: 600_000, cacheScope: 'public' }
const lists = new Map<string, string>()

/** @returns the text of the answer to a request */
export function answerTo({ id, method, params }: Message, era: Era, tools: number): string {
  const text = resultText(method, params, era, tools)
  return text === undefined
    ? `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":{"code":-32601,"message":"Method not found"}}`
    : `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${text}}`
}

function resultText(
  method: string | undefined,
  params: Message['params'],
  era: Era,
  tools: number
): string | undefined {
  const isModern = era === 'modern'
  switch (method) {
    case 'tools/call': {
      if (params?.task !== undefined) return JSON.stringify({ task })
      const text = params?.name === 'large' ? largeResult : JSON.stringify(toolResult(params))
      return isModern ? `{"resultType":"complete",${text.slice(1)}` : text
    }
    case 'tools/list': {
      const key = `${era} ${tools}`
      let text = lists.get(key)
      if (text === undefined) {
        const list = {
          tools: toolsOf(tools).map((tool) => (isModern || tool['name'] !== 'task' ? tool : { ...tool, execution }))
        }
        lists.set(key, (text = JSON.stringify(isModern ? { resultType: 'complete', ...list, ...cached } : list)))
      }
      return text
    }
    case 'initialize':
      return isModern
        ? undefined
        : JSON.stringify({ protocolVersion: legacyRevision, capabilities: legacyCapabilities, serverInfo })
    case 'server/discover':
      return isModern
        ? JSON.stringify({
            resultType: 'complete',
            supportedVersions: [modernRevision],
            capabilities: { tools: {} },
            ...cached
          })
        : undefined
    case 'tasks/get':
      return isModern ? undefined : JSON.stringify(task)
    case 'ping':
      return '{}'
    default:
      return undefined
  }
}

// Only what works as nothing but a task becomes one for clients of the other era.
const execution = { taskSupport: 'required' }
const legacyCapabilities = { tools: {}, tasks: { requests: { tools: { call: {} } }, cancel: {} } }
