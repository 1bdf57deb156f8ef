// Hosts by their own OAuth code, unchanged: what they know is the URL of the endpoint.

import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from '@modelcontextprotocol/client'
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport as SseTransport1 } from '@modelcontextprotocol/sdk/client/sse.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { decodeJwt } from 'jose'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { until } from '../kit/until.ts'
import { authorizationServer } from '../kit/authorization-server.ts'
import { browser } from '../kit/browser.ts'
import { compiledCode } from '../kit/compiled-code.ts'
import { freePort } from '../kit/free-port.ts'
import { gateway } from '../kit/gateway.ts'
import { startUpstream } from '../kit/upstream.ts'
import { documentedClient, loginGateway, ownNetwork, redirectUri, refresh, register } from './kit.ts'

/**
 * What an app keeps of an authorization, for both generations of the SDK.
 * @param document URL of its metadata, which is its id where it can be
 */
function app(document?: string) {
  const kept: Record<string, unknown> = {}
  const provider = {
    ...(document !== undefined && { clientMetadataUrl: document }),
    redirectUrl: redirectUri,
    clientMetadata: { client_name: 'An App', redirect_uris: [redirectUri], token_endpoint_auth_method: 'none' },
    clientInformation: () => kept['client'] as never,
    saveClientInformation: (client: unknown) => void (kept['client'] = client),
    tokens: () => kept['tokens'] as never,
    saveTokens: (tokens: unknown) => void (kept['tokens'] = tokens),
    redirectToAuthorization: (url: URL) => void (kept['url'] = url),
    saveCodeVerifier: (verifier: string) => void (kept['verifier'] = verifier),
    codeVerifier: () => String(kept['verifier'])
  }
  return { kept, provider }
}

const idOf = (kept: Record<string, unknown>): string => (kept['client'] as { readonly client_id: string }).client_id

async function consent(kept: Record<string, unknown>): Promise<URL> {
  const person = browser()
  const page = await person.go(String(kept['url']), redirectUri)
  return (await person.press(page, '/allow', redirectUri)).url
}

t.test('@modelcontextprotocol/sdk 1.32 at the URL of HTTP+SSE', async (t) => {
  const front = await loginGateway(t)
  const { kept, provider } = app()
  const open = () => new SseTransport1(new URL(front.url().replace(/mcp$/, 'sse')), { authProvider: provider })
  const first = open()
  await t.rejects(new Client1({ name: 'an app', version: '1' }).connect(first as never), { message: /Unauthorized/ })
  const person = browser()
  const page = await person.go(String(kept['url']), redirectUri)
  t.ok(page.html.includes(`<dd>${front.url()}</dd>`), 'people know an endpoint by one URL')
  const back = (await person.press(page, '/allow', redirectUri)).url
  await first.finishAuth(back.searchParams.get('code') ?? '')
  const { access_token: token } = kept['tokens'] as { readonly access_token: string }
  t.equal(decodeJwt(token).aud, front.url().replace(/mcp$/, 'sse'))
  const client = new Client1({ name: 'an app', version: '1' })
  t.teardown(() => client.close())
  await client.connect(open() as never)
  t.match(await client.callTool({ name: 'files__echo', arguments: { text: 'hello' } }), { content: [{ type: 'text' }] })
  t.equal((await refresh(front, { clientId: idOf(kept), body: kept['tokens'] as never })).status, 200)
})

t.test('@modelcontextprotocol/sdk 1.32', async (t) => {
  const front = await loginGateway(t)
  const { kept, provider } = app()
  const open = () => new Transport1(new URL(front.url()), { authProvider: provider })
  const first = open()
  await t.rejects(new Client1({ name: 'an app', version: '1' }).connect(first as never), { message: /Unauthorized/ })
  const back = await consent(kept)
  await first.finishAuth(back.searchParams.get('code') ?? '')
  const client = new Client1({ name: 'an app', version: '1' })
  t.teardown(() => client.close())
  await client.connect(open() as never)
  t.ok((await client.listTools()).tools.length > 0)
  t.match(await client.callTool({ name: 'files__echo', arguments: { text: 'hello' } }), { content: [{ type: 'text' }] })
})

t.test('@modelcontextprotocol/client 2.4', async (t) => {
  const front = await loginGateway(t)
  const { kept, provider } = app()
  const open = () => new Transport2(new URL(front.url()), { authProvider: provider as never })
  const first = open()
  await t.rejects(new Client2({ name: 'an app', version: '1' }).connect(first))
  const back = await consent(kept)
  await first.finishAuth(back.searchParams as never)
  const client = new Client2({ name: 'an app', version: '1' })
  t.teardown(() => client.close())
  await client.connect(open())
  t.ok((await client.listTools()).tools.length > 0)
})

/** Both generations of the SDK. */
const sdks: ReadonlyArray<{
  readonly sdk: string
  open(url: string, provider: ReturnType<typeof app>['provider']): Transport1 | Transport2
  client(): Client1 | Client2
  /** What it wants of the way back. */
  answer(back: URL): unknown
}> = [
  {
    sdk: 'sdk 1.32',
    open: (url, authProvider) => new Transport1(new URL(url), { authProvider }),
    client: () => new Client1({ name: 'an app', version: '1' }),
    answer: (back) => back.searchParams.get('code')
  },
  {
    sdk: 'client 2.4',
    open: (url, authProvider) => new Transport2(new URL(url), { authProvider: authProvider as never }),
    client: () => new Client2({ name: 'an app', version: '1' }),
    answer: (back) => back.searchParams
  }
]

for (const { sdk, open, client: hostOf, answer } of sdks) {
  t.test(`@modelcontextprotocol/${sdk} whose id is the URL of its metadata document registers nowhere`, async (t) => {
    const front = await loginGateway(t, { top: ownNetwork, login: { registrationsPerHour: 1 } })
    const { clientId, asked } = await documentedClient(t, { client_name: 'A documented app' })
    const { kept, provider } = app(clientId)
    const first = open(front.url(), provider)
    await t.rejects(hostOf().connect(first as never))
    t.equal(new URL(String(kept['url'])).searchParams.get('client_id'), clientId)
    const person = browser()
    const page = await person.go(String(kept['url']), redirectUri)
    t.match(page.html, /A documented app[^]*<dd>localhost:\d+<\/dd>/, 'the person sees its name, and whose it is')
    const { url } = await person.press(page, '/allow', redirectUri)
    await first.finishAuth(answer(url) as never)
    const client = hostOf()
    t.teardown(() => client.close())
    await client.connect(open(front.url(), provider) as never)
    const result = await client.callTool({ name: 'files__echo', arguments: { text: 'hello' } })
    t.match(result, { content: [{ type: 'text' }] })
    t.ok(asked() > 0)
    const { access_token: token } = kept['tokens'] as { readonly access_token: string }
    t.match(decodeJwt(token), { client_id: clientId, aud: front.url() })
    const again = await refresh(front, { clientId, body: kept['tokens'] as Record<string, unknown> })
    t.equal(again.status, 200)
    t.equal((await register(front)).status, 201, 'the one registration of this hour was left')
  })

  for (const isDocument of [false, true])
    t.test(
      `@modelcontextprotocol/${sdk} at an issuer of the tenant, ${isDocument ? 'by its document' : 'registered'}`,
      async (t) => {
        const issuer = await authorizationServer(t, { registration: !isDocument, documents: isDocument })
        const upstream = await startUpstream()
        t.teardown(() => upstream.close())
        const { url } = await gateway(t, {
          upstreams: { up: { type: 'http', url: upstream.url } },
          endpoints: { default: { upstreams: ['up'], prefix: '' } },
          auth: { issuers: [{ issuer: issuer.url }], requiredScopes: ['read'] }
        })
        const { clientId } = await documentedClient(t)
        const { kept, provider } = app(isDocument ? clientId : undefined)
        const first = open(url(), provider)
        await t.rejects(hostOf().connect(first as never))
        const asked = new URL(String(kept['url'])).searchParams
        t.match(Object.fromEntries(asked), { resource: url(), code_challenge_method: 'S256', scope: /read/ })
        const back = (await browser().go(String(kept['url']), redirectUri)).url
        await first.finishAuth(answer(back) as never)
        const client = hostOf()
        t.teardown(() => client.close())
        await client.connect(open(url(), provider) as never)
        t.match(await client.callTool({ name: 'echo', arguments: { text: 'hello' } }), { content: [{ type: 'text' }] })
        const { access_token: token } = kept['tokens'] as { readonly access_token: string }
        t.match(decodeJwt(token), { iss: issuer.url, aud: url(), ...(isDocument && { client_id: clientId }) })
        t.equal(issuer.registrations, isDocument ? 0 : 1)
      }
    )
}

t.test('mcp-remote, for hosts that start a command', async (t) => {
  const front = await loginGateway(t)
  const program = fileURLToPath(new URL('../../node_modules/mcp-remote/dist/proxy.js', import.meta.url))
  const home = t.testdir()
  const bridge = new StdioClientTransport({
    command: process.execPath,
    // The port that it would choose may be one that nothing opens, such as 6000.
    args: [program, front.url(), String(await freePort()), '--transport', 'http-only'],
    // Nothing on this path could open a browser.
    env: { PATH: home, HOME: home, MCP_REMOTE_CONFIG_DIR: home, ...compiledCode },
    stderr: 'pipe'
  })
  let said = ''
  bridge.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const urlOf = (): string | undefined => /http:\S+\/auth\?\S+/.exec(said)?.[0]
  const client = new Client1({ name: 'a host', version: '1' })
  t.teardown(() => client.close())
  const connected = client.connect(bridge)
  await until('it asks for a browser', () => urlOf() !== undefined)
  const person = browser()
  const elsewhere = 'no redirect is left out: it listens itself'
  await person.press(await person.go(urlOf() ?? '', elsewhere), '/allow', elsewhere)
  await connected
  t.match(await client.callTool({ name: 'files__echo', arguments: { text: 'hello' } }), { content: [{ type: 'text' }] })
})
