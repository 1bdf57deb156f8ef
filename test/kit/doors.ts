// The doors of the gateway, read from its table of routes, and what each that is not public has to refuse.

import type { FastifyInstance } from 'fastify'
import { addOwnPages } from '../../src/http/pages/own-pages.ts'
import { addRoutes, type RoutesOptions } from '../../src/http/routes.ts'
import { assemble, type ForgedKey } from './forging-issuer.ts'

export interface Door {
  readonly method: string
  readonly url: string
  /** Of the login fronts and of the connections of people, which are added in a scope of their own. */
  readonly isPage: boolean
}

/** As the server is told of them, without those that only say which methods there are. */
export async function readDoors(): Promise<Door[]> {
  const found: Door[] = []
  const scopes: Array<Promise<unknown>> = []
  const tableOf = (isPage: boolean) => {
    const add = (method: string, url: string): void => void found.push({ method, url, isPage })
    const table = {
      route({ method, url }: { method: string | string[]; url: string }): void {
        // A list of methods outside of pages is that of the refused ones.
        if (typeof method === 'string' || isPage)
          for (const each of [method].flat()) if (each !== 'OPTIONS') add(each, url)
      },
      register: (plugin: (scope: unknown) => Promise<unknown>) => void scopes.push(plugin(tableOf(true))),
      addHook: () => {},
      addContentTypeParser: () => {},
      removeAllContentTypeParsers: () => {}
    }
    const shorthands = ['get', 'head', 'post', 'put', 'patch', 'delete'].map((method) => [
      method,
      (url: string) => add(method.toUpperCase(), url)
    ])
    return { ...table, ...Object.fromEntries(shorthands) } as unknown
  }
  const handlers = { legacy: {}, modern: {}, httpSse: {}, login: {} }
  addRoutes(tableOf(false) as FastifyInstance, { handlers, vault: {}, rates: {} } as unknown as RoutesOptions, () => {})
  addOwnPages(tableOf(false) as FastifyInstance, { vault: {} } as unknown as Parameters<typeof addOwnPages>[1])
  await Promise.all(scopes)
  return found
}

export interface Attempt {
  readonly status: number | readonly number[]
  readonly headers?: Record<string, string>
  readonly query?: string
  /** Of the token, put over good ones. */
  readonly claims?: Record<string, unknown>
  readonly header?: Record<string, unknown>
  readonly authorization?: (good: string) => string | undefined
  /** Of POSTs only. */
  readonly posts?: true
}

const seconds = Math.floor(Date.now() / 1000)

/**
 * @param at an issuer of the tenant, the URL of an endpoint that it does not have, and a key of somebody else; of its
 *   pages one may be of `https://page.example`
 */
export const attemptsAt = (at: {
  readonly issuer: string
  readonly elsewhere: string
  readonly here: string
  readonly stranger: ForgedKey
}): Readonly<Record<string, Attempt>> => ({
  'no token': { status: 401, authorization: () => undefined },
  'an unknown key': { status: 401, authorization: () => 'Bearer gh_nobodys_key_0123456789' },
  'another scheme': { status: 401, authorization: () => `Basic ${btoa('ada:secret')}` },
  'two tokens': { status: 401, authorization: (good) => `Bearer ${good}, Bearer ${good}` },
  'a token and something behind it': { status: 401, authorization: (good) => `Bearer ${good} x` },
  'an endless token': { status: 401, authorization: () => `Bearer ${'a'.repeat(9_000)}` },
  'alg none': {
    status: 401,
    authorization: () => `Bearer ${assemble({ alg: 'none', typ: 'at+jwt' }, { iss: at.issuer, sub: 'ada' })}`
  },
  'HMAC with what is public': {
    status: 401,
    authorization: () =>
      `Bearer ${assemble({ alg: 'HS256', typ: 'at+jwt', kid: at.stranger.kid }, { iss: at.issuer, sub: 'ada' })}`
  },
  'a key that nobody published': { status: 401, header: { kid: at.stranger.kid } },
  'another issuer': { status: 401, claims: { iss: 'https://other.example' } },
  'another endpoint': { status: 401, claims: { aud: at.elsewhere } },
  'several audiences': { status: 401, claims: { aud: [at.here, 'https://other.example'] } },
  'an ID token': { status: 401, header: { typ: 'JWT' }, claims: { nonce: 'n' } },
  'a token that has expired': { status: 401, claims: { iat: seconds - 7200, exp: seconds - 3600 } },
  'a token of tomorrow': { status: 401, claims: { nbf: seconds + 3600 } },
  'a token that lives too long': { status: 401, claims: { exp: seconds + 10 * 86_400 } },
  'a token without an end': { status: 401, claims: { exp: undefined } },
  'a token that is bound to a key': { status: 401, claims: { cnf: { jkt: 'x' } } },
  'a token within a token': { status: 401, header: { cty: 'JWT' } },
  'a key of its own': { status: 401, header: { kid: at.stranger.kid, jwk: at.stranger.jwk } },
  'keys at an address of its own': { status: 401, header: { kid: at.stranger.kid, jku: 'http://127.0.0.1:9/' } },
  'a kid that is a path': { status: 401, header: { kid: '../../etc/passwd' } },
  'a refresh token': { status: 401, header: { typ: 'rt+jwt' } },
  'a token that is made tomorrow': { status: 401, claims: { iat: seconds + 3600, exp: seconds + 7200 } },
  'no subject': { status: 401, claims: { sub: undefined } },
  'a token in the query': { status: [401, 404], query: '?access_token=TOKEN', authorization: () => undefined },
  'a token in a cookie': { status: 401, headers: { cookie: 'access_token=TOKEN' }, authorization: () => undefined },
  'a user in a header': {
    status: 401,
    headers: { 'x-user': 'ada', 'x-forwarded-user': 'ada', 'mcp-user': 'ada' },
    authorization: () => undefined
  },
  'another Host': { status: 403, headers: { host: 'evil.example' } },
  'an address as Host': { status: 403, headers: { host: '169.254.169.254' } },
  'a user before the Host': { status: 403, headers: { host: 'x@127.0.0.1' } },
  'another Host behind a forwarded one': {
    status: 403,
    headers: { host: 'evil.example', 'x-forwarded-host': '127.0.0.1', forwarded: 'host=127.0.0.1' }
  },
  'another Origin': { status: 403, headers: { origin: 'https://evil.example' } },
  'the Origin null': { status: 403, headers: { origin: 'null' } },
  'an Origin that begins alike': { status: 403, headers: { origin: 'https://page.example.evil.example' } },
  'what a page may send unasked': { status: 415, headers: { 'content-type': 'text/plain' }, posts: true },
  'a form': { status: 415, headers: { 'content-type': 'application/x-www-form-urlencoded' }, posts: true },
  'something compressed': { status: 415, headers: { 'content-encoding': 'gzip' }, posts: true },
  'an Origin with a dot at its end': { status: 403, headers: { origin: 'https://page.example.' } },
  'an Origin with another port': { status: 403, headers: { origin: 'https://page.example:8443' } }
})
