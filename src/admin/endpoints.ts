// The endpoints of a tenant, without anything secret.

import type { Static } from 'typebox'
import { closedObject } from '../config/schema/parts.ts'
import { Type } from '../config/schema/type.ts'
import { treeOf } from '../config/shape.ts'
import type { Endpoint } from '../config/snapshot.ts'
import type { TenantDocument } from '../control/document/tenant-document.ts'
import { endpointName, tenantId } from '../protocol/messages.ts'
import type { Administrator } from './access.ts'
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
import { AdminReply, defineRoute, everyRole, type AdminServices } from './route.ts'

const text = (description: string) => Type.String({ description })
const count = (description: string) => Type.Integer({ description })

const EndpointEntry = closedObject({
  name: text('Name of the endpoint: `default`, or its part of the path.'),
  path: text('Where MCP clients reach it.'),
  upstreams: Type.Array(closedObject({ name: Type.String(), prefix: Type.String() }), {
    description: 'The upstreams behind the endpoint, and the prefixes of their names.'
  }),
  changedTools: count('Number of tools whose names, texts or arguments the endpoint changes.'),
  maxTools: Type.Union([Type.Integer(), Type.Null()], {
    description: 'The largest number of tools that are offered. null: no limit.'
  }),
  policyRules: Type.Union([Type.Integer(), Type.Null()], {
    description: 'Number of rules in its own policy. null: it has none.'
  }),
  managedBy: managedBySchema,
  version: versionSchema
})

export const EndpointDetails = closedObject({ ...EndpointEntry.properties, configuration: configurationSchema })

const endpointEntry = (
  { name, path, members, tools = {}, maxTools, policy }: Endpoint,
  document: TenantDocument | undefined
): Static<typeof EndpointEntry> => ({
  name,
  path,
  upstreams: members.map(({ upstream, prefix }) => ({ name: upstream, prefix })),
  changedTools: Object.keys(tools).length,
  maxTools: maxTools ?? null,
  policyRules: policy?.rules.length ?? null,
  ...managedOf(document)
})

/** @throws AdminProblem not_found */
export function endpointAnswer(
  { tenant: id = '', endpoint: name = '' }: Readonly<Record<string, string>>,
  { role }: Administrator,
  { snapshot, control }: Pick<AdminServices, 'snapshot' | 'control'>,
  status = 200
): AdminReply {
  const tenant = snapshot().tenants.get(tenantId(id))
  const document = documentsKnown(control).get(id)
  if (tenant === undefined) throw noSuch('tenant')
  const endpoint = tenant.endpoints.get(endpointName(name))
  if (endpoint === undefined) throw noSuch('endpoint')
  const parts = treeOf(document?.tree['endpoints'])
  const part = mayRead(role) && Object.hasOwn(parts, name) ? treeOf(parts[name]) : null
  const body: Static<typeof EndpointDetails> = { ...endpointEntry(endpoint, document), configuration: part }
  return new AdminReply(body, etagHeader(document), status)
}

export const endpointRoutes = [
  defineRoute(
    {
      method: 'GET',
      path: '/v1/tenants/{tenant}/endpoints',
      roles: everyRole,
      summary: 'Lists the endpoints of a tenant.',
      query: closedObject(pageQuery),
      response: pageSchema(EndpointEntry)
    },
    ({ tenant, query }, { control }) => {
      const document = documentsKnown(control).get(tenant.id)
      const { items, nextCursor } = page(tenant.endpoints.values(), ({ name }) => name, query)
      return { items: items.map((each) => endpointEntry(each, document)), nextCursor }
    }
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/v1/tenants/{tenant}/endpoints/{endpoint}',
      roles: everyRole,
      summary: 'Returns one endpoint. The ETag is that of its tenant.',
      response: EndpointDetails
    },
    ({ params, administrator }, services) => endpointAnswer(params, administrator, services)
  )
] as const
