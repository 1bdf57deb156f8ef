// Tools that a server has only for clients that can answer its server requests: whoever declares the same sees and
// calls what a client of the server's own does, whichever era it speaks; and nobody else sees them.

import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema
} from '@modelcontextprotocol/sdk/types.js'
import t from 'tap'
import { gateway, key } from '../kit/gateway.ts'
import { everythingOverHttp, everythingOverStdio } from './kit/real-servers.ts'

type Host = Pick<Client, 'listTools' | 'callTool' | 'close'>

interface Declared extends Record<string, unknown> {
  readonly sampling?: Record<string, never>
  readonly elicitation?: { form: Record<string, never>; url?: Record<string, never> }
  readonly roots?: Record<string, never>
}

const able: Declared = { sampling: {}, elicitation: { form: {}, url: {} }, roots: {} }
const requestInit = { headers: { authorization: `Bearer ${key}` } }
const sampled = { model: 'none', role: 'assistant' as const, content: { type: 'text' as const, text: 'sampled' } }
const elicited = { action: 'accept' as const, content: { name: 'Ada' } }
const rooted = { roots: [{ uri: 'file:///home/ada', name: 'home' }] }

function older(capabilities: Declared): Client {
  const client = new Client({ name: 'host', version: '1' }, { capabilities })
  if (capabilities.sampling !== undefined) client.setRequestHandler(CreateMessageRequestSchema, async () => sampled)
  if (capabilities.elicitation !== undefined) client.setRequestHandler(ElicitRequestSchema, async () => elicited)
  if (capabilities.roots !== undefined) client.setRequestHandler(ListRootsRequestSchema, async () => rooted)
  return client
}

function newer(capabilities: Declared): ModernClient {
  const client = new ModernClient(
    { name: 'host', version: '1' },
    { capabilities, versionNegotiation: { mode: { pin: '2026-07-28' } } }
  )
  if (capabilities.sampling !== undefined) client.setRequestHandler('sampling/createMessage', () => sampled)
  if (capabilities.elicitation !== undefined) client.setRequestHandler('elicitation/create', () => elicited)
  if (capabilities.roots !== undefined) client.setRequestHandler('roots/list', () => rooted)
  return client
}

const made = await gateway(t, {
  upstreams: { everything: everythingOverStdio, remote: { type: 'http', url: await everythingOverHttp(t) } },
  endpoints: {
    local: { upstreams: ['everything'], prefix: '' },
    far: { upstreams: ['remote'], prefix: '' },
    both: { upstreams: ['everything', 'remote'] }
  },
  limits: { coldStartMs: 30_000 }
})
const urlOf = (endpoint: string): URL => new URL(made.url(endpoint))

const doors: ReadonlyArray<{
  readonly name: string
  readonly modern: boolean
  enter(endpoint: string, capabilities: Declared): Promise<Host>
}> = [
  {
    name: 'an legacy client',
    modern: false,
    async enter(endpoint, capabilities) {
      const client = older(capabilities)
      await client.connect(new StreamableHTTPClientTransport(urlOf(endpoint), { requestInit }))
      return client
    }
  },
  {
    name: 'a client of HTTP+SSE',
    modern: false,
    async enter(endpoint, capabilities) {
      const client = older(capabilities)
      await client.connect(
        new SSEClientTransport(new URL(urlOf(endpoint).href.replace(/mcp$/, 'sse')), {
          requestInit,
          eventSourceInit: {
            fetch: (url, init) => fetch(url, { ...init, headers: { ...init.headers, ...requestInit.headers } })
          }
        })
      )
      return client
    }
  },
  {
    name: 'a client of 2026-07-28',
    modern: true,
    async enter(endpoint, capabilities) {
      const client = newer(capabilities)
      await client.connect(new ModernTransport(urlOf(endpoint), { requestInit }))
      return client as unknown as Host
    }
  }
]

const namesOf = async (client: Host): Promise<string[]> =>
  (await client.listTools()).tools.map(({ name }) => name).toSorted()

async function direct(capabilities: Declared): Promise<Client> {
  const client = older(capabilities)
  t.teardown(() => client.close())
  await client.connect(
    new StdioClientTransport({ ...everythingOverStdio, args: [...everythingOverStdio.args], stderr: 'ignore' })
  )
  return client
}

const profiles: Readonly<Record<string, Declared>> = {
  nothing: {},
  sampling: { sampling: {} },
  'elicitation in forms': { elicitation: { form: {} } },
  everything: able
}
const asking = ['get-roots-list', 'trigger-elicitation-request', 'trigger-sampling-request', 'trigger-url-elicitation']

// All of them before the first test: tap takes the file for done while it waits with no test left, and then closes
// what the tests still need.
const own = await direct(able)
const namesFor: Record<string, readonly string[]> = {}
for (const [declared, capabilities] of Object.entries(profiles))
  namesFor[declared] = await namesOf(capabilities === able ? own : await direct(capabilities))

for (const [declared, capabilities] of Object.entries(profiles)) {
  const names = namesFor[declared] ?? []
  t.same(
    asking.filter((name) => names.includes(name)).length,
    declared === 'everything' ? 4 : declared === 'nothing' ? 0 : 1,
    `the server itself looks at who declares ${declared}`
  )
  for (const { name: who, enter } of doors) {
    t.test(`${who} that declares ${declared} sees what the server has for it`, async (t) => {
      for (const endpoint of ['local', 'far', 'both']) {
        const client = await enter(endpoint, capabilities)
        t.teardown(() => client.close())
        const seen =
          endpoint === 'both'
            ? ['everything', 'remote'].flatMap((prefix) => names.map((name) => `${prefix}__${name}`))
            : names
        t.same(await namesOf(client), seen.toSorted(), endpoint)
      }
    })
  }
}

for (const { name: who, enter } of doors) {
  for (const [endpoint, prefix] of [
    ['local', ''],
    ['far', ''],
    ['both', 'everything__'],
    ['both', 'remote__']
  ] as const) {
    t.test(
      `${who} is asked by the tools of ${prefix}${endpoint} what the server asks a client of its own`,
      async (t) => {
        const client = await enter(endpoint, able)
        t.teardown(() => client.close())
        for (const name of asking) {
          // The only one that needs more than it is given here.
          const args =
            name === 'trigger-sampling-request'
              ? { prompt: 'say it' }
              : name === 'trigger-url-elicitation'
                ? { url: 'https://example.com/here' }
                : {}
          const result = await client.callTool({ name: prefix + name, arguments: args })
          const expected = await own.callTool({ name, arguments: args })
          if (name === 'trigger-url-elicitation')
            t.match(result, { isError: expected.isError ?? undefined, content: [{ type: 'text' }] }, name)
          else t.same(result.content, expected.content, name)
        }
      }
    )
  }
}
