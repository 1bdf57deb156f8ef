// Tools of upstreams that the caller has not connected yet, or has connected since.

import { isPersonal } from '../../vault/personal-views.ts'
import { connectToolOf } from '../../upstream/connect/unconnected-upstream.ts'
import type { Endpoint, EndpointMember } from '../../config/snapshot.ts'
import type { Result, UpstreamName } from '../../protocol/messages.ts'
import { definitionOf, type EndpointContext } from '../call/call.ts'
import type { Route } from '../catalog/catalog.ts'

const startOf = ({ prefix }: EndpointMember, { separator }: Endpoint): string =>
  prefix === '' ? '' : prefix + separator

const membersOf = ({ tenant, endpoint }: EndpointContext): readonly EndpointMember[] =>
  endpoint.members.filter(({ upstream }) => tenant.upstreams.has(upstream))

/**
 * Where a name leads that no list has: below the prefix of an upstream that the caller has not connected any tool may
 * be, for clients that remember what it listed.
 */
export function routeOfUnconnected(context: EndpointContext, name: string): Route | undefined {
  for (const member of membersOf(context)) {
    const start = startOf(member, context.endpoint)
    const definition = definitionOf(context, member.upstream)
    if (start !== '' && name.startsWith(start) && isPersonal(definition) && definition.person === undefined)
      return unlistedRoute(context.endpoint, member.upstream, name)
  }
  return undefined
}

/** Returns the route of a name that its upstream has not listed: the name is as the caller wrote it. */
export function unlistedRoute(endpoint: Endpoint, upstream: UpstreamName, name: string): Route {
  const member = endpoint.members.find((each) => each.upstream === upstream)
  const start = member === undefined ? '' : startOf(member, endpoint)
  return { upstream, name: name.startsWith(start) ? name.slice(start.length) : name, isUnlisted: true }
}

/**
 * For a call that asked for the link and is repeated afterwards, as it should be.
 * @throws `unknown` for every other name
 */
export function connectedResult(context: EndpointContext, name: string, unknown: () => Error): Result {
  const member = membersOf(context).find(
    (each) => name === startOf(each, context.endpoint) + connectToolOf(each.upstream)
  )
  if (member === undefined || definitionOf(context, member.upstream).person === undefined) throw unknown()
  const text = `${member.upstream} is connected. List the tools again to see what it has.`
  return { resultType: 'complete', content: [{ type: 'text', text }] }
}
