// mcp-remote between a host that knows stdio only and the gateway, by each transport that it can be told to use.

import { fileURLToPath } from 'node:url'
import t from 'tap'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import * as types from '@modelcontextprotocol/sdk/types.js'
import { compiledCode } from '../kit/compiled-code.ts'
import { key } from '../kit/gateway.ts'
import { startHouse } from '../kit/replicas.ts'
import { sseUrl } from '../kit/http-sse-client.ts'
import { capabilitiesOf, newest } from './kit/sdks.ts'
import { serverOf, startServer } from './kit/servers.ts'
import { tour } from './kit/tour.ts'

const program = fileURLToPath(new URL('../../node_modules/mcp-remote/dist/proxy.js', import.meta.url))
const house = await startHouse(t, {
  upstreams: { up: { type: 'http', url: await startServer(t, serverOf(newest, 'http')) } },
  endpoints: { default: { upstreams: ['up'], prefix: '' } },
  limits: { coldStartMs: 30_000 }
})
const same = (own: string): string => own
const home = t.testdir()

const bridge = (url: string, transport: string, bearer: string): StdioClientTransport =>
  new StdioClientTransport({
    command: process.execPath,
    args: [program, url, '--transport', transport, '--allow-http', '--header', `Authorization: Bearer ${bearer}`],
    // Where it would remember tokens: not the person's own folder.
    env: { PATH: process.env['PATH'] ?? '', HOME: home, MCP_REMOTE_CONFIG_DIR: home, ...compiledCode },
    stderr: 'ignore'
  })

for (const [transport, url] of [
  ['http-only', house.url()],
  ['sse-only', sseUrl(house.url())]
] as const) {
  t.test(`mcp-remote with --transport ${transport}`, async (t) => {
    const client = new Client({ name: 'host', version: '1' }, { capabilities: capabilitiesOf('2025-11-25') })
    t.teardown(() => client.close())
    await client.connect(bridge(url, transport, key))
    const steps = tour({
      client,
      types,
      clientKnows: '2025-11-25',
      serverKnows: newest.revision,
      name: same,
      uri: same
    })
    for (const { name, run } of steps) await t.test(name, run)
  })
}

t.test('its own default tries Streamable HTTP first, and gets it', async (t) => {
  const client = new Client({ name: 'host', version: '1' })
  t.teardown(() => client.close())
  await client.connect(bridge(house.url(), 'http-first', key))
  t.ok((await client.listTools()).tools.length > 0)
})
