// Why a caller may or may not use something of an endpoint, for whoever runs the gateway: the question in words, to the
// answer of the evaluator that lists and calls ask.

import type { Principal } from '../../auth/principal.ts'
import { reservedIssuerPrefix } from '../../config/auth/auth-config.ts'
import { isForEndpoint } from '../../auth/keyring.ts'
import type { Kill } from '../../config/policy/kill.ts'
import type { Endpoint, Tenant } from '../../config/snapshot.ts'
import { explainAccess, type Explanation } from '../../policy/explain.ts'
import { killedText, killOfCaller, killOfRoute } from '../../policy/kills.ts'
import type { RouteKind } from '../../policy/rules.ts'
import { GatewayError, isObject, upstreamName, type JsonObject } from '../../protocol/messages.ts'
import { withArguments, type ToolChange } from '../../protocol/translate/change-tool.ts'
import type { Steps } from '../../time/turns.ts'
import type { Catalog, Route } from '../catalog/catalog.ts'
import { offeredBy } from '../catalog/offered.ts'

/** A question that cannot be asked so; the message says why, and what to write. */
export class QuestionError extends Error {
  override readonly name = 'QuestionError'
}

export type RouteAnswer = Omit<Explanation, 'outcome'> & {
  readonly outcome: Explanation['outcome'] | 'not-offered'
}

export interface RouteQuestion {
  /** `{ subject, issuer, client, scopes, groups, roles }` of a token, or `{ key }`; undefined: anybody. */
  readonly caller: unknown
  readonly kind: RouteKind
  /** UPSTREAM/NAME. */
  readonly route: string
  /** The arguments of the call; undefined: they are not known yet. */
  readonly args: unknown
  /** The address of the client. */
  readonly address?: string | undefined
  readonly now: Date
  /** The annotations of a tool, as its server lists them; undefined: none, or its list is not known. */
  readonly annotations?: JsonObject | undefined
}

/** @returns where the entry of a list leads; undefined: there is none. @param route UPSTREAM/NAME */
export const listedRoute = (catalog: Pick<Catalog, 'routes'>, kind: RouteKind, route: string): Route | undefined =>
  catalog.routes(`${kind}s`).find(({ upstream, name }) => `${upstream}/${name}` === route)

/** What rules leave to a caller, and the endpoint has not: @returns the answer for it */
export const cutAnswer = ({ path }: Endpoint, kind: RouteKind, upstream: string): RouteAnswer => ({
  outcome: 'not-offered',
  sentence:
    `Not offered: the list of ${upstream} has no such ${kind}, or the endpoint ${path} leaves it out, for another of ` +
    'the same name or because its catalog is limited.',
  missingScopes: [],
  rules: []
})

/**
 * @param access as `explainAccess` has it
 * @throws QuestionError where the tenant has no such upstream, or the caller cannot be
 */
export function* explainRoute(
  tenant: Tenant,
  endpoint: Endpoint,
  question: RouteQuestion,
  access?: Parameters<typeof explainAccess>[3]
): Steps<RouteAnswer> {
  const { caller, kind, route, args, address, now, annotations } = question
  const slash = route.indexOf('/')
  const [upstream, name] = [upstreamName(route.slice(0, slash)), route.slice(slash + 1)]
  const kill = killOfRoute(tenant, { upstream, name: kind === 'tool' ? name : '' })
  if (kill !== undefined) return stoppedAnswer(kill)
  if (slash < 1 || !tenant.upstreams.has(upstream)) {
    const known = [...tenant.upstreams.keys()].join(', ')
    throw new QuestionError(`"${route}" names no upstream of ${tenant.id}. Write UPSTREAM/NAME, with one of: ${known}.`)
  }
  if (args !== undefined && !isObject(args)) throw new QuestionError('The arguments must be an object: { amount: 5 }.')
  const isMember = endpoint.members.some((member) => member.upstream === upstream)
  if (!isMember || !offeredBy(endpoint).offers(`${kind}s`, upstream, name)) {
    const reason = isMember ? 'its allow and deny leave it out' : `${upstream} is not among its upstreams`
    const sentence = `Not offered: the endpoint ${endpoint.path} does not have it, as ${reason}.`
    return { outcome: 'not-offered', sentence, missingScopes: [], rules: [] }
  }
  const principal = describedPrincipal(tenant, caller)
  const callerKill = killOfCaller(tenant, principal)
  if (callerKill !== undefined) return stoppedAnswer(callerKill)
  const key = principal.kind === 'key' && tenant.auth.keys.find((each) => each.name === principal.subject)
  if (key && !isForEndpoint(key, endpoint.name))
    return deniedAnswer(`Denied: the API key ${key.name} is not for the endpoint ${endpoint.path}.`)
  const change = kind === 'tool' ? endpoint.tools?.[route] : undefined
  const sent = args && sentArguments(change, args)
  if (sent instanceof GatewayError)
    return { outcome: 'refused', sentence: `Listed, but refused: ${sent.message}`, missingScopes: [], rules: [] }
  const asked = {
    principal,
    kind,
    route: { upstream, name, change, ...(annotations && { annotations }) },
    args: sent,
    address,
    now
  }
  return yield* explainAccess(tenant, endpoint, asked, access)
}

const deniedAnswer = (sentence: string): RouteAnswer => ({ outcome: 'denied', sentence, missingScopes: [], rules: [] })

const stoppedAnswer = (kill: Kill): RouteAnswer =>
  deniedAnswer(`Denied: a kill switch has stopped ${killedText(kill)}.`)

/** Returns the arguments that the upstream would get, with those of the endpoint. */
function sentArguments(change: ToolChange | undefined, args: JsonObject): JsonObject | GatewayError {
  if (change === undefined) return args
  try {
    const { params } = withArguments({ method: 'tools/call', params: { arguments: args } }, change)
    return params?.['arguments'] as JsonObject
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
}

/**
 * As the gateway would know the caller, by a token of the tenant's issuer or by one of its keys.
 * @throws QuestionError
 */
export function describedPrincipal({ id, auth, unstopped }: Tenant, caller: unknown): Principal {
  const given = caller === undefined ? {} : caller
  if (!isObject(given))
    throw new QuestionError('The caller must be an object, such as { subject: ada, groups: [dev] }.')
  const members = ['subject', 'issuer', 'client', 'key', 'scopes', 'groups', 'roles']
  const unknown = Object.keys(given).find((member) => !members.includes(member))
  if (unknown !== undefined) throw new QuestionError(`A caller has no "${unknown}". Known: ${members.join(', ')}.`)
  const text = (member: string): string | undefined => {
    const value = given[member]
    if (value !== undefined && typeof value !== 'string') throw new QuestionError(`"${member}" of a caller is a text.`)
    return value
  }
  const texts = (member: string): string[] | undefined => {
    const value = given[member]
    if (value === undefined) return undefined
    if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value
    throw new QuestionError(`"${member}" of a caller is a list of texts.`)
  }
  const name = text('key')
  // Also one that a kill switch has stopped: that it is stopped is the answer.
  const { keys } = (unstopped ?? { auth }).auth
  const key = keys.find((each) => each.name === name)
  if (name !== undefined && key === undefined)
    throw new QuestionError(`${id} has no key "${name}". Known: ${keys.map((each) => each.name).join(', ')}.`)
  const other = members.find((member) => !['key', 'scopes'].includes(member) && given[member] !== undefined)
  if (key !== undefined && other !== undefined) throw new QuestionError(`An API key has no "${other}".`)
  const kind = key !== undefined ? 'key' : auth.mode === 'none' ? 'anonymous' : 'token'
  return {
    kind,
    tenant: id,
    issuer: kind === 'token' ? (text('issuer') ?? auth.issuers[0]?.issuer ?? '') : reservedIssuerPrefix + kind,
    subject: name ?? text('subject') ?? '',
    clientId: name ?? text('client') ?? '',
    scopes: new Set(texts('scopes') ?? key?.scopes ?? auth.requiredScopes),
    groups: texts('groups') ?? [],
    roles: texts('roles') ?? [],
    expiresAt: undefined
  }
}
