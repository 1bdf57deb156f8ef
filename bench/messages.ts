// The traffic of the benches: one small tool call and its answer.

export const toolText = 'The quick brown fox jumps over the lazy dog.'

export function toolCall(id: number, name: string): string {
  return JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: { text: toolText } } })
}

export function toolResult(params: Record<string, unknown> | undefined): unknown {
  const { text } = (params?.['arguments'] ?? {}) as { text?: string }
  return { content: [{ type: 'text', text }], isError: false }
}

export const initializeParams = {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'bench', version: '1.0.0' }
}
