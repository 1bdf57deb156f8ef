// Checks of a request before its route runs: the target, Host and Origin, the role, the content type.

import type { FastifyRequest } from 'fastify'
import { quoted } from '../config/problems.ts'
import type { Administrator } from './access.ts'
import { stringEnd } from '../protocol/json-scan.ts'
import { TextUnits } from '../protocol/json-text.ts'
import { AdminProblem, notJsonBody } from './problem.ts'
import type { AdminRoute } from './route.ts'

/** Headers that must not occur twice, because two programs could read different ones (RFC 9110 section 5.3). */
const singleHeaders = ['host', 'origin', 'content-type', 'content-length', 'content-encoding', 'transfer-encoding']

/** @throws AdminProblem */
export function checkTarget({ raw, headers }: FastifyRequest, isOwnHost: (host: string) => boolean): void {
  const names = raw.rawHeaders.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase())
  const twice = singleHeaders.find((name) => names.indexOf(name) !== names.lastIndexOf(name))
  if (twice !== undefined)
    throw new AdminProblem('invalid_request', `The header ${twice} is there twice.`, 'Send it once.')
  if (raw.url?.startsWith('/') !== true)
    throw new AdminProblem('invalid_request', 'The target is no path.', 'Send a path, and the host as Host.')
  const { host = '', origin } = headers
  if (!isOwnHost(host))
    throw new AdminProblem(
      'forbidden_host',
      'The Host header names none of the hosts of the admin API.',
      'Use the address that it listens on, or list the name under admin.hosts in the configuration.'
    )
  // A page of the same host is allowed: only the gateway can serve one.
  if (origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`)
    throw new AdminProblem(
      'forbidden_origin',
      'The request comes from a web page of another origin.',
      'Call the admin API from a program, not from a page.'
    )
}

/** @throws AdminProblem forbidden */
export function checkRole(
  { roles, method }: Pick<AdminRoute, 'roles' | 'method'>,
  administrator: Administrator | undefined
): void {
  if (administrator !== undefined && roles.includes(administrator.role)) return
  throw new AdminProblem(
    'forbidden',
    `The role ${administrator?.role ?? 'none'} may not do this (${method}).`,
    `Use a key with one of the roles ${roles.join(', ')}.`
  )
}

/** RFC 7396 section 4 */
export const mergePatchType = 'application/merge-patch+json'

/** @throws AdminProblem unsupported_media_type */
export function checkContentType({ body, method }: AdminRoute, { headers }: FastifyRequest): void {
  if (body === undefined) return
  const { 'content-type': given = '' } = headers
  const types = ['application/json', ...(method === 'PATCH' ? [mergePatchType] : [])]
  const [type = '', ...parameters] = given.toLowerCase().split(';')
  const isUtf8 =
    parameters.length === 0 || (parameters.length === 1 && /^ *charset="?utf-8"? *$/.test(parameters[0] ?? ''))
  if (headers['content-encoding'] === undefined && types.includes(type.trimEnd()) && isUtf8) return
  // RFC 5789 section 2.2
  throw notJsonBody(method === 'PATCH' ? { 'Accept-Patch': types.toReversed().join(', ') } : {})
}

/**
 * Refuses a body in which an object has two members of one name: the gateway would use the last one, and a person or
 * program that reads the same text may take the first one.
 * @param text valid JSON
 * @throws AdminProblem invalid_request
 */
export function checkRepeatedMembers(text: string): void {
  /** For each open object the names of its members so far; for each open array undefined. */
  const open: Array<Set<string> | undefined> = []
  let isName = false
  const units = new TextUnits(text)
  for (let at = 0; at < text.length; at++) {
    const unit = text[at]
    if (unit === '{') open.push(new Set())
    else if (unit === '[') open.push(undefined)
    else if (unit === '}' || unit === ']') open.pop()
    if (unit === '{' || unit === ',') isName = true
    if (unit !== '"') continue
    const start = at
    at = stringEnd(units, start + 1, text.length, Infinity)
    const names = isName ? open.at(-1) : undefined
    isName = false
    if (names === undefined) continue
    const own = text.slice(start + 1, at)
    const name = own.includes('\\') ? String(JSON.parse(`"${own}"`)) : own
    if (names.has(name))
      throw new AdminProblem(
        'invalid_request',
        `The body has the member ${quoted(name)} twice in one object.`,
        'Leave out the one that is not meant.'
      )
    names.add(name)
  }
}
