// Which tenants and limits there are, without anything secret.

import type { Static } from 'typebox'
import type { Problem } from '../config/problems.ts'
import { LimitsSchema } from '../config/schema/limits.ts'
import { closedObject } from '../config/schema/parts.ts'
import { Type } from '../config/schema/type.ts'
import type { Tenant } from '../config/snapshot.ts'
import { shownDocument, type TenantDocument } from '../control/document/tenant-document.ts'
import { tenantId } from '../protocol/messages.ts'
import type { Administrator, AdminRole } from './access.ts'
import {
  configurationSchema,
  documentsKnown,
  etagHeader,
  managedBySchema,
  managedOf,
  mayRead,
  versionSchema
} from './configuration/managed.ts'
import { page, pageSchema, pageQuery } from './paging.ts'
import { noSuch } from './problem.ts'
import { AdminReply, defineRoute, everyRole, maySee, type AdminServices } from './route.ts'

const text = (description: string) => Type.String({ description })
const count = (description: string) => Type.Integer({ description })

const TenantEntry = closedObject({
  id: text('Id of the tenant, its name in paths.'),
  origins: Type.Array(Type.String(), { description: 'Web origins whose pages may call.' }),
  authentication: Type.Enum(['bearer', 'none'], { description: '`none`: every caller on this machine is admitted.' }),
  issuers: Type.Array(Type.String(), { description: 'Issuers of access tokens.' }),
  keys: Type.Array(closedObject({ name: Type.String(), scopes: Type.Array(Type.String()) }), {
    description: 'API keys: their names and scopes, never the keys.'
  }),
  requiredScopes: Type.Array(Type.String(), { description: 'Scopes that every caller needs.' }),
  upstreams: count('Number of its upstreams.'),
  endpoints: count('Number of its endpoints.'),
  policyRules: Type.Union([Type.Integer(), Type.Null()], {
    description: 'Number of rules in its policy. null: it has none.'
  }),
  managedBy: managedBySchema,
  version: versionSchema
})

export const TenantDetails = closedObject({
  ...TenantEntry.properties,
  configuration: configurationSchema,
  problems: Type.Array(
    closedObject({ path: Type.String(), message: Type.String(), suggestion: Type.Optional(Type.String()) }),
    {
      description: 'Why its newest configuration is not in use at the process that answers. Empty: it is in use.'
    }
  )
})

/** A tenant whose document never compiled at this process has nothing here. */
const notInUse = { origins: [], issuers: [], keys: [], requiredScopes: [], upstreams: 0, endpoints: 0 }

function tenantEntry(
  id: string,
  tenant: Tenant | undefined,
  document: TenantDocument | undefined
): Static<typeof TenantEntry> {
  const managed = managedOf(document)
  if (tenant === undefined) return { id, ...notInUse, authentication: 'bearer', policyRules: null, ...managed }
  const { origins, auth, upstreams, endpoints, policy } = tenant
  return {
    id,
    origins: [...origins],
    authentication: auth.mode,
    issuers: auth.issuers.map(({ issuer }) => issuer),
    keys: auth.keys.map(({ name, scopes }) => ({ name, scopes: [...scopes] })),
    requiredScopes: [...auth.requiredScopes],
    upstreams: upstreams.size,
    endpoints: endpoints.size,
    policyRules: policy?.rules.length ?? null,
    ...managed
  }
}

/** They name variables and files of the gateway, and quote the document: for those only who may read it. */
function problemsFor(role: AdminRole, problems: readonly Problem[]): Array<Omit<Problem, 'line'>> {
  if (problems.length > 0 && !mayRead(role))
    return [{ path: '', message: 'cannot be used at the process that answers', suggestion: 'Administrators see why.' }]
  return problems.map(({ path, message, suggestion }) => ({
    path,
    message,
    ...(suggestion !== undefined && { suggestion })
  }))
}

/** @throws AdminProblem not_found */
export function tenantAnswer(
  { tenant: id = '' }: Readonly<Record<string, string>>,
  { role }: Administrator,
  { snapshot, control }: Pick<AdminServices, 'snapshot' | 'control'>,
  status = 200
): AdminReply {
  const tenant = snapshot().tenants.get(tenantId(id))
  const document = documentsKnown(control).get(id)
  if (tenant === undefined && document === undefined) throw noSuch('tenant')
  const body: Static<typeof TenantDetails> = {
    ...tenantEntry(id, tenant, document),
    configuration: mayRead(role) && document !== undefined ? shownDocument(document.tree) : null,
    problems: problemsFor(role, control.problemsOf(id))
  }
  return new AdminReply(body, etagHeader(document), status)
}

export const configurationRoutes = [
  defineRoute(
    {
      method: 'GET',
      path: '/v1/limits',
      roles: everyRole,
      summary: 'Returns the limits in force: those of the configuration, with every default.',
      response: closedObject({ ...LimitsSchema.properties, readyDelayMs: Type.Integer() })
    },
    (_request, { snapshot }) => snapshot().limits
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/v1/tenants',
      roles: everyRole,
      summary: 'Lists the tenants that the key is for.',
      query: closedObject(pageQuery),
      response: pageSchema(TenantEntry)
    },
    ({ administrator, query }, { snapshot, control }) => {
      const { tenants } = snapshot()
      const documents = documentsKnown(control)
      const ids = [...new Set([...tenants.keys(), ...documents.keys()])].filter((id) => maySee(administrator, id))
      const { items, nextCursor } = page(ids, (id) => id, query)
      return { items: items.map((id) => tenantEntry(id, tenants.get(tenantId(id)), documents.get(id))), nextCursor }
    }
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/v1/tenants/{tenant}',
      roles: everyRole,
      summary: 'Returns one tenant. The ETag of its configuration is for If-Match.',
      tenantMayBeMissing: true,
      response: TenantDetails
    },
    ({ params, administrator }, services) => tenantAnswer(params, administrator, services)
  )
] as const
