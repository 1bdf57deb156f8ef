// Hosts by their own OAuth code, unchanged: what they know is the URL of the endpoint.

import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from '@modelcontextprotocol/client'
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { until } from '../kit/until.ts'
import { browser } from '../kit/browser.ts'
import { compiledCode } from '../kit/compiled-code.ts'
import { loginGateway, redirectUri } from './kit.ts'

/** What an app keeps of an authorization, for both generations of the SDK. */
function app() {
  const kept: Record<string, unknown> = {}
  const provider = {
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

async function consent(kept: Record<string, unknown>): Promise<URL> {
  const person = browser()
  const page = await person.go(String(kept['url']), redirectUri)
  return (await person.press(page, '/allow', redirectUri)).url
}

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

t.test('mcp-remote, for hosts that start a command', async (t) => {
  const front = await loginGateway(t)
  const program = fileURLToPath(new URL('../../node_modules/mcp-remote/dist/proxy.js', import.meta.url))
  const home = t.testdir()
  const bridge = new StdioClientTransport({
    command: process.execPath,
    args: [program, front.url(), '--transport', 'http-only'],
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
