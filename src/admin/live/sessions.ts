// The sessions of a tenant at all processes: who has them, and how one is ended. What names a session here is not its
// id, which is a secret of its client.

import type { Static } from 'typebox'
import { closedObject } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import { sessionCursor, sessionHandle } from '../../session/session-index.ts'
import type { Session } from '../../session/sessions.ts'
import { changeHash, recordChange } from '../changes.ts'
import { foreignCursor, pageSchema, pageQuery } from '../paging.ts'
import { noSuch } from '../problem.ts'
import { administrators, defineRoute, everyRole } from '../route.ts'

/** The form of a cursor of `sessionCursor`. */
const isCursor = /^[0-9a-z]{9}\.[\w-]{22}$/

/** What the record of a session costs to read, in characters of a document: measured. */
const charsPerRecord = 20

/** Returns what an administrator pays for so many records that are read at once. */
export const charsOfRecords = (count: number): number => count * charsPerRecord

export const SessionEntry = closedObject({
  id: Type.String({
    description:
      'Id of the session in this API, of which the log has the first 8 characters. It is not the `Mcp-Session-Id`.'
  }),
  endpoint: Type.String({ description: 'Name of its endpoint.' }),
  issuer: Type.String({
    description: "Issuer of the caller's identity: the `iss` of its token, or a URN of the gateway."
  }),
  subject: Type.String({ description: 'Subject of the token, or name of the API key.' }),
  client: Type.String({ description: '`client_id` of the token, or the name of the API key.' }),
  software: Type.Union([Type.String(), Type.Null()], { description: 'Name and version that the client reports.' }),
  revision: Type.String({ description: 'MCP revision of the session.' }),
  openedAt: Type.String({ description: 'RFC 3339.' }),
  lastUsedAt: Type.String({ description: 'RFC 3339, to the minute or to a tenth of `limits.sessionIdleMs`.' })
})

export function shownSession({ key, record }: Session): Static<typeof SessionEntry> {
  const { owner, endpoint, clientInfo, revision, openedAt, touchedAt } = record
  return {
    id: sessionHandle(key),
    endpoint,
    issuer: owner.issuer,
    subject: owner.subject,
    client: owner.clientId,
    software: clientInfo === undefined ? null : `${clientInfo.name} ${clientInfo.version}`,
    revision,
    openedAt: new Date(openedAt).toISOString(),
    lastUsedAt: new Date(touchedAt).toISOString()
  }
}

export const sessionRoutes = [
  defineRoute(
    {
      method: 'GET',
      path: '/v1/tenants/{tenant}/sessions',
      roles: everyRole,
      summary: 'Lists the open sessions of a tenant at all processes, the newest first.',
      query: closedObject(pageQuery),
      response: pageSchema(SessionEntry)
    },
    async ({ tenant, query: { limit, cursor } }, { sessions: { index } }) => {
      if (cursor !== undefined && !isCursor.test(cursor)) throw foreignCursor()
      const found = await index.list(tenant.id, limit + 1, cursor)
      const last = found.length > limit ? found[limit - 1] : undefined
      return {
        items: found.slice(0, limit).map(shownSession),
        nextCursor: last === undefined ? null : sessionCursor(last)
      }
    }
  ),
  defineRoute(
    {
      method: 'DELETE',
      path: '/v1/tenants/{tenant}/sessions/{session}',
      roles: administrators,
      summary: 'Ends a session at every process. Its calls end; its client gets 404 and may open another session.'
    },
    async ({ tenant, params, administrator, address }, services) => {
      const { sessions } = services
      const target = params['session'] ?? ''
      const session = await sessions.index.find(tenant.id, target)
      if (session === undefined) throw noSuch('session')
      await sessions.end(session)
      await recordChange(services, {
        actor: administrator.name,
        role: administrator.role,
        action: 'session.end',
        tenant: tenant.id,
        target,
        before: changeHash(shownSession(session)),
        after: undefined,
        address
      })
    }
  )
] as const
