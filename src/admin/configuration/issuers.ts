// Whose tokens a tenant accepts.

import type { Static } from 'typebox'
import { closedObject } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import { placeholderOf, type IssuerConfig } from '../../config/auth/auth-config.ts'
import type { Tenant } from '../../config/snapshot.ts'
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

const IssuerEntry = closedObject({
  issuer: Type.String({ description: 'The `iss` of its tokens.' }),
  isLoginFront: Type.Boolean({ description: 'Whether it is the login front of the tenant ([login.md](login.md)).' }),
  jwksUri: Type.Union([Type.String(), Type.Null()], {
    description: 'URL of its public keys. null: its metadata names the URL.'
  }),
  algorithms: Type.Array(Type.String(), { description: 'Signature algorithms that are accepted.' }),
  requireTyp: Type.Boolean({ description: 'Whether only tokens of type `at+jwt` are accepted.' }),
  audiences: Type.Array(Type.String(), {
    description: 'Values of `aud` that are accepted for the gateway, besides the URL of the endpoint.'
  }),
  maxLifetimeSeconds: Type.Integer({ description: 'The longest accepted lifetime of a token, in seconds.' }),
  claims: Type.Union([Type.Object({}), Type.Null()], {
    description: 'Claims of its tokens that identify the caller. null: those of RFC 9068.'
  }),
  managedBy: managedBySchema,
  version: versionSchema
})

export const IssuerDetails = closedObject({ ...IssuerEntry.properties, configuration: configurationSchema })

const issuerEntry = (
  { issuer, jwksUri, algorithms, requireTyp, audiences, maxLifetimeSeconds, claims }: IssuerConfig,
  { auth }: Tenant,
  document: TenantDocument | undefined
): Static<typeof IssuerEntry> => ({
  issuer,
  isLoginFront: issuer === auth.login?.issuer,
  jwksUri: jwksUri ?? null,
  algorithms: [...algorithms],
  requireTyp,
  audiences: [...audiences],
  maxLifetimeSeconds,
  claims: claims ?? null,
  ...managedOf(document)
})

/** @throws AdminProblem not_found */
export function issuerAnswer(
  { tenant: id = '', issuer: name = '' }: Readonly<Record<string, string>>,
  { role }: Administrator,
  { snapshot, control }: Pick<AdminServices, 'snapshot' | 'control'>,
  status = 200
): AdminReply {
  const tenant = snapshot().tenants.get(tenantId(id))
  const document = documentsKnown(control).get(id)
  // With a placeholder one is several; the first of them is shown, and the configuration of all.
  const [start] = name.split(placeholderOf(name) ?? '\n', 1)
  const isMeant = ({ issuer }: IssuerConfig): boolean =>
    issuer === name || (start !== name && issuer.startsWith(start ?? ''))
  const found = tenant?.auth.issuers.find(isMeant)
  if (tenant === undefined || found === undefined) throw noSuch('issuer')
  const configuration = shownPart(document, role, 'issuer', name)
  const body: Static<typeof IssuerDetails> = { ...issuerEntry(found, tenant, document), configuration }
  return new AdminReply(body, etagHeader(document), status)
}

export const issuerRoutes = [
  defineRoute(
    {
      method: 'GET',
      path: '/v1/tenants/{tenant}/issuers',
      roles: everyRole,
      summary: 'Lists the issuers whose tokens a tenant accepts.',
      query: closedObject(pageQuery),
      response: pageSchema(IssuerEntry)
    },
    ({ tenant, query }, { control }) => {
      const document = documentsKnown(control).get(tenant.id)
      const { items, nextCursor } = page(tenant.auth.issuers, ({ issuer }) => issuer, query)
      return { items: items.map((each) => issuerEntry(each, tenant, document)), nextCursor }
    }
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/v1/tenants/{tenant}/issuers/{issuer}',
      roles: everyRole,
      summary: 'Returns one issuer (percent-encoded in the path). The ETag is that of its tenant.',
      response: IssuerDetails
    },
    ({ administrator, params }, services) => issuerAnswer(params, administrator, services)
  )
] as const
