// The reference server as a process: `--transport http|stdio|sse --port N` (0: any free one), over stdio also `--state
// FOLDER`. One line says that it is ready: `ready URL` on standard output, or over stdio `ready` on standard error,
// because standard output belongs to the protocol there.

import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { parseArgs } from 'node:util'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { createEverything } from './everything.ts'
import { httpSse, streamableHttp } from './http.ts'
import { createShared } from './shared.ts'

const {
  values: { transport, port, state }
} = parseArgs({
  options: {
    transport: { type: 'string', default: 'http' },
    port: { type: 'string', default: '0' },
    state: { type: 'string' }
  }
})

switch (transport) {
  case 'http':
    await listen(streamableHttp(), '/mcp')
    break
  case 'sse':
    await listen(httpSse(), '/sse')
    break
  case 'stdio':
    await createEverything(createShared(state)).connect(new StdioServerTransport())
    process.stderr.write('ready\n')
    // A host ends a stdio server by closing its input (basic/transports, "stdio").
    process.stdin.once('end', () => process.exit(0))
    break
  default:
    process.stderr.write(`--transport ${transport}: there is http, stdio and sse\n`)
    process.exitCode = 2
}

async function listen(server: ReturnType<typeof streamableHttp>, path: string): Promise<void> {
  server.listen(Number(port), '127.0.0.1')
  await once(server, 'listening')
  process.stdout.write(`ready http://127.0.0.1:${(server.address() as AddressInfo).port}${path}\n`)
}
