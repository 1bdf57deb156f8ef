// The traffic of the benches: what clients send, what servers answer, and the tools that these have.

export const toolText = 'The quick brown fox jumps over the lazy dog.'
export const legacyRevision = '2025-11-25'
export const modernRevision = '2026-07-28'

/** Of the text in a large result. */
export const largeBytes = 65_536
export const progressEvents = 10
export const progressMs = 500

type Json = Readonly<Record<string, unknown>>

export function toolCall(id: number, name: string, meta?: Json): string {
  return request(id, 'tools/call', {
    name,
    arguments: { text: toolText },
    ...(meta === undefined ? {} : { _meta: meta })
  })
}

export function toolResult(params: Json | undefined): unknown {
  const { text } = (params?.['arguments'] ?? {}) as { text?: string }
  return { content: [{ type: 'text', text }], isError: false }
}

export const initializeParams = {
  protocolVersion: legacyRevision,
  capabilities: {},
  clientInfo: { name: 'bench', version: '1.0.0' }
}

export const request = (id: number, method: string, params?: Json): string =>
  JSON.stringify({ jsonrpc: '2.0', id, method, ...(params === undefined ? {} : { params }) })

/** What every request of 2026-07-28 carries. */
export const envelope: Json = {
  'io.modelcontextprotocol/protocolVersion': modernRevision,
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/tasks': {} } }
}

/** Tools that do something, then others that fill a list: about 620 bytes each. */
export function toolsOf(count: number): Json[] {
  return Array.from({ length: count }, (_, at) => ({
    name: ['echo', 'large', 'progress', 'task'][at] ?? `tool_${at}`,
    title: `Tool number ${at}`,
    description: 'Does something useful with the text that it is given, and says how it went. '.repeat(3).trim(),
    inputSchema: {
      type: 'object',
      properties: {
        text: { type: 'string', description: 'What to work on, in plain words, as short as can be.' },
        limit: { type: 'integer', minimum: 1, maximum: 100, description: 'How many results to return.' },
        verbose: { type: 'boolean', description: 'Say more about each of them.' }
      },
      required: ['text']
    }
  }))
}
