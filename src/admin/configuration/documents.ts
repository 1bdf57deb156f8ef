// Tenants, and their upstreams and endpoints one by one, are made, changed and removed: parts of one document for each
// tenant, judged as a whole and written as a whole.

import { CallLimitSchema } from '../../config/schema/call-limits.ts'
import { IssuerSchema } from '../../config/schema/auth.ts'
import { EndpointSchema } from '../../config/schema/endpoint.ts'
import { PolicySchema } from '../../config/schema/policy.ts'
import { TenantSchema } from '../../config/schema/config.ts'
import { UpstreamSchema } from '../../config/schema/upstream.ts'
import { isTree, type Tree } from '../../config/shape.ts'
import { Type } from '../../config/schema/type.ts'
import type { DocumentChange } from '../../control/compiled-documents.ts'
import { mergePatch } from '../../control/document/merge-patch.ts'
import { shownDocument, type TenantDocument } from '../../control/document/tenant-document.ts'
import { AdminProblem, noSuch } from '../problem.ts'
import {
  administrators,
  AdminReply,
  defineRoute,
  type AdminRequest,
  type AdminRoute,
  type AdminServices
} from '../route.ts'
import { TenantDetails, tenantAnswer } from '../tenants.ts'
import { UpstreamEntry, upstreamAnswer } from '../upstreams.ts'
import { EndpointDetails, endpointAnswer } from '../endpoints.ts'
import { CallLimitDetails, callLimitAnswer } from './call-limits.ts'
import { checkNoneMatch, checkPreconditions } from './conditions.ts'
import { IssuerDetails, issuerAnswer } from './issuers.ts'
import { etagHeader } from './managed.ts'
import { placeOf, type PartKind } from './parts.ts'
import { PolicyDetails, policyAnswer } from './policies.ts'
import { writeDocuments } from './write.ts'

function treeIn(body: unknown): Tree {
  if (isTree(body)) return body
  throw new AdminProblem('invalid_request', 'The body is no JSON object.', 'Send one JSON object.')
}

interface PartChange {
  readonly kind: PartKind
  readonly verb: 'put' | 'patch' | 'delete'
  /** The new part, of what is shown of the present one. undefined: it is removed. @throws AdminProblem */
  readonly next: (shown: unknown) => unknown
}

/** @returns what was changed; undefined where it was so already */
async function changePart(
  request: AdminRequest,
  services: AdminServices,
  { kind, verb, next }: PartChange
): Promise<DocumentChange | undefined> {
  const { tenant = '', [kind]: name = kind } = request.params
  services.control.checkOwner(tenant)
  const place = placeOf(kind, name)
  const partOf = (tree: Tree | undefined): unknown => tree && place.read(tree)
  const versionOf = (document: TenantDocument | undefined): number | undefined =>
    partOf(document?.tree) === undefined ? undefined : document?.version
  const [made] = await writeDocuments(request, services, {
    action: `${kind}.${verb}`,
    target: kind === 'tenant' ? tenant : name,
    change(documents) {
      const document = documents.get(tenant)
      if (document === undefined && kind !== 'tenant') throw noSuch('tenant')
      const shown = document && shownDocument(document.tree)
      const part = partOf(shown)
      if (part === undefined && verb !== 'put') throw noSuch(kind)
      checkNoneMatch(request.conditions, versionOf(document))
      const wanted = next(part)
      if (kind === 'tenant' && wanted === undefined) return new Map([[tenant, undefined]])
      return new Map([[tenant, place.write(shown ?? {}, wanted)]])
    },
    admit: ({ before }) => checkPreconditions(request.conditions, versionOf(before)),
    partOf
  })
  return made
}

const wasMade = (made: DocumentChange | undefined, kind: PartKind, name: string): boolean =>
  made?.after !== undefined && (made.before === undefined || placeOf(kind, name).read(made.before.tree) === undefined)

const base = '/v1/tenants/{tenant}'
const kinds = {
  tenant: {
    path: base,
    schema: TenantSchema,
    response: TenantDetails,
    answer: tenantAnswer,
    name: 'a tenant',
    words: 'a tenant, whole, as `tenants.{id}` of [config.md](config.md); only platform-admins make new ones'
  },
  upstream: {
    path: `${base}/upstreams/{upstream}`,
    schema: UpstreamSchema,
    response: UpstreamEntry,
    answer: upstreamAnswer,
    name: 'an upstream',
    words: 'an upstream of a tenant, as `tenants.{id}.upstreams.{name}` of [config.md](config.md)'
  },
  endpoint: {
    path: `${base}/endpoints/{endpoint}`,
    schema: EndpointSchema,
    response: EndpointDetails,
    answer: endpointAnswer,
    name: 'an endpoint',
    words: 'an endpoint of a tenant, as `tenants.{id}.endpoints.{name}` of [config.md](config.md)'
  },
  issuer: {
    path: `${base}/issuers/{issuer}`,
    schema: IssuerSchema,
    response: IssuerDetails,
    answer: issuerAnswer,
    name: 'an issuer',
    words: 'an issuer of tokens (percent-encoded), as one of `tenants.{id}.auth.issuers` of [config.md](config.md)'
  },
  limit: {
    path: `${base}/limits/{limit}`,
    schema: CallLimitSchema,
    response: CallLimitDetails,
    answer: callLimitAnswer,
    name: 'a limit of calls',
    words: 'a limit of calls of a tenant, as `tenants.{id}.limits.{name}` of [config.md](config.md)'
  },
  policy: {
    path: `${base}/policy`,
    schema: PolicySchema,
    response: PolicyDetails,
    answer: policyAnswer,
    name: 'the policy of a tenant',
    words: 'the policy of a tenant, as `tenants.{id}.policy` of [config.md](config.md)'
  }
} as const

/** Returns the part that was sent: of an issuer, what the path says need not be sent again. */
function partIn({ body, params }: AdminRequest, kind: PartKind): Tree {
  const part = treeIn(body)
  const { issuer } = params
  if (kind !== 'issuer' || part['issuer'] === issuer) return part
  if (part['issuer'] === undefined) return { ...part, issuer }
  throw new AdminProblem('invalid_request', 'The body names another issuer than the path.', 'Name one of them.')
}

function routesOf(kind: PartKind): AdminRoute[] {
  const about = kinds[kind]
  const answer = ({ params, administrator }: AdminRequest, services: AdminServices, status?: number): AdminReply =>
    about.answer(params, administrator, services, status)
  const shared = { path: about.path, roles: administrators, tenantMayBeMissing: true } as const
  return [
    defineRoute(
      {
        ...shared,
        method: 'PUT',
        summary: `Makes or replaces ${about.words}. Replacing requires If-Match.`,
        body: about.schema,
        validatesBody: true,
        creates: true,
        response: about.response
      },
      async (request, services) => {
        const made = await changePart(request, services, { kind, verb: 'put', next: () => partIn(request, kind) })
        return answer(request, services, wasMade(made, kind, request.params[kind] ?? kind) ? 201 : 200)
      }
    ),
    defineRoute(
      {
        ...shared,
        method: 'PATCH',
        summary:
          `Changes some members of ${about.name} by a JSON Merge Patch (RFC 7396), in which \`null\` removes a ` +
          'member. Requires If-Match.',
        body: Type.Object({}, { description: 'The members to change.' }),
        validatesBody: true,
        response: about.response
      },
      async (request, services) => {
        const next = (shown: unknown): unknown => mergePatch(shown, treeIn(request.body))
        await changePart(request, services, { kind, verb: 'patch', next })
        return answer(request, services)
      }
    ),
    defineRoute(
      {
        ...shared,
        method: 'DELETE',
        roles: kind === 'tenant' ? ['platform-admin'] : administrators,
        summary:
          kind === 'tenant'
            ? 'Removes a tenant and all its parts; its sessions end. Requires If-Match.'
            : `Removes ${about.name}. Requires If-Match.`
      },
      async (request, services) => {
        const made = await changePart(request, services, { kind, verb: 'delete', next: () => undefined })
        return new AdminReply(undefined, etagHeader(made?.after))
      }
    )
  ]
}

export const documentRoutes: readonly AdminRoute[] = (
  ['tenant', 'upstream', 'endpoint', 'issuer', 'limit', 'policy'] as const
).flatMap(routesOf)
