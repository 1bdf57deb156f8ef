// Tenants, and their upstreams and endpoints one by one, are made, changed and removed: parts of one document for each
// tenant, judged as a whole and written as a whole.

import { EndpointSchema } from '../../config/schema/endpoint.ts'
import { TenantSchema } from '../../config/schema/config.ts'
import { UpstreamSchema } from '../../config/schema/upstream.ts'
import { isTree, treeOf, type Tree } from '../../config/shape.ts'
import { Type } from '../../config/schema/type.ts'
import type { DocumentChange } from '../../control/compiled-documents.ts'
import { ControlError } from '../../control/control-error.ts'
import { mergePatch, shownDocument, type TenantDocument } from '../../control/tenant-document.ts'
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
import { checkPreconditions } from './conditions.ts'
import { etagHeader } from './managed.ts'
import { writeDocuments } from './write.ts'

type Kind = 'tenant' | 'upstream' | 'endpoint'

/** Where a part stands in the document of its tenant. */
const placeOf = (kind: Kind, name: string): readonly string[] => (kind === 'tenant' ? [] : [`${kind}s`, name])

function partOf(tree: Tree | undefined, [member, name]: readonly string[]): unknown {
  if (member === undefined || name === undefined || tree === undefined) return tree
  const parts = treeOf(tree[member] ?? (member === 'endpoints' ? impliedEndpoints(tree) : {}))
  return Object.hasOwn(parts, name) ? parts[name] : undefined
}

/** Where a tenant names no endpoints, it has this one. */
const impliedEndpoints = ({ upstreams }: Tree): Tree => ({ default: { upstreams: Object.keys(treeOf(upstreams)) } })

/** @param part undefined: without it */
function withPart(tree: Tree, [member = '', name = '']: readonly string[], part: unknown): Tree {
  const parts = new Map(Object.entries(treeOf(tree[member])))
  if (part === undefined) parts.delete(name)
  else parts.set(name, part)
  return { ...tree, [member]: Object.fromEntries(parts) }
}

function treeIn(body: unknown): Tree {
  if (isTree(body)) return body
  throw new AdminProblem('invalid_request', 'The body is no JSON object.', 'Send one JSON object.')
}

/** Whoever adds a second endpoint would otherwise lose the one that is there without being named. */
function checkImpliedEndpoint(tree: Tree, name: string): void {
  if (tree['endpoints'] !== undefined || name === 'default') return
  throw new ControlError(
    'conflict',
    'The tenant has the endpoint default with all its upstreams, because its configuration names none.',
    'Put the endpoint default first, or the tenant with all its endpoints.'
  )
}

interface PartChange {
  readonly kind: Kind
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
  const { tenant = '', [kind]: name = '' } = request.params
  services.control.checkOwner(tenant)
  const place = placeOf(kind, name)
  const versionOf = (document: TenantDocument | undefined): number | undefined =>
    partOf(document?.tree, place) === undefined ? undefined : document?.version
  const [made] = await writeDocuments(request, services, {
    action: `${kind}.${verb}`,
    target: kind === 'tenant' ? tenant : name,
    change(documents) {
      const document = documents.get(tenant)
      if (document === undefined && kind !== 'tenant') throw noSuch('tenant')
      const shown = document && shownDocument(document.tree)
      const part = partOf(shown, place)
      if (part === undefined && verb !== 'put') throw noSuch(kind)
      const wanted = next(part)
      if (kind === 'tenant') return new Map([[tenant, wanted === undefined ? undefined : treeIn(wanted)]])
      if (kind === 'endpoint' && verb === 'put') checkImpliedEndpoint(shown ?? {}, name)
      return new Map([[tenant, withPart(shown ?? {}, place, wanted)]])
    },
    admit: ({ before }) => checkPreconditions(request.conditions, versionOf(before)),
    partOf: (shown) => partOf(shown, place)
  })
  return made
}

const wasMade = (made: DocumentChange | undefined, kind: Kind, name: string): boolean =>
  made?.after !== undefined && partOf(made.before?.tree, placeOf(kind, name)) === undefined

const answers = { tenant: tenantAnswer, upstream: upstreamAnswer, endpoint: endpointAnswer }
const schemas = { tenant: TenantSchema, upstream: UpstreamSchema, endpoint: EndpointSchema }
const responses = { tenant: TenantDetails, upstream: UpstreamEntry, endpoint: EndpointDetails }
const paths = {
  tenant: '/v1/tenants/{tenant}',
  upstream: '/v1/tenants/{tenant}/upstreams/{upstream}',
  endpoint: '/v1/tenants/{tenant}/endpoints/{endpoint}'
} as const
const names = { tenant: 'a tenant', upstream: 'an upstream', endpoint: 'an endpoint' }
const words = {
  tenant: 'a tenant, whole, as `tenants.{id}` of [config.md](config.md); a platform-admin alone makes new ones',
  upstream: 'an upstream of a tenant, as `tenants.{id}.upstreams.{name}` of [config.md](config.md)',
  endpoint: 'an endpoint of a tenant, as `tenants.{id}.endpoints.{name}` of [config.md](config.md)'
}

function routesOf(kind: Kind): AdminRoute[] {
  const answer = ({ params, administrator }: AdminRequest, services: AdminServices, status?: number): AdminReply =>
    answers[kind](params, administrator, services, status)
  const shared = { path: paths[kind], roles: administrators, isForDocument: true } as const
  return [
    defineRoute(
      {
        ...shared,
        method: 'PUT',
        summary: `Makes or replaces ${words[kind]}. What is there already is replaced with If-Match only.`,
        body: schemas[kind],
        isOwnJudge: true,
        response: responses[kind]
      },
      async (request, services) => {
        const made = await changePart(request, services, { kind, verb: 'put', next: () => treeIn(request.body) })
        return answer(request, services, wasMade(made, kind, request.params[kind] ?? '') ? 201 : 200)
      }
    ),
    defineRoute(
      {
        ...shared,
        method: 'PATCH',
        summary:
          `Changes some members of ${names[kind]}, with If-Match: JSON Merge Patch (RFC 7396). ` +
          '`null` removes a member.',
        body: Type.Object({}, { description: 'The members to change.' }),
        isOwnJudge: true,
        response: responses[kind]
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
            ? 'Removes a tenant with all that it has, with If-Match: its sessions end.'
            : `Removes an ${kind}, with If-Match.`
      },
      async (request, services) => {
        const made = await changePart(request, services, { kind, verb: 'delete', next: () => undefined })
        return new AdminReply(undefined, etagHeader(made?.after))
      }
    )
  ]
}

export const documentRoutes: readonly AdminRoute[] = (['tenant', 'upstream', 'endpoint'] as const).flatMap(routesOf)
