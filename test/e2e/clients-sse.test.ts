// Hosts that know only HTTP+SSE: the transport of the official SDK, current and old, against real and scripted servers.

import t from 'tap'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { CreateMessageRequestSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import type { OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js'
import { Client as Client13 } from 'sdk-1.13/client/index.js'
import { SSEClientTransport as SSEClientTransport13 } from 'sdk-1.13/client/sse.js'
import { gateway, key } from '../kit/gateway.ts'
import { issuer } from '../kit/issuer.ts'
import { sseUrl } from '../kit/http-sse-client.ts'
import { heardDuring, stepsOf } from '../kit/progress.ts'
import { startUpstream } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'
import { everythingOverStdio } from './kit/real-servers.ts'

interface Host {
  readonly name: string
  readonly Client: typeof Client
  readonly Transport: typeof SSEClientTransport
}

// The same API in all that these tests use; only the names of its types are others.
const hosts: readonly Host[] = [
  { name: 'SDK 1.32', Client, Transport: SSEClientTransport },
  {
    name: 'SDK 1.13',
    Client: Client13 as unknown as typeof Client,
    Transport: SSEClientTransport13 as unknown as typeof SSEClientTransport
  }
]

for (const { name, Client, Transport } of hosts) {
  t.test(name, async (t) => {
    const upstream = await startUpstream({ answers: 'sse' })
    t.teardown(() => upstream.close())
    const acme = await gateway(t, {
      upstreams: { everything: everythingOverStdio, up: { type: 'http', url: upstream.url } },
      endpoints: { default: { upstreams: ['everything', 'up'] }, up: { upstreams: ['up'], prefix: '' } },
      limits: { coldStartMs: 30_000 }
    })
    const visit = async (endpoint: string): Promise<Client> => {
      const client = new Client({ name, version: '1' }, { capabilities: { sampling: {}, roots: {} } })
      t.teardown(() => client.close())
      const headers = { authorization: `Bearer ${key}` }
      // The old one sends `requestInit` with its POSTs only.
      await client.connect(
        new Transport(new URL(sseUrl(acme.url(endpoint))), {
          requestInit: { headers },
          eventSourceInit: {
            fetch: (url, init) =>
              fetch(url, { ...init, headers: { ...Object.fromEntries(new Headers(init?.headers)), ...headers } })
          }
        })
      )
      return client
    }
    const client = await visit('default')

    await t.test('lists, calls, resources, prompts and completion of a real server', async (t) => {
      const { tools } = await client.listTools()
      t.ok(tools.some((tool) => tool.name === 'everything__echo') && tools.some((tool) => tool.name === 'up__echo'))
      t.match(await client.callTool({ name: 'everything__echo', arguments: { message: 'hello' } }), {
        content: [{ type: 'text', text: 'Echo: hello' }]
      })
      await t.rejects(client.callTool({ name: 'nobody__echo' }), { code: -32602 })
      const uri = 'gatehouse://everything/demo://resource/dynamic/text/42'
      t.match(await client.readResource({ uri }), { contents: [{ uri, text: /^Resource 42: / }] })
      t.match(await client.getPrompt({ name: 'everything__simple-prompt' }), { messages: [{ role: 'user' }] })
      t.same(
        (
          await client.complete({
            ref: { type: 'ref/prompt', name: 'everything__completable-prompt' },
            argument: { name: 'department', value: 'S' }
          })
        ).completion.values,
        ['Sales', 'Support']
      )
      t.same(await client.ping(), {})
    })

    await t.test('a hundred calls at once', async (t) => {
      const results = await Promise.all(
        Array.from({ length: 100 }, (_, n) =>
          client.callTool({ name: n % 2 === 0 ? 'up__echo' : 'everything__echo', arguments: { message: String(n) } })
        )
      )
      results.forEach(({ content }, n) =>
        t.match((content as Array<{ text: string }>)[0]?.text, n % 2 === 0 ? `{"message":"${n}"}` : `Echo: ${n}`)
      )
    })

    await t.test('progress, and a call that is cancelled on the way', async (t) => {
      const heard = await heardDuring(client, () =>
        client.callTool(
          { name: 'everything__trigger-long-running-operation', arguments: { duration: 0.5, steps: 5 } },
          undefined,
          { onprogress() {} }
        )
      )
      t.same(stepsOf(heard), [...Array.from({ length: 5 }, (_, at) => [at + 1, 5]), 'result'])
      const stop = new AbortController()
      await t.rejects(
        client.callTool({ name: 'up__slow' }, undefined, {
          signal: stop.signal,
          onprogress: () => stop.abort(new Error('enough'))
        }),
        { message: /enough/ }
      )
      await until('the upstream hears of it', () =>
        upstream.server.received.some(({ method }) => method === 'notifications/cancelled')
      )
    })

    await t.test('a server samples', async (t) => {
      const direct = await visit('up')
      direct.setRequestHandler(CreateMessageRequestSchema, async ({ params }) => ({
        role: 'assistant',
        content: { type: 'text', text: `for ${params.maxTokens}` },
        model: 'the model'
      }))
      const params = { messages: [{ role: 'user', content: { type: 'text', text: 'x' } }], maxTokens: 77 }
      const { content } = await direct.callTool({
        name: 'ask',
        arguments: { method: 'sampling/createMessage', params }
      })
      t.match(JSON.parse((content as Array<{ text: string }>)[0]?.text ?? ''), {
        result: { model: 'the model', content: { text: 'for 77' } }
      })
    })

    await t.test('a list that changes is told', async (t) => {
      const direct = await visit('up')
      const changed = new Promise<void>((resolve) => {
        direct.setNotificationHandler(ToolListChangedNotificationSchema, async () => resolve())
      })
      await direct.callTool({ name: 'echo' })
      await until('the upstream can be heard', () => upstream.streams() > 0)
      await direct.callTool({ name: 'grow', arguments: { name: `grown-for-${name}` } })
      await changed
      t.ok((await direct.listTools()).tools.some((tool) => tool.name === `grown-for-${name}`))
    })

    await t.test('when it leaves, its session and its process are gone', async (t) => {
      const before = upstream.sessions.size
      const direct = await visit('up')
      await direct.callTool({ name: 'echo' })
      t.equal(upstream.sessions.size, before + 1)
      await direct.close()
      await until('the upstream session ended', () => upstream.sessions.size === before)
    })
  })
}

t.test(
  'a host that logs in finds the issuer by the challenge and asks for a token of the URL that it was given',
  async (t) => {
    const provider = await issuer(t)
    const upstream = await startUpstream()
    t.teardown(() => upstream.close())
    const acme = await gateway(t, {
      upstreams: { up: { type: 'http', url: upstream.url } },
      auth: { issuers: [{ issuer: provider.url }] }
    })
    const url = sseUrl(acme.url())
    let asked: string | undefined
    let tokens: OAuthTokens | undefined
    const login = (): ConstructorParameters<typeof SSEClientTransport>[1] => ({
      authProvider: {
        redirectUrl: 'http://127.0.0.1/callback',
        clientMetadata: { redirect_uris: ['http://127.0.0.1/callback'] },
        clientInformation: () => ({ client_id: 'host' }),
        tokens: () => tokens,
        saveTokens: () => {},
        saveCodeVerifier: () => {},
        codeVerifier: () => '',
        redirectToAuthorization(url) {
          asked = url.searchParams.get('resource') ?? undefined
        }
      }
    })
    await t.rejects(new Client({ name: 'host', version: '1' }).connect(new SSEClientTransport(new URL(url), login())), {
      name: 'Error'
    })
    t.equal(
      asked,
      url,
      'the SDK refuses metadata of another resource, so that of the Streamable HTTP URL would have ended here'
    )
    tokens = { access_token: await provider.token({ resource: asked ?? '' }), token_type: 'Bearer' }
    const client = new Client({ name: 'host', version: '1' })
    t.teardown(() => client.close())
    await client.connect(new SSEClientTransport(new URL(url), login()))
    t.match((await client.listTools()).tools, [{ name: 'echo' }])
  }
)

t.test(
  'a host of both transports falls back as the specification says: its POST is refused, its GET is answered',
  async (t) => {
    const upstream = await startUpstream()
    t.teardown(() => upstream.close())
    const acme = await gateway(t, { upstreams: { up: { type: 'http', url: upstream.url } } })
    const url = new URL(sseUrl(acme.url()))
    const requestInit = { headers: { authorization: `Bearer ${key}` } }
    await t.rejects(
      new Client({ name: 'both', version: '1' }).connect(new StreamableHTTPClientTransport(url, { requestInit })),
      { code: 405 }
    )
    const client = new Client({ name: 'both', version: '1' })
    t.teardown(() => client.close())
    await client.connect(new SSEClientTransport(url, { requestInit }))
    t.same(await client.ping(), {})
  }
)
