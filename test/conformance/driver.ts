// What a scenario of the client half of the suite drives: a gateway in front of the suite's own server, and a client of
// the second SDK that uses all that is behind the gateway.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { randomBytes } from 'node:crypto'
import { browser } from '../kit/browser.ts'
import { connectAccount, signedIn } from '../kit/connect-page.ts'
import { jsonHeaders, send } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { gateway, key } from '../kit/gateway.ts'
import { identityProvider, providerClient } from '../kit/identity-provider.ts'
import { logIn, loginGateway } from '../login/kit.ts'

interface Tool {
  readonly name: string
  readonly inputSchema: {
    readonly required?: string[]
    readonly properties?: Record<string, { readonly type?: string }>
  }
}
interface ToolCall {
  readonly name: string
  readonly arguments: Record<string, unknown>
}

/** As the suite says it to the command that it starts. */
export interface ClientRun {
  readonly scenario: string
  /** The revision that both sides speak. */
  readonly version: string
  /** What the scenario gives its client: credentials, calls to make. */
  readonly context: Readonly<Record<string, unknown>>
  /** Of the suite's server. */
  readonly url: string
}

/** The document that the suite's authorization server knows. */
const suiteClient = 'https://conformance-test.local/client-metadata.json'

/** A person connects an account; the client of the gateway has no part in it. */
const signsIn = (run: ClientRun): boolean =>
  run.scenario.startsWith('auth/') && !run.scenario.startsWith('auth/client-credentials') && !isAsserted(run)
const isAsserted = ({ scenario }: ClientRun): boolean => scenario === 'auth/enterprise-managed-authorization'
const isModern = ({ version }: ClientRun): boolean => version >= '2026-07-28'

/** @throws Error where the client meets one, as a host would */
export async function drive(run: ClientRun): Promise<void> {
  const closers: Array<() => unknown> = []
  try {
    await useGateway(run, {
      teardown: (close: () => unknown) => {
        closers.unshift(close)
      }
    })
  } finally {
    for (const close of closers) await close()
  }
}

type Start = Parameters<typeof gateway>[0]

/** @returns what its client shows, too */
async function openGateway(run: ClientRun, t: Start) {
  const common = {
    top: {
      // The suite's servers are on loopback.
      egress: { allow: ['127.0.0.0/8', '::1/128'] },
      vault: { keys: [{ id: 'driver', key: randomBytes(32).toString('base64') }] }
    },
    endpoints: { default: { upstreams: ['suite'], prefix: '' } },
    limits: { coldStartMs: 30_000 }
  }
  const upstreams = (auth: object | undefined) => ({ suite: { type: 'http', url: run.url, auth } })
  if (!isAsserted(run))
    return { ...(await gateway(t, { ...common, upstreams: upstreams(authOf(run)) })), authorization: `Bearer ${key}` }
  const given = run.context as Record<string, string>
  const port = await freePort()
  // The suite's identity provider signs nobody in: it gives an ID token. So people sign in at one that passes on to it
  // what the gateway asks for, with that ID token.
  const { idp_token_endpoint: tokenUrl = '', idp_id_token: idToken = '' } = given
  const provider = await identityProvider(t, `http://127.0.0.1:${port}/login/acme/callback`, { tokenUrl, idToken })
  const auth = {
    type: 'tokenExchange',
    issuer: provider.url,
    ...providerClient,
    subjectToken: 'idToken',
    identityAssertion: { clientId: given['client_id'], clientSecret: given['client_secret'] }
  }
  const front = await loginGateway(t, { ...common, port, provider, upstreams: upstreams(auth) })
  const { body } = await logIn(front, front.url(), browser())
  return { ...front, authorization: `Bearer ${body.access_token}` }
}

async function useGateway(run: ClientRun, t: Start): Promise<void> {
  const { url, publicUrl, log, authorization } = await openGateway(run, t)
  const client = new Client(
    { name: 'driver', version: '1' },
    {
      capabilities: { elicitation: { form: { applyDefaults: true } } },
      versionNegotiation: { mode: isModern(run) ? { pin: run.version } : 'legacy' }
    }
  )
  // An empty form: what it has defaults for, the SDK fills in.
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: {} }))
  const transport = new StreamableHTTPClientTransport(new URL(url()), { requestInit: { headers: { authorization } } })
  try {
    await client.connect(transport)
    if (signsIn(run)) await useAccount(client, publicUrl)
    else await useAll(client, run, url(), authorization)
    await client.close()
  } catch (cause) {
    throw new Error(`the client failed, and the gateway said: ${JSON.stringify(log.slice(-20))}`, { cause })
  }
}

async function useAll(client: Client, run: ClientRun, url: string, authorization: string): Promise<void> {
  const { tools, resources, prompts } = client.getServerCapabilities() ?? {}
  if (tools !== undefined) {
    const { toolCalls } = run.context as { toolCalls?: ToolCall[] }
    const all = await listed(client, run, url, authorization)
    // Its server shows a tool and cannot call it.
    const calls = run.scenario === 'json-schema-ref-no-deref' ? [] : (toolCalls ?? all.map((tool) => plain(tool, all)))
    for (const call of calls) await client.callTool(call)
  }
  if (resources !== undefined)
    for (const { uri } of (await client.listResources()).resources) await client.readResource({ uri })
  if (prompts !== undefined)
    for (const { name } of (await client.listPrompts()).prompts) await client.getPrompt({ name })
}

/**
 * As a person would: connects an account, uses it, and connects it again while the page says that this is needed. A
 * person with more patience than `auth/scope-retry-limit` allows, so that it is the gateway that ends it.
 */
async function useAccount(client: Client, publicUrl: string): Promise<void> {
  for (let round = 0; round < 6; round++) {
    const { tab, page } = await signedIn(`${publicUrl}/t/acme/connections`, key)
    if (round > 0 && !page.html.includes('has to be connected again')) return
    const landing = await connectAccount(tab, page)
    if (!landing.html.includes('suite is connected')) return
    const { tools: all } = await client.listTools()
    for (const { name } of all.filter((tool) => !tool.name.startsWith('connect_')))
      await client.callTool({ name, arguments: {} })
  }
}

/** What the gateway is configured with to sign in where the scenario wants that. */
function authOf(run: ClientRun): object | undefined {
  const { scenario, context: given } = run
  if (!scenario.startsWith('auth/')) return undefined
  if (signsIn(run))
    return {
      type: 'user',
      clientId: given['client_id'] ?? (scenario === 'auth/basic-cimd' ? suiteClient : undefined),
      clientSecret: given['client_secret']
    }
  return {
    type: 'clientCredentials',
    clientId: given['client_id'],
    clientSecret: given['client_secret'],
    privateKey: given['private_key_pem'],
    algorithm: given['signing_algorithm']
  }
}

/**
 * The tools as the gateway lists them. A client of its own, since the SDK leaves out what the gateway must not show in
 * the first place.
 */
async function listed(client: Client, run: ClientRun, url: string, authorization: string): Promise<readonly Tool[]> {
  const { tools } = await client.listTools()
  if (!isModern(run)) return tools as Tool[]
  const { version } = run
  const _meta = { 'io.modelcontextprotocol/protocolVersion': version, 'io.modelcontextprotocol/clientCapabilities': {} }
  const { text, json } = await send(url, {
    headers: { ...jsonHeaders, authorization, 'mcp-protocol-version': version, 'mcp-method': 'tools/list' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta } })
  })
  const { result } = json as { result?: { tools: Tool[] } }
  if (result === undefined) throw new Error(text)
  const names = (list: readonly { readonly name: string }[]): string => list.map(({ name }) => name).join(', ')
  if (names(result.tools) !== names(tools))
    throw new Error(`the gateway lists ${names(result.tools)}, and a client would take ${names(tools)}`)
  return result.tools
}

/**
 * A call with something of the right type for each required argument; an object is a schema, for who looks at what
 * became of it.
 */
function plain({ name, inputSchema: { required = [], properties = {} } }: Tool, all: readonly Tool[]): ToolCall {
  const value = (argument: string, n: number): unknown => {
    const type = properties[argument]?.type
    return type === 'string' ? 'text' : type === 'object' ? all[0]?.inputSchema : n + 1
  }
  return { name, arguments: Object.fromEntries(required.map((argument, n) => [argument, value(argument, n)])) }
}
