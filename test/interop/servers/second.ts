// The server of the tour on the second SDK, as a process that speaks both eras: `node second.ts stdio|http`. Over HTTP,
// one line on standard output says `ready URL`; its legacy half keeps no sessions there, as that SDK has it by default.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { toNodeHandler, type NodeIncomingMessageLike } from '@modelcontextprotocol/node'
import {
  McpServer,
  ResourceNotFoundError,
  acceptedContent,
  createMcpHandler,
  fromJsonSchema,
  inputRequired,
  inputResponse,
  type CallToolResult,
  type InputRequests,
  type InputRequiredResult,
  type ServerContext
} from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC'
const words = ['alpha', 'alpine', 'beta']
const one = 'test://one'
const embedded = { uri: one, mimeType: 'text/plain', text: 'one' }

interface Telling {
  tools(): void
  updated(uri: string): void
}

let cancelled = 0
let grown = false

const text = (value: string): CallToolResult => ({ content: [{ type: 'text', text: value }] })
const asking = (inputRequests: InputRequests): InputRequiredResult => inputRequired({ inputRequests })

async function call(
  name: string,
  args: Record<string, unknown>,
  { mcpReq }: ServerContext,
  tell: Telling
): Promise<CallToolResult | InputRequiredResult> {
  const token = mcpReq._meta?.progressToken
  const progress = async (step: number, total: number): Promise<void> => {
    if (token !== undefined)
      await mcpReq.notify({ method: 'notifications/progress', params: { progressToken: token, progress: step, total } })
  }
  switch (name) {
    case 'echo':
      return { ...text(String(args['text'])), structuredContent: args['structured'] ?? { text: args['text'] } }
    case 'progress':
      for (let step = 1; step <= Number(args['steps']); step++) await progress(step, Number(args['steps']))
      return text('done')
    case 'wait':
      await progress(0, 1)
      await new Promise((resolve) => {
        mcpReq.signal.addEventListener('abort', resolve)
      })
      cancelled++
      return text('cancelled')
    case 'cancelled':
      return text(String(cancelled))
    case 'content':
      return {
        content: [
          { type: 'text', text: 'text' },
          { type: 'image', data: png, mimeType: 'image/png' },
          { type: 'resource', resource: embedded },
          { type: 'audio', data: 'YXVkaW8=', mimeType: 'audio/wav' },
          { type: 'resource_link', uri: one, name: 'one' }
        ]
      }
    case 'fail':
      return { ...text('it went wrong'), isError: true }
    case 'touch':
      tell.updated(one)
      return text('touched')
    case 'log':
      await mcpReq.log('info', 'a line', 'fixture')
      return text('logged')
    case 'grow':
      grown = true
      tell.tools()
      return text('grown')
    case 'sample': {
      const told = inputResponse(mcpReq.inputResponses, 'sampled')
      if (told.kind === 'sampling') return text((told.result.content as { text: string }).text)
      return asking({
        sampled: inputRequired.createMessage({
          messages: [{ role: 'user', content: { type: 'text', text: 'hello' } }],
          maxTokens: 77
        })
      })
    }
    case 'roots': {
      const told = inputResponse(mcpReq.inputResponses, 'roots')
      return told.kind === 'roots'
        ? text(told.roots.map(({ uri }) => uri).join(' '))
        : asking({ roots: inputRequired.listRoots() })
    }
    case 'elicit': {
      const told = inputResponse(mcpReq.inputResponses, 'name')
      if (told.kind === 'elicit' && told.action !== 'accept') return text(told.action)
      const content = acceptedContent(mcpReq.inputResponses, 'name')
      if (content !== undefined) return text(`accept ${String(content['name'])}`)
      return inputRequired({
        inputRequests: {
          name: inputRequired.elicit({
            message: 'who?',
            requestedSchema: { type: 'object', properties: { name: { type: 'string' } } }
          })
        },
        requestState: 'asked once'
      })
    }
    default:
      throw new Error(`no tool ${name}`)
  }
}

const tools = [
  'echo',
  'progress',
  'wait',
  'cancelled',
  'content',
  'fail',
  'touch',
  'log',
  'grow',
  'sample',
  'roots',
  'elicit'
]
const anything = fromJsonSchema({ type: 'object' })

function make(tell: Telling): { mcp: McpServer; grow: () => void } {
  const mcp = new McpServer(
    { name: 'fixture', version: '2' },
    {
      capabilities: {
        tools: { listChanged: true },
        prompts: {},
        resources: { subscribe: true },
        logging: {},
        completions: {}
      }
    }
  )
  for (const name of tools)
    mcp.registerTool(name, { description: `the ${name} tool`, inputSchema: anything }, (args, context) =>
      call(name, args as Record<string, unknown>, context, tell)
    )
  const extra = mcp.registerTool('grown', { description: 'the grown tool' }, () => text('grown'))
  if (!grown) extra.disable()
  const { server } = mcp
  server.setRequestHandler('resources/list', () => ({ resources: [{ uri: one, name: 'one' }] }))
  server.setRequestHandler('resources/templates/list', () => ({
    resourceTemplates: [{ uriTemplate: 'test://item/{id}', name: 'item' }]
  }))
  server.setRequestHandler('resources/read', ({ params: { uri } }) => {
    if (uri === one) return { contents: [embedded] }
    const id = /^test:\/\/item\/(.+)$/.exec(uri)?.[1]
    if (id === undefined) throw new ResourceNotFoundError(uri)
    return { contents: [{ uri, mimeType: 'text/plain', text: `item ${id}` }] }
  })
  server.setRequestHandler('resources/subscribe', () => ({}))
  server.setRequestHandler('resources/unsubscribe', () => ({}))
  server.setRequestHandler('prompts/list', () => ({
    prompts: [{ name: 'greet', arguments: [{ name: 'who', required: true }] }]
  }))
  server.setRequestHandler('prompts/get', ({ params }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `hello ${params.arguments?.['who']}` } }]
  }))
  server.setRequestHandler('completion/complete', ({ params }) => ({
    completion: { values: words.filter((word) => word.startsWith(params.argument.value)) }
  }))
  return { mcp, grow: () => extra.enable() }
}

if (process.argv[2] === 'http') {
  const handler = createMcpHandler(
    () =>
      make({ tools: () => handler.notify.toolsChanged(), updated: (uri) => handler.notify.resourceUpdated(uri) }).mcp
  )
  const handle = toNodeHandler(handler)
  const http = createServer((request, response) => {
    void handle(request as NodeIncomingMessageLike, response)
  })
  await new Promise<void>((resolve) => {
    http.listen(0, '127.0.0.1', resolve)
  })
  process.stdout.write(`ready http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp\n`)
} else {
  serveStdio(() => {
    const made = make({
      tools: () => made.grow(),
      updated: (uri) => {
        void made.mcp.server.sendResourceUpdated({ uri })
      }
    })
    return made.mcp
  })
  process.stdin.once('end', () => process.exit(0))
}
