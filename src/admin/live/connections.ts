// Routes for the accounts and secrets that people have connected at upstreams of a tenant: their state, and their
// revocation. The secrets are never shown.

import type { Static } from 'typebox'
import { closedObject } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import type { Tenant } from '../../config/snapshot.ts'
import { grantsListed } from '../../store/keys.ts'
import { isMeantBy, type PeopleConnections } from '../../vault/people-connections.ts'
import type { ListedGrant } from '../../vault/stored/grant-index.ts'
import { changeHash, recordChange } from '../changes.ts'
import { page, pageQuery, pageSchema, type PageRequest } from '../paging.ts'
import { AdminProblem } from '../problem.ts'
import { administrators, defineRoute, everyRole } from '../route.ts'

/** The longest note, in characters. */
const maxNameChars = 300

const name = (description: string) => Type.Optional(Type.String({ maxLength: 4_096, description }))
const whose = {
  issuer: name('Issuer of the people: the `iss` of their tokens, or `urn:gatehouse:key` for API keys.'),
  subject: name('One person of this issuer: the `sub` of the token, or the name of the API key.'),
  upstream: name('Of connections to this upstream.')
}

const ConnectionEntry = closedObject({
  issuer: Type.String({
    description: "Issuer of the person's identity: the `iss` of the token, or `urn:gatehouse:key` for an API key."
  }),
  subject: Type.String({ description: 'Subject of the token, or name of the API key.' }),
  upstream: Type.String({ description: 'Name of the upstream.' }),
  kind: Type.Enum(['account', 'secret'], {
    description: '`account`: the person allowed the use of an account. `secret`: the person entered a secret.'
  }),
  state: Type.Enum(['connected', 'has to be connected again', 'not in use'], {
    description: '`not in use`: it is for another server, or of another kind, than the configuration has now.'
  }),
  reason: Type.Optional(Type.String({ description: 'Why it has to be connected again, or is not in use.' })),
  connectedAt: Type.Optional(Type.String({ description: 'RFC 3339.' })),
  scopes: Type.Optional(Type.Array(Type.String(), { description: 'Scopes of an account, as far as they are known.' })),
  provider: Type.Optional(Type.String({ description: 'Host of the authorization server of an account.' })),
  lastUsedAt: Type.Optional(Type.String({ description: 'RFC 3339, to the minute.' }))
})
type ConnectionEntry = Static<typeof ConnectionEntry>

type Wanted = Readonly<Partial<Record<keyof typeof whose, string | undefined>>>

/** @throws AdminProblem invalid_request: the same subject of two issuers is two people */
function checkWanted({ issuer, subject }: Wanted): void {
  if (subject !== undefined && issuer === undefined)
    throw new AdminProblem('invalid_request', '"subject" needs "issuer".', 'Say whose subject it is.')
}

/** Ends the connections of many people at once, also those that are not listed. @throws AdminProblem limit_reached */
async function endAll(connections: PeopleConnections, { id }: Tenant, { issuer, upstream }: Wanted): Promise<void> {
  if (await connections.endAll(id, { issuer, upstream })) return
  throw new AdminProblem(
    'limit_reached',
    'It is not kept of more issuers and upstreams when all their connections ended.',
    'Send "all": true, which ends them all.'
  )
}

const nameOf = ({ person: { issuer, subject }, upstream }: ListedGrant): string =>
  JSON.stringify([issuer, subject, upstream])

async function connectionsIn(
  connections: PeopleConnections,
  tenant: Tenant,
  { limit, ...query }: PageRequest & Wanted
) {
  checkWanted(query)
  const listed = (await connections.list(tenant.id)).filter(isMeantBy(query))
  const items: ConnectionEntry[] = []
  let { cursor } = query
  // Until the page is full: some of those that are listed are there no more.
  do {
    const found: ReturnType<typeof page<ListedGrant>> = page(listed, nameOf, { limit: limit - items.length, cursor })
    const states = await Promise.all(found.items.map((each) => connections.stateOf(tenant, each)))
    for (const [at, each] of found.items.entries()) {
      const state = states[at]
      if (state === undefined) continue
      const { issuer, subject } = each.person
      const { upstream, kind, state: stands, reason, connectedAt, scopes, provider, lastUsedAt } = state
      items.push({
        ...{ issuer, subject, upstream, kind, state: stands },
        ...(reason !== undefined && { reason }),
        ...(connectedAt !== undefined && { connectedAt }),
        ...(scopes !== undefined && { scopes: [...scopes] }),
        ...(provider !== undefined && { provider }),
        ...(lastUsedAt !== undefined && { lastUsedAt })
      })
    }
    cursor = found.nextCursor ?? undefined
  } while (cursor !== undefined && items.length < limit)
  return { items, nextCursor: cursor ?? null }
}

export const connectionRoutes = [
  defineRoute(
    {
      method: 'GET',
      path: '/v1/tenants/{tenant}/connections',
      roles: everyRole,
      summary:
        'Lists the accounts and secrets that people have connected for upstreams ([connections.md](connections.md)): ' +
        `the ${grantsListed.toLocaleString('en')} that were connected last, never their tokens and secrets.`,
      query: closedObject({ ...whose, ...pageQuery }),
      response: pageSchema(ConnectionEntry)
    },
    ({ tenant, query }, { vault }) => connectionsIn(vault.connections, tenant, query)
  ),
  defineRoute(
    {
      method: 'POST',
      path: '/v1/tenants/{tenant}/connections/revoke',
      roles: administrators,
      summary:
        'Ends connections of people, at every process: of one person, to one upstream, or all of the tenant. Calls ' +
        'that need them are refused until the person connects again. Tokens of listed connections are revoked at ' +
        'their providers; the log says which could not be. Connections of one person that are no longer listed end, ' +
        'too, at the upstreams that the tenant has.',
      body: closedObject({
        ...whose,
        all: Type.Optional(
          Type.Literal(true, { description: 'Ends all connections of the tenant. Replaces the other members.' })
        )
      }),
      response: closedObject({
        revoked: Type.Integer({ description: 'Number of ended connections, of those that are listed.' })
      })
    },
    async ({ tenant, body: { all, ...wanted }, administrator, address }, services) => {
      const given = Object.entries(wanted).filter(([, value]) => value !== undefined)
      if ((all === true) === given.length > 0)
        throw new AdminProblem(
          'invalid_request',
          'The request does not say which connections end, or says it twice.',
          'Send "issuer" and "subject", "upstream", or "all": true alone.'
        )
      checkWanted(wanted)
      const revoked: string[] = []
      let areEnded = false
      try {
        if (wanted.subject === undefined) {
          await endAll(services.vault.connections, tenant, wanted)
          areEnded = true
        }
        for await (const some of services.vault.connections.revoke(tenant, wanted)) revoked.push(...some.map(nameOf))
      } finally {
        // Also those of before the store went away.
        if (areEnded || revoked.length > 0)
          await recordChange(services, {
            actor: administrator.name,
            role: administrator.role,
            action: 'connection.revoke',
            tenant: tenant.id,
            target: given.map(([member, value]) => `${member} ${value.slice(0, maxNameChars)}`).join(', ') || 'all',
            before: changeHash(revoked.sort()),
            after: undefined,
            address
          })
      }
      return { revoked: revoked.length }
    }
  )
] as const
