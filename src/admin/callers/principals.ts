// Who has called a tenant today, with a session or without one.

import type { Static } from 'typebox'
import { closedObject } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import { page, pageQuery, pageSchema } from '../paging.ts'
import { defineRoute, everyRole } from '../route.ts'
import type { SeenCaller } from './callers.ts'

const PrincipalEntry = closedObject({
  kind: Type.String({ description: 'How the caller authenticates: `token`, `key` or `anonymous`.' }),
  issuer: Type.String({
    description: "Issuer of the caller's identity: the `iss` of its token, or a URN of the gateway."
  }),
  subject: Type.String({ description: 'Subject of the token, or name of the API key.' }),
  client: Type.String({ description: '`client_id` of the token, or the name of the API key.' }),
  software: Type.Union([Type.String(), Type.Null()], { description: 'Name and version that the client reports.' }),
  groups: Type.Array(Type.String(), { description: 'Groups of its last token.' }),
  roles: Type.Array(Type.String(), { description: 'Roles of its last token.' }),
  calls: Type.Integer({ description: 'Number of calls that have ended since the process first saw the caller.' }),
  firstSeenAt: Type.String({ description: 'RFC 3339.' }),
  lastSeenAt: Type.String({ description: 'RFC 3339.' })
})

const entryOf = ({ principal, software, calls, firstAt, lastAt }: SeenCaller): Static<typeof PrincipalEntry> => ({
  kind: principal.kind,
  issuer: principal.issuer,
  subject: principal.subject,
  client: principal.clientId,
  software: software ?? null,
  groups: [...(principal.groups ?? [])],
  roles: [...(principal.roles ?? [])],
  calls,
  firstSeenAt: new Date(firstAt).toISOString(),
  lastSeenAt: new Date(lastAt).toISOString()
})

export const principalsRoute = defineRoute(
  {
    method: 'GET',
    path: '/v1/tenants/{tenant}/principals',
    roles: everyRole,
    summary:
      'Who has called a tenant today (UTC) at the process that answers, with a session or without one: of the two ' +
      'hundred who called last.',
    query: closedObject(pageQuery),
    response: pageSchema(PrincipalEntry)
  },
  ({ tenant, query }, { callers }) =>
    page(
      callers.today(tenant.id).map(entryOf),
      ({ kind, issuer, subject, client }) => JSON.stringify([subject, kind, issuer, client]),
      query
    )
)
