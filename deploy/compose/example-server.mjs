// A small MCP server (2025-11-25) for docker-compose.yml, without dependencies: over stdio, or with the argument `http`
// over Streamable HTTP on port 8080. Put your own in its place.

import { createServer } from 'node:http'
import { hostname } from 'node:os'
import { createInterface } from 'node:readline'

const tools = [
  {
    name: 'echo',
    description: 'Says back what it is told',
    inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] }
  },
  { name: 'where', description: 'Says on which machine this server runs', inputSchema: { type: 'object' } }
]

const text = (words) => ({ content: [{ type: 'text', text: words }] })

const results = {
  initialize: () => ({
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'example', version: '1.0.0' }
  }),
  ping: () => ({}),
  'tools/list': () => ({ tools }),
  'tools/call': ({ name, arguments: given }) =>
    name === 'echo' ? text(String(given?.text)) : name === 'where' ? text(hostname()) : undefined
}

/** The answer to a message; undefined where it wants none. */
function answer({ id, method, params }) {
  if (id === undefined || method === undefined) return undefined
  const known = Object.hasOwn(results, method)
  const result = known ? results[method](params ?? {}) : undefined
  if (result !== undefined) return { jsonrpc: '2.0', id, result }
  const error = known ? { code: -32602, message: 'Unknown tool' } : { code: -32601, message: 'Method not found' }
  return { jsonrpc: '2.0', id, error }
}

async function serve(request, response) {
  if (request.method !== 'POST') return response.writeHead(405).end()
  let body = ''
  for await (const chunk of request.setEncoding('utf8')) body += chunk
  const said = answer(JSON.parse(body))
  if (said === undefined) return response.writeHead(202).end()
  return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(said))
}

if (process.argv[2] === 'http') {
  const server = createServer((request, response) => void serve(request, response)).listen(8080)
  for (const signal of ['SIGTERM', 'SIGINT'])
    process.on(signal, () => {
      server.close()
      server.closeAllConnections()
    })
} else {
  createInterface({ input: process.stdin }).on('line', (line) => {
    const said = answer(JSON.parse(line))
    if (said !== undefined) process.stdout.write(`${JSON.stringify(said)}\n`)
  })
}
