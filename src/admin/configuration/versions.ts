// What was changed, by whom and when; an earlier state taken up again; several tenants changed at once.

import type { Static } from 'typebox'
import { closedObject, defaulted } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import { isTree, type Tree } from '../../config/shape.ts'
import type { DocumentChange } from '../../control/compiled-documents.ts'
import { shownDocument } from '../../control/document/tenant-document.ts'
import type { WantedChange } from '../../control/judge.ts'
import { recordRefusedChange } from '../changes.ts'
import { foreignCursor, pageQuery, pageSchema } from '../paging.ts'
import { AdminProblem, noSuch } from '../problem.ts'
import {
  administrators,
  AdminReply,
  defineRoute,
  everyRole,
  maySee,
  type AdminRequest,
  type AdminServices
} from '../route.ts'
import { checkPlanned, checkVersionNamed, etagOf, versionFor } from './conditions.ts'
import { Rollback, rollbackChange } from './planned/rollback.ts'
import { writeDocuments } from './write.ts'

/** Each is compiled in the turn of the event loop in which the change is made. */
const maxTenantsAtOnce = 100

const VersionEntry = closedObject({
  version: Type.Integer({ description: 'Grows by one with each change of any tenant.' }),
  at: Type.String({ description: 'RFC 3339.' }),
  actor: Type.String({ description: 'Name of the admin key.' }),
  role: Type.String({ description: 'Of the admin key.' }),
  action: Type.String({ description: 'Such as `tenant.put`, `key.revoke`, `rollback`.' }),
  tenants: Type.Array(Type.String(), { description: 'Those that it changed, of those that the key is for.' })
})

const ChangeResult = closedObject({
  version: Type.Integer({ description: 'In force at the process that answers, and at all others within a second.' }),
  tenants: Type.Array(Type.String(), { description: 'Those that were changed; none where everything was so already.' }),
  managedByFile: Type.Optional(
    Type.Array(Type.String(), {
      description: 'Of a rollback of all: tenants that the configuration file has now. They stay as the file says.'
    })
  )
})

export const wantedTenants = {
  tenants: Type.Unknown({
    description:
      'An object: for each tenant its configuration as PUT takes it, whole, with `{"secret": true}` for secrets that ' +
      'stay; null: it is removed.'
  })
}

export const behindFile = {
  behindFile: defaulted(
    Type.Boolean({
      default: false,
      description:
        'By a platform-admin: also tenants of the configuration file, which has them until it leaves them out. So a ' +
        'tenant moves from the file without a gap.'
    })
  )
}

/** @throws AdminProblem */
export function wantedChange({ administrator }: AdminRequest, tenants: unknown): WantedChange {
  if (!isTree(tenants))
    throw new AdminProblem('invalid_request', '"tenants" is no object.', 'Send one member for each tenant.')
  const entries = Object.entries(tenants)
  if (entries.length > maxTenantsAtOnce)
    throw new AdminProblem(
      'invalid_request',
      `The request is about more than ${maxTenantsAtOnce} tenants.`,
      'Send several.'
    )
  return new Map(
    entries.map(([id, wanted]): [string, Tree | undefined] => {
      if (!maySee(administrator, id)) throw noSuch('tenant')
      if (wanted === null) return [id, undefined]
      if (isTree(wanted)) return [id, wanted]
      throw new AdminProblem('invalid_request', 'A tenant is neither an object nor null.', 'Send it as PUT takes it.')
    })
  )
}

/** The same for what changes them: who names a tenant of others is in the audit log. @throws AdminProblem */
function notingForeign(request: AdminRequest, services: AdminServices, tenants: unknown): WantedChange {
  const { administrator, address } = request
  try {
    return wantedChange(request, tenants)
  } catch (error) {
    const { name: actor, role } = administrator
    if (error instanceof AdminProblem && error.code === 'not_found' && isTree(tenants)) {
      const target = Object.keys(tenants).find((id) => !maySee(administrator, id)) ?? ''
      recordRefusedChange(services, { actor, role, action: 'apply', tenant: undefined, target, address }, error.code)
    }
    throw error
  }
}

const tenantOfName = (name: string): string => name.slice(name.indexOf('/') + 1)

function resultOf(version: number, changes: readonly DocumentChange[], ofFile: readonly string[] = []): AdminReply {
  const body: Static<typeof ChangeResult> = {
    version,
    tenants: changes.map(({ tenant }) => tenant),
    ...(ofFile.length > 0 && { managedByFile: [...ofFile] })
  }
  return new AdminReply(body, { ETag: etagOf(version) })
}

export const versionRoutes = [
  defineRoute(
    {
      method: 'GET',
      path: '/v1/versions',
      roles: everyRole,
      summary:
        'The last hundred changes, the newest first; of one tenant, or where the key is for some, the last twenty of ' +
        'each, however often others change.',
      query: closedObject({
        tenant: Type.Optional(Type.String({ description: 'Not given: all that the key is for.' })),
        ...pageQuery
      }),
      response: pageSchema(VersionEntry)
    },
    async ({ administrator, query: { limit, cursor, tenant } }, { control }) => {
      if (cursor !== undefined && !/^[1-9]\d{0,14}$/.test(cursor)) throw foreignCursor()
      if (tenant !== undefined && !maySee(administrator, tenant)) throw noSuch('tenant')
      const wanted = tenant === undefined ? administrator.tenants : [tenant]
      const before = cursor === undefined ? Infinity : Number(cursor)
      const all = await control.history(wanted, before, limit + 1)
      const found = all.slice(0, limit)
      const items = found.flatMap(({ version, at, author, action, names }): Array<Static<typeof VersionEntry>> => {
        const tenants = [...new Set(names.map(tenantOfName))].filter((id) => maySee(administrator, id))
        return tenants.length === 0 ? [] : [{ version, at, actor: author.name, role: author.role, action, tenants }]
      })
      return { items, nextCursor: all.length > limit ? String(found.at(-1)?.version) : null }
    }
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/v1/tenants/{tenant}/versions/{version}',
      roles: administrators,
      tenantMayBeMissing: true,
      summary: 'The configuration of a tenant as it was in a version of `GET /v1/versions`.',
      response: closedObject({
        version: Type.Integer(),
        configuration: Type.Union([Type.Object({}), Type.Null()], {
          description: 'As it was put, with `{"secret": true}` in place of each secret. null: there was none.'
        })
      })
    },
    async ({ params }, { control }) => {
      const { tenant = '', version: text = '' } = params
      const version = /^[1-9]\d{0,14}$/.test(text) ? Number(text) : 0
      const found = version === 0 ? undefined : await control.at(version, tenant)
      if (found === undefined) throw noSuch('version')
      const document = found.get(tenant)
      return { version, configuration: document === undefined ? null : shownDocument(document.tree) }
    }
  ),
  defineRoute(
    {
      method: 'POST',
      path: '/v1/apply',
      roles: administrators,
      summary: 'Changes several tenants at once: all of it, or nothing.',
      body: closedObject({
        ...wantedTenants,
        ...behindFile,
        version: Type.Optional(
          Type.Integer({
            minimum: 0,
            description:
              'That of the plan: refused with 412 where somebody has changed one of these tenants since. Of tenants ' +
              'that are there already it is required (428), or the ETag of the plan as If-Match, or If-Match: *.'
          })
        )
      }),
      response: ChangeResult
    },
    async (request, services) => {
      const { tenants, version, behindFile: isBehindFile } = request.body
      const { control } = services
      const { administrator, conditions } = request
      const wanted = notingForeign(request, services, tenants)
      const planned = version === undefined ? conditions.ifMatch : etagOf(version)
      const changes = await writeDocuments(request, services, {
        action: 'apply',
        tenants: [...wanted.keys()],
        change: () => wanted,
        isBehindFile,
        admit: (change) => {
          checkVersionNamed(planned, change)
          checkPlanned(planned, change, administrator, control)
        },
        partOf: (tree) => tree
      })
      return resultOf(versionFor(administrator, control), changes)
    }
  ),
  defineRoute(
    {
      method: 'POST',
      path: '/v1/rollback',
      roles: ['platform-admin'],
      summary:
        'Takes up an earlier version again, as a new one: of one tenant, or of all that this API made. API keys that ' +
        'were revoked since stay revoked, those that were made since stay, and kill switches stay on, also of a ' +
        'tenant that was removed since. With the ETag of its plan as If-Match it is refused with 412 where the ' +
        'configuration of one that it changes has changed since.',
      body: Rollback,
      response: ChangeResult
    },
    async (request, services) => {
      const { control } = services
      const { ofFile, ...change } = await rollbackChange(control, request.body)
      const changes = await writeDocuments(request, services, {
        ...change,
        action: 'rollback',
        target: `version ${request.body.version}`,
        admit: (change) => checkPlanned(request.conditions.ifMatch, change, request.administrator, control),
        partOf: (tree) => tree
      })
      return resultOf(control.version, changes, ofFile)
    }
  )
] as const
