// What stands on the way from a host to an endpoint, for the doctor to find fault with: a proxy that can misbehave, and
// an authorization server as MCP wants it, each on real sockets.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { readFileSync } from 'node:fs'
import { connect, createServer as createNetServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { errors, Provider, type Configuration } from 'oidc-provider'
import { browser } from '../kit/browser.ts'
import { freshKeys } from '../kit/issuer.ts'
import { listen } from '../kit/listen.ts'
import type { Teardown } from '../kit/until.ts'

const pem = (name: string): string => readFileSync(join(import.meta.dirname, '../kit/tls', name), 'utf8')
export const authority = pem('authority.crt')
/** Signed by itself. */
export const notYetValid = pem('not-yet.crt')
/** `good`, `expired`, `not-yet`, `other-name`, `below-intermediate`: of the authority, for localhost. `localhost`: self-signed. */
const certificate = (name: string) => ({
  cert: pem(`${name}.crt`),
  key: pem(name === 'localhost' ? 'localhost.key' : 'leaf.key')
})

export interface Misbehaviour {
  /** Answers by itself. @returns whether it did */
  answers?(incoming: IncomingMessage, response: ServerResponse): boolean
  /** Headers of requests, in lower case, that do not get through, or with another value. */
  readonly requestHeaders?: Readonly<Record<string, string | undefined>>
  readonly responseHeaders?: Readonly<Record<string, string | undefined>>
  /** Collects an answer before it passes it on. */
  readonly buffers?: boolean
  alters?(text: string, incoming: IncomingMessage): string
}

export interface TestProxy {
  readonly url: string
  /** Where it leads; set once that is known. */
  target: string
}

/** @param tls name of its certificate; undefined: it speaks plain HTTP */
export async function testProxy(t: Teardown, misbehaviour: Misbehaviour = {}, tls?: string): Promise<TestProxy> {
  const state = { target: 'http://127.0.0.1:1' }
  const handle = (incoming: IncomingMessage, response: ServerResponse): void => {
    if (misbehaviour.answers?.(incoming, response) === true) return
    forward(incoming, response, state.target, misbehaviour)
  }
  const server = tls === undefined ? createServer(handle) : createTlsServer(certificate(tls), handle)
  await listen(t, server as ReturnType<typeof createServer>)
  const { port } = (server as Server).address() as AddressInfo
  const url = tls === undefined ? `http://127.0.0.1:${port}` : `https://localhost:${port}`
  return Object.assign(state, { url })
}

function forward(
  incoming: IncomingMessage,
  response: ServerResponse,
  target: string,
  { requestHeaders = {}, responseHeaders = {}, buffers = false, alters }: Misbehaviour
): void {
  const kept = (headers: IncomingMessage['headers'], changes: Misbehaviour['requestHeaders'] = {}) =>
    Object.fromEntries(Object.entries({ ...headers, ...changes }).filter(([, value]) => value !== undefined))
  const outgoing = request(
    new URL(incoming.url ?? '/', target),
    { method: incoming.method, headers: kept(incoming.headers, requestHeaders), agent: false },
    (answer) => {
      const headers = kept(answer.headers, responseHeaders)
      if (!buffers && alters === undefined) {
        response.writeHead(answer.statusCode ?? 502, headers)
        response.flushHeaders()
        return void answer.pipe(response)
      }
      let text = ''
      answer.setEncoding('utf8').on('data', (part: string) => (text += part))
      answer.on('end', () => {
        const { 'content-length': _length, 'transfer-encoding': _encoding, ...others } = headers
        response.writeHead(answer.statusCode ?? 502, others as Record<string, string>)
        response.end(alters?.(text, incoming) ?? text)
      })
    }
  )
  outgoing.on('error', () => response.writeHead(502, { 'Content-Type': 'text/html' }).end('<h1>502 Bad Gateway</h1>'))
  incoming.pipe(outgoing)
  response.on('close', () => outgoing.destroy())
}

/** A server of TLS that wants a certificate of whoever comes. */
export async function wantsClientCertificate(t: Teardown): Promise<string> {
  const wants = { requestCert: true, rejectUnauthorized: true, ca: authority }
  const server = createTlsServer({ ...certificate('good'), ...wants }, (_request, response) => response.end())
  await listen(t, server as ReturnType<typeof createServer>)
  return `https://localhost:${((server as Server).address() as AddressInfo).port}/t/acme/mcp`
}

/** A server of bare sockets. @returns its host and port */
export async function socketServer(t: Teardown, each: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createNetServer((socket) => {
    sockets.add(socket.on('error', () => {}))
    each(socket)
  })
  const closeAllConnections = (): void => sockets.forEach((socket) => socket.destroy())
  return new URL(await listen(t, Object.assign(server, { closeAllConnections }) as never)).host
}

/** A port whose queue is full, since its process takes no connection: nothing answers there. @returns host and port */
export async function fullQueue(t: Teardown): Promise<string> {
  const code = `const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
    process.stdout.write(String(server.address().port))
    setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0))
  })`
  const child = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const [port] = (await once(child.stdout, 'data')) as [Buffer]
  for (let each = 0; each < 4; each++) {
    const socket = connect(Number(port.toString()), '127.0.0.1').on('error', () => {})
    t.teardown(() => socket.destroy())
  }
  return `127.0.0.1:${port.toString()}`
}

/** What a person does at the page of a device login: both forms are sent as they are, the code and that it is theirs. */
export async function allowDevice(page: string): Promise<void> {
  const person = browser()
  let { url, html } = await person.go(page, 'none:')
  for (let forms = 0; forms < 2; forms++) {
    const [, action = ''] = /action="([^"]+)"/.exec(html) ?? []
    const fields = [...html.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)"/g)]
    const body = new URLSearchParams(
      fields.map(([, name = '', value = '']): [string, string] => [name, value])
    ).toString()
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    ;({ url, html } = await person.go(new URL(action, url).href, 'none:', { method: 'POST', headers, body }))
  }
}

export interface LoginProvider {
  readonly url: string
  /** Resources that it knows. */
  readonly resources: Set<string>
  /** Who sits before the browser; undefined: they refuse. */
  person: string | undefined
}

/** Registers hosts, knows resources, and lets its person sign in at once. */
export async function loginProvider(
  t: Teardown,
  { features = {}, ...configuration }: Configuration = {},
  misbehaviour: Misbehaviour = {}
): Promise<LoginProvider> {
  let provider: Provider | undefined
  const state: Omit<LoginProvider, 'url'> = { resources: new Set(), person: 'ada' }
  const inside = createServer((incoming, response) => {
    if (incoming.url?.startsWith('/in/') === true && provider !== undefined) void finish(provider, incoming, response)
    else void provider?.callback()(incoming, response)
  })
  const proxy = await testProxy(t, misbehaviour)
  proxy.target = await listen(t, inside)

  async function finish(at: Provider, incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { params } = await at.interactionDetails(incoming, response)
    const { person } = state
    if (person === undefined) {
      const refusal = { error: 'access_denied', error_description: 'not assigned to this application' }
      return await at.interactionFinished(incoming, response, refusal)
    }
    const grant = new at.Grant({ accountId: person, clientId: String(params['client_id']) })
    grant.addOIDCScope('openid')
    grant.addResourceScope(String(params['resource']), 'mcp')
    const consent = { grantId: await grant.save() }
    await at.interactionFinished(incoming, response, { login: { accountId: person }, consent })
  }

  provider = new Provider(proxy.url, {
    jwks: { keys: await freshKeys() },
    cookies: { keys: ['cookies of the provider'] },
    interactions: { url: (_ctx, { uid }) => `/in/${uid}` },
    findAccount: (_ctx, sub) => ({ accountId: sub, claims: () => ({ sub }) }),
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => [...state.resources][0] ?? '',
        useGrantedResource: () => true,
        getResourceServerInfo(_ctx, resource) {
          if (!state.resources.has(resource)) throw new errors.InvalidTarget()
          return { scope: 'mcp', audience: resource, accessTokenFormat: 'jwt', jwt: { sign: { alg: 'ES256' } } }
        }
      },
      ...features
    },
    ...configuration
  })
  return Object.assign(state, { url: proxy.url })
}
