// Routes for the history of configuration changes, for the rollback to an earlier version, and for a change of several
// tenants at once.

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

/** All tenants of one request are compiled in one turn of the event loop. */
const maxTenantsAtOnce = 100

const VersionEntry = closedObject({
  version: Type.Integer({ description: 'The number of the version. It grows by one with each change of any tenant.' }),
  at: Type.String({ description: 'When the change was made (RFC 3339).' }),
  actor: Type.String({
    description: 'Who made the change: the name of the admin key, or subject and issuer of a token.'
  }),
  role: Type.String({ description: 'The role of the actor.' }),
  action: Type.String({ description: 'What was done, such as `tenant.put`, `key.revoke` or `rollback`.' }),
  tenants: Type.Array(Type.String(), { description: 'Ids of the changed tenants, as far as the key is for them.' })
})

const ChangeResult = closedObject({
  version: Type.Integer({
    description:
      'The version after the change. It is in force at the process that answers, and within a second at all others.'
  }),
  tenants: Type.Array(Type.String(), {
    description: 'Ids of the changed tenants. Empty: the configuration was the wanted one already.'
  }),
  managedByFile: Type.Optional(
    Type.Array(Type.String(), {
      description:
        'After a rollback of all tenants: those that the configuration file manages now. The rollback leaves them ' +
        'unchanged.'
    })
  )
})

export const wantedTenants = {
  tenants: Type.Unknown({
    description:
      'An object with one member for each tenant id. Its value is the whole configuration of the tenant, as for PUT, ' +
      'with `{"secret": true}` for each secret that stays the same; or null, which removes the tenant.'
  })
}

export const behindFile = {
  behindFile: defaulted(
    Type.Boolean({
      default: false,
      description:
        'Also stores configurations of tenants that the configuration file manages (platform-admins only). Each ' +
        'takes effect when the file no longer has the tenant, so a tenant moves to this API without a gap.'
    })
  )
}

/**
 * Reads the member `tenants` of a plan or an apply.
 * @returns the wanted configuration by tenant id; undefined: the tenant is to be removed
 * @throws AdminProblem invalid_request; not_found for a tenant that the key is not for
 */
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

/** Like `wantedChange`, but writes an attempt on a tenant that the key is not for to the audit log. */
function auditedChange(request: AdminRequest, services: AdminServices, tenants: unknown): WantedChange {
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
        'Lists the last hundred changes, the newest first. With `tenant`, or with a key that is for some tenants ' +
        'only, the last twenty changes of each tenant.',
      query: closedObject({
        tenant: Type.Optional(
          Type.String({ description: 'Only changes of this tenant. Not given: of all that the key is for.' })
        ),
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
      summary: 'Returns the configuration of a tenant in an earlier version, one of `GET /v1/versions`.',
      response: closedObject({
        version: Type.Integer({ description: 'The version that was asked for.' }),
        configuration: Type.Union([Type.Object({}), Type.Null()], {
          description:
            'The configuration as it was sent, with `{"secret": true}` in place of each secret. null: the tenant did ' +
            'not exist in that version.'
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
      summary: 'Changes several tenants at once. If one of the changes is refused, none is made.',
      body: closedObject({
        ...wantedTenants,
        ...behindFile,
        version: Type.Optional(
          Type.Integer({
            minimum: 0,
            description:
              'The `version` of the plan. The change is refused with 412 if one of its tenants has been changed ' +
              'since. Tenants that exist already require it (else 428), or If-Match with the ETag of the plan or `*`.'
          })
        )
      }),
      response: ChangeResult
    },
    async (request, services) => {
      const { tenants, version, behindFile: isBehindFile } = request.body
      const { control } = services
      const { administrator, conditions } = request
      const wanted = auditedChange(request, services, tenants)
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
        'Restores an earlier version, as a new one: of one tenant, or of all tenants that this API manages. API keys ' +
        'that were revoked since stay revoked, API keys that were made since stay, and kill switches stay on, also ' +
        'those of a tenant that was removed since. If-Match with the ETag of the plan refuses the rollback with 412 ' +
        'if one of the tenants that it changes has been changed since the plan.',
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
