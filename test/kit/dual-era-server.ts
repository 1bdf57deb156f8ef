// A server of both eras on the official SDK, as a process over stdio. It is written as servers of the older era are: it
// registers a tool for clients that declared sampling at the handshake, and asks by server requests, which the SDK
// refuses in 2026-07-28.

import { type CallToolResult, McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'

const text = (value: unknown): CallToolResult => ({ content: [{ type: 'text', text: JSON.stringify(value) }] })

serveStdio(() => {
  const mcp = new McpServer({ name: 'dual', version: '1' }, { capabilities: { tools: { listChanged: true } } })
  mcp.registerTool('plain', {}, () => text('plain'))
  mcp.registerTool('elicits', {}, async ({ mcpReq }) =>
    text(
      await mcpReq.elicitInput({
        mode: 'form',
        message: 'who?',
        requestedSchema: { type: 'object', properties: { name: { type: 'string' } } }
      })
    )
  )
  mcp.server.oninitialized = () => {
    if (mcp.server.getClientCapabilities()?.sampling === undefined) return
    mcp.registerTool('samples', {}, async ({ mcpReq }) =>
      text(
        await mcpReq.requestSampling({
          messages: [{ role: 'user', content: { type: 'text', text: 'hello' } }],
          maxTokens: 5
        })
      )
    )
  }
  return mcp
})
