// The console at /console: its files, which anybody may read who reaches the listener, and signing in and out. All else
// that it shows and does goes through the routes of the admin API.

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isObject } from '../../protocol/messages.ts'
import type { AdminAccess, Administrator } from '../access.ts'
import type { AdminPlaces } from '../places.ts'
import { AdminProblem } from '../problem.ts'
import { takesCoding } from '../reference/accepted-coding.ts'
import { createConsoleFiles, type ConsoleFile } from './files.ts'
import type { ProviderSignIn } from './provider-sign-in.ts'
import type { ConsoleSessions } from './sessions.ts'

/** The longest body of a sign-in, in bytes: a key, or an access token. */
const maxSignInBody = 16_384

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Nobody needs to be signed in. */
    isForStrangers?: true
  }
}

interface ConsoleOptions {
  readonly access: AdminAccess
  readonly sessions: ConsoleSessions
  readonly signIn: ProviderSignIn
  readonly places: AdminPlaces
}

const forStrangers = { config: { isForStrangers: true } } as const

export function addConsole(server: FastifyInstance, { access, sessions, signIn, places }: ConsoleOptions): void {
  const files = createConsoleFiles()

  async function send(name: string, request: FastifyRequest, reply: FastifyReply) {
    const file = await files.get(name)
    if (file === undefined)
      throw new AdminProblem('not_found', 'The console has no such file.', 'Open /console/ in a browser.')
    void reply.headers({
      'Cache-Control': 'no-cache',
      'Content-Security-Policy': policyOf(await files.importMapDigest()),
      'Cross-Origin-Opener-Policy': 'same-origin',
      'Cross-Origin-Resource-Policy': 'same-origin',
      'Referrer-Policy': 'no-referrer',
      'X-Content-Type-Options': 'nosniff',
      'X-Frame-Options': 'DENY',
      Vary: 'Accept-Encoding',
      ETag: file.etag
    })
    if (request.headers['if-none-match'] === file.etag) return await reply.code(304).send()
    const [encoding, body] = encoded(file, request.headers['accept-encoding'])
    if (encoding !== undefined) void reply.header('Content-Encoding', encoding)
    return await reply.type(file.type).send(body)
  }

  server.get('/console', forStrangers, async (_request, reply) => await reply.redirect('/console/', 308))
  server.get('/console/', forStrangers, async (request, reply) => await send('', request, reply))
  server.get('/console/*', forStrangers, async (request, reply) => {
    const { '*': name = '' } = request.params as Readonly<Record<string, string>>
    return await send(name, request, reply)
  })

  server.post('/console/session', { ...forStrangers, bodyLimit: maxSignInBody }, async (request, reply) => {
    const administrator = await whoSignsIn(request)
    if (administrator.role === 'metrics')
      throw new AdminProblem('forbidden', 'A key for metrics opens no console.', 'Use a key with another role.')
    places.letIn(request.raw.socket, administrator.name)
    const { cookie, token, until } = await sessions.signIn(administrator, request)
    const lines = [cookie, ...signIn.gone(request.headers.origin)]
    return await reply.headers({ 'Set-Cookie': lines, 'Cache-Control': 'no-store' }).send({ token, until })
  })

  /** Signs in by a key or token, or as the person whom the provider has sent back. @throws AdminProblem */
  async function whoSignsIn(request: FastifyRequest): Promise<Administrator> {
    const { body, ip } = request
    const origin = pageOf(request)
    const { key, query } = isObject(body) ? body : {}
    if (typeof query === 'string') return access.signedIn(await signIn.finish(request, origin, query))
    if (typeof key === 'string') return await access.authenticate(['Authorization', `Bearer ${key}`], ip)
    throw new AdminProblem('invalid_request', 'The body has no key.', 'Send {"key": "…"}.')
  }

  server.get('/console/login', forStrangers, async (_request, reply) =>
    reply.header('Cache-Control', 'no-store').send({ issuer: signIn.issuer ?? null })
  )

  server.post('/console/login', forStrangers, async (request, reply) => {
    const { url, cookie } = await signIn.begin(pageOf(request))
    return await reply.headers({ 'Set-Cookie': cookie, 'Cache-Control': 'no-store' }).send({ url })
  })

  server.delete('/console/session', forStrangers, async (request, reply) => {
    const lines = await sessions.signOut(request)
    return await reply.code(204).headers({ 'Set-Cookie': lines, 'Cache-Control': 'no-store' }).send()
  })
}

/** @throws AdminProblem forbidden_origin where the request comes from no page; from which, was checked */
function pageOf({ headers: { origin } }: FastifyRequest): string {
  if (origin !== undefined) return origin
  throw new AdminProblem('forbidden_origin', 'The request comes from no page.', 'Sign in at /console/.')
}

/**
 * Returns the content security policy: nothing inline but the import map, nothing of other origins, and Trusted Types.
 */
const policyOf = (importMap: string | undefined): string =>
  [
    "default-src 'none'",
    `script-src 'self'${importMap === undefined ? '' : ` '${importMap}'`}`,
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'"
  ].join('; ')

function encoded(file: ConsoleFile, accepted: string | undefined): readonly [string | undefined, Buffer] {
  if (takesCoding('br', accepted)) return ['br', file.brotli]
  if (takesCoding('gzip', accepted)) return ['gzip', file.gzip]
  return [undefined, file.plain]
}
