// What is configured, without anything secret: limits, tenants, endpoints.

import type { Static } from 'typebox'
import { LimitsSchema } from '../config/schema/limits.ts'
import { closedObject } from '../config/schema/tenant.ts'
import { Type } from '../config/schema/type.ts'
import type { Endpoint, PolicyConfig, Tenant } from '../config/snapshot.ts'
import { page, pageSchema, pageQuery } from './paging.ts'
import { defineRoute, everyRole, maySee } from './route.ts'

const text = (description: string) => Type.String({ description })
const count = (description: string) => Type.Integer({ description })

const TenantEntry = closedObject({
  id: text('Its name in paths.'),
  origins: Type.Array(Type.String(), { description: 'Web origins whose pages may call.' }),
  authentication: Type.Enum(['bearer', 'none'], { description: '`none`: everybody on this machine is let in.' }),
  issuers: Type.Array(Type.String(), { description: 'Issuers of access tokens.' }),
  keys: Type.Array(closedObject({ name: Type.String(), scopes: Type.Array(Type.String()) }), {
    description: 'API keys: their names and scopes, never the keys.'
  }),
  requiredScopes: Type.Array(Type.String(), { description: 'What each caller needs.' }),
  upstreams: count('How many it has.'),
  endpoints: count('How many it has.'),
  policyRules: Type.Union([Type.Integer(), Type.Null()], { description: 'Rules of its policy. null: it has none.' })
})

const EndpointEntry = closedObject({
  name: text('`default`, or the part of the path that names it.'),
  path: text('Where MCP clients reach it.'),
  upstreams: Type.Array(closedObject({ name: Type.String(), prefix: Type.String() }), {
    description: 'The members, and what stands before their names.'
  }),
  changedTools: count('Tools with other names, texts or arguments.'),
  maxTools: Type.Union([Type.Integer(), Type.Null()], { description: 'How many tools are offered at most.' }),
  policyRules: Type.Union([Type.Integer(), Type.Null()], { description: 'Rules of its own policy. null: it has none.' })
})

const rulesOf = (policy: PolicyConfig | undefined): number | null => policy?.rules.length ?? null

const tenantEntry = ({ id, origins, auth, upstreams, endpoints, policy }: Tenant): Static<typeof TenantEntry> => ({
  id,
  origins: [...origins],
  authentication: auth.mode,
  issuers: auth.issuers.map(({ issuer }) => issuer),
  keys: auth.keys.map(({ name, scopes }) => ({ name, scopes: [...scopes] })),
  requiredScopes: [...auth.requiredScopes],
  upstreams: upstreams.size,
  endpoints: endpoints.size,
  policyRules: rulesOf(policy)
})

const endpointEntry = ({
  name,
  path,
  members,
  tools = {},
  maxTools,
  policy
}: Endpoint): Static<typeof EndpointEntry> => ({
  name,
  path,
  upstreams: members.map(({ upstream, prefix }) => ({ name: upstream, prefix })),
  changedTools: Object.keys(tools).length,
  maxTools: maxTools ?? null,
  policyRules: rulesOf(policy)
})

export const configurationRoutes = [
  defineRoute(
    {
      method: 'GET',
      path: '/v1/limits',
      roles: everyRole,
      summary: 'The limits in force: those of the configuration, with every default.',
      response: closedObject({ ...LimitsSchema.properties, readyDelayMs: Type.Integer() })
    },
    (_request, { snapshot }) => snapshot().limits
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/v1/tenants',
      roles: everyRole,
      summary: 'The tenants that the key is for.',
      query: closedObject(pageQuery),
      response: pageSchema(TenantEntry)
    },
    ({ administrator, query }, { snapshot }) => {
      const tenants = [...snapshot().tenants.values()].filter(({ id }) => maySee(administrator, id))
      const { items, nextCursor } = page(tenants, ({ id }) => id, query)
      return { items: items.map(tenantEntry), nextCursor }
    }
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/v1/tenants/{tenant}',
      roles: everyRole,
      summary: 'One tenant.',
      response: TenantEntry
    },
    ({ tenant }) => tenantEntry(tenant)
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/v1/tenants/{tenant}/endpoints',
      roles: everyRole,
      summary: 'The endpoints of a tenant.',
      query: closedObject(pageQuery),
      response: pageSchema(EndpointEntry)
    },
    ({ tenant, query }) => {
      const { items, nextCursor } = page(tenant.endpoints.values(), ({ name }) => name, query)
      return { items: items.map(endpointEntry), nextCursor }
    }
  )
] as const
