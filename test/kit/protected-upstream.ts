// A scripted server that demands tokens of an authorization server (RFC 6750, RFC 9728): it verifies each for itself.

import { createServer, request as forward, type IncomingMessage, type ServerResponse } from 'node:http'
import { createRemoteJWKSet, jwtVerify, type JWTPayload } from 'jose'
import type { AuthorizationServer } from './authorization-server.ts'
import { listen, type Teardown } from './listen.ts'
import { until } from './until.ts'
import { isCall, startUpstream, type HttpUpstream, type HttpUpstreamOptions, type Seen } from './upstream.ts'

export interface ProtectedUpstream extends HttpUpstream {
  /** Claims of the tokens that let requests in, in order. */
  readonly admitted: JWTPayload[]
  /** `Authorization` of every request, as it came. */
  readonly presented: string[]
  /** Tokens that it takes no more. */
  readonly withdrawn: Set<string>
  /** Scopes that a call needs. */
  scopes: readonly string[]
  /** What its challenge names in place of its own metadata. */
  metadataUrl: string | undefined
  /** Answers for its metadata in place of the right one. */
  metadata: object | undefined
}

export async function protectedUpstream(
  t: Teardown,
  server: Pick<AuthorizationServer, 'url' | 'jwksUri'>,
  script: HttpUpstreamOptions = {}
): Promise<ProtectedUpstream> {
  const upstream = await startUpstream(script)
  t.teardown(() => upstream.close())
  const keys = createRemoteJWKSet(new URL(server.jwksUri))
  const state = {
    admitted: [] as JWTPayload[],
    presented: [] as string[],
    withdrawn: new Set<string>(),
    scopes: [] as readonly string[],
    metadataUrl: undefined as string | undefined,
    metadata: undefined as object | undefined
  }
  const origin = await listen(
    t,
    createServer((request, response) => {
      if (request.url?.startsWith('/.well-known/') === true) return metadata(response)
      void admit(request, response)
    })
  )
  const url = `${origin}/mcp`

  function metadata(response: ServerResponse): void {
    const own = { resource: url, authorization_servers: [server.url], scopes_supported: ['read'] }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(state.metadata ?? own))
  }

  function refuse(response: ServerResponse, status: number, parameters: string): void {
    const place = state.metadataUrl ?? `${origin}/.well-known/oauth-protected-resource/mcp`
    const challenge = `Bearer resource_metadata="${place}"${parameters}`
    response.writeHead(status, { 'www-authenticate': challenge }).end()
  }

  async function admit(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { authorization = '' } = request.headers
    state.presented.push(authorization)
    const token = authorization.replace(/^Bearer /, '')
    const verified = state.withdrawn.has(token)
      ? undefined
      : await jwtVerify(token, keys, { issuer: server.url, audience: url }).catch(() => undefined)
    if (verified === undefined) return refuse(response, 401, '')
    const granted = String(verified.payload['scope'] ?? '').split(' ')
    if (!state.scopes.every((scope) => granted.includes(scope)))
      return refuse(response, 403, `, error="insufficient_scope", scope="${state.scopes.join(' ')}"`)
    state.admitted.push(verified.payload)
    const { method, headers } = request
    const onward = forward(upstream.url, { ...(method && { method }), headers, agent: false }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    response.on('close', () => onward.destroy())
    onward.on('error', () => response.destroy())
    request.pipe(onward)
  }

  return Object.assign(state, { ...upstream, url })
}

/** It answers the next calls with the value of a header that came with them: in a result, an error, a refusal. */
export function repeatingHeader(upstream: Pick<HttpUpstream, 'override'>, name = 'authorization'): void {
  const said = ({ headers }: Seen): string => `I was shown ${String(headers[name])}`
  const answer = (status: number, bodyOf: (text: string) => object) =>
    upstream.override(isCall('echo'), (response, seen) => {
      const body = { jsonrpc: '2.0', id: seen.message?.['id'], ...bodyOf(said(seen)) }
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    })
  answer(200, (text) => ({ result: { content: [{ type: 'text', text }], structuredContent: { text } } }))
  answer(200, (message) => ({ error: { code: -32603, message, data: { message } } }))
  answer(400, (message) => ({ error: { code: -32000, message } }))
}

/** It answers the next call late, with the `Authorization` that came with it. */
export function repeatingLate(upstream: Pick<HttpUpstream, 'override'>) {
  let call: { readonly authorization: string; readonly answer: () => void } | undefined
  upstream.override(isCall('echo'), (response, { headers, message }) => {
    const { authorization = '' } = headers
    const result = { content: [{ type: 'text', text: `I was shown ${authorization}` }] }
    const body = JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result })
    const answer = (): void => void response.writeHead(200, { 'content-type': 'application/json' }).end(body)
    call = { authorization, answer }
  })
  return {
    /** @returns what came with it */
    async held(): Promise<string> {
      await until('the call is there', () => call !== undefined)
      return call?.authorization ?? ''
    },
    release: (): void => call?.answer()
  }
}
