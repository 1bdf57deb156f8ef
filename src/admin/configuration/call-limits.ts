// How many calls a tenant may make, of whom and of what: its limits as they are in force, by name.

import type { Static } from 'typebox'
import { CallLimitSchema } from '../../config/schema/call-limits.ts'
import { closedObject } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import type { CallLimit } from '../../config/snapshot.ts'
import type { TenantDocument } from '../../control/document/tenant-document.ts'
import { tenantId } from '../../protocol/messages.ts'
import type { Administrator } from '../access.ts'
import { page, pageQuery, pageSchema } from '../paging.ts'
import { noSuch } from '../problem.ts'
import { AdminReply, defineRoute, everyRole, type AdminServices } from '../route.ts'
import {
  configurationSchema,
  documentsKnown,
  etagHeader,
  managedBySchema,
  managedOf,
  shownPart,
  versionSchema
} from './managed.ts'

const CallLimitEntry = closedObject({
  name: Type.String({ description: 'Name of the limit in this tenant. Refusals and `RateLimit` headers contain it.' }),
  ...CallLimitSchema.properties,
  managedBy: managedBySchema,
  version: versionSchema
})

export const CallLimitDetails = closedObject({ ...CallLimitEntry.properties, configuration: configurationSchema })

const entryOf = (
  name: string,
  limit: CallLimit,
  document: TenantDocument | undefined
): Static<typeof CallLimitEntry> => ({
  name,
  ...(limit as Static<typeof CallLimitSchema>),
  ...managedOf(document)
})

/** @throws AdminProblem not_found */
export function callLimitAnswer(
  { tenant: id = '', limit: name = '' }: Readonly<Record<string, string>>,
  { role }: Administrator,
  { snapshot, control }: Pick<AdminServices, 'snapshot' | 'control'>,
  status = 200
): AdminReply {
  const limits = snapshot().tenants.get(tenantId(id))?.limits ?? {}
  const limit = Object.hasOwn(limits, name) ? limits[name] : undefined
  if (limit === undefined) throw noSuch('limit')
  const document = documentsKnown(control).get(id)
  const configuration = shownPart(document, role, 'limit', name)
  const body: Static<typeof CallLimitDetails> = { ...entryOf(name, limit, document), configuration }
  return new AdminReply(body, etagHeader(document), status)
}

export const callLimitRoutes = [
  defineRoute(
    {
      method: 'GET',
      path: '/v1/tenants/{tenant}/limits',
      roles: everyRole,
      summary: 'Lists the limits of calls of a tenant ([call-limits.md](call-limits.md)).',
      query: closedObject(pageQuery),
      response: pageSchema(CallLimitEntry)
    },
    ({ tenant, query }, { control }) => {
      const document = documentsKnown(control).get(tenant.id)
      const { items, nextCursor } = page(Object.entries(tenant.limits ?? {}), ([name]) => name, query)
      return { items: items.map(([name, limit]) => entryOf(name, limit, document)), nextCursor }
    }
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/v1/tenants/{tenant}/limits/{limit}',
      roles: everyRole,
      summary: 'Returns one limit of calls. The ETag is that of its tenant.',
      response: CallLimitDetails
    },
    ({ administrator, params }, services) => callLimitAnswer(params, administrator, services)
  )
] as const
