// API keys of a tenant: one is made and shown once, one is taken away.

import { newApiKey } from '../../auth/keyring.ts'
import { KeySchema } from '../../config/schema/auth.ts'
import { closedObject, scopes } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import { keyDigest } from '../../config/auth/key-rules.ts'
import { isTree, listOf, treeOf, type Tree } from '../../config/shape.ts'
import type { Documents } from '../../control/compiled-documents.ts'
import { ControlError } from '../../control/control-error.ts'
import { issuerOfKeys } from '../../control/same-targets.ts'
import { shownDocument } from '../../control/document/tenant-document.ts'
import { killedText, killOfCaller } from '../../policy/kills.ts'
import { page, pageQuery, pageSchema } from '../paging.ts'
import { noSuch } from '../problem.ts'
import { administrators, AdminReply, defineRoute, everyRole, type AdminRequest, type AdminServices } from '../route.ts'
import { etagHeader } from './managed.ts'
import { writeDocuments } from './write.ts'

const KeyEntry = closedObject({
  name: Type.String({ description: 'Name of the key: who holds it.' }),
  scopes: Type.Array(Type.String(), { description: 'What the holder may do.' }),
  endpoints: Type.Optional(
    Type.Array(Type.String(), {
      description: 'Names of the endpoints that the key is for. Not given: all endpoints of the tenant.'
    })
  ),
  expires: Type.Optional(Type.String({ description: 'When the key expires. Not given: it does not.' }))
})

const ListedKey = closedObject({
  ...KeyEntry.properties,
  stopped: Type.Boolean({
    description: 'Whether a kill switch stops it: one for the key, for its holder or for the tenant.'
  })
})

const NewKey = closedObject({
  ...KeyEntry.properties,
  key: Type.String({ description: 'The key. It is not shown again.' })
})

const keysOf = (tree: Tree): readonly Tree[] => listOf(treeOf(tree['auth'])['keys']).map(treeOf)

const keyNamed = (tree: Tree, name: string): Tree | undefined => keysOf(tree).find((each) => each['name'] === name)

/** The document as it is shown, with other keys. @throws AdminProblem, ControlError */
function withKeys(documents: Documents, tenant: string, change: (keys: readonly Tree[]) => readonly Tree[]) {
  const document = documents.get(tenant)
  if (document === undefined) throw noSuch('tenant')
  const shown = shownDocument(document.tree)
  const { auth } = shown
  if (!isTree(auth))
    throw new ControlError('conflict', 'The tenant lets everybody in without a key.', 'Change its auth first.')
  return new Map([[tenant, { ...shown, auth: { ...auth, keys: change(keysOf(shown)) } }]])
}

const holderOf = (name: string) => ({ issuer: issuerOfKeys, subject: name })

/** A kill switch holds the name: the new key would be stopped from the start. @throws ControlError conflict */
function checkNotStopped(tenant: string, name: string, { control }: AdminServices): void {
  const kills = (control.killsOf(tenant) ?? []).map((kill) => ({ kill, also: new Set<string>() }))
  const kill = killOfCaller({ kills }, holderOf(name))
  if (kill === undefined) return
  throw new ControlError(
    'conflict',
    `A kill switch has stopped ${killedText(kill)}: a new key of this name could not be used.`,
    'Choose another name, or take the kill switch back first.'
  )
}

const tenantIn = ({ params }: AdminRequest): string => params['tenant'] ?? ''

export const keyRoutes = [
  defineRoute(
    {
      method: 'GET',
      path: '/v1/tenants/{tenant}/keys',
      roles: everyRole,
      summary: 'Lists the API keys of a tenant, also stopped ones: names and permissions, never the keys.',
      query: closedObject(pageQuery),
      response: pageSchema(ListedKey)
    },
    ({ tenant, query }) => {
      const keys = tenant.auth.keys.map(({ name, scopes: own, endpoints, expires }) => ({
        name,
        scopes: [...own],
        ...(endpoints !== undefined && { endpoints: [...endpoints] }),
        ...(expires !== undefined && { expires: new Date(expires).toISOString() }),
        stopped: tenant.auth.stopped === 'everybody' || killOfCaller(tenant, holderOf(name)) !== undefined
      }))
      return page(keys, ({ name }) => name, query)
    }
  ),
  defineRoute(
    {
      method: 'POST',
      path: '/v1/tenants/{tenant}/keys',
      roles: administrators,
      summary:
        'Makes an API key. This answer alone has the key; the same request with the same `Idempotency-Key` gets it ' +
        'again.',
      tenantMayBeMissing: true,
      body: closedObject({
        name: KeySchema.properties.name,
        scopes: scopes('What the holder may do, such as `mcp`.'),
        endpoints: KeySchema.properties.endpoints,
        expires: KeySchema.properties.expires
      }),
      creates: true,
      response: NewKey
    },
    async (request, services) => {
      const tenant = tenantIn(request)
      const { name, scopes: wanted, ...limits } = request.body
      services.control.checkOwner(tenant)
      const key = newApiKey()
      const entry = { name, sha256: keyDigest({ key }), scopes: wanted, ...limits }
      const [made] = await writeDocuments(request, services, {
        action: 'key.make',
        target: name,
        change: (documents) =>
          withKeys(documents, tenant, (keys) => {
            if (keys.some((each) => each['name'] === name))
              throw new ControlError('conflict', 'There is a key of this name.', 'Choose another name.')
            checkNotStopped(tenant, name, services)
            return [...keys, entry]
          }),
        partOf: (tree) => keyNamed(tree, name)
      })
      return new AdminReply({ name, scopes: wanted, ...limits, key }, etagHeader(made?.after), 201)
    }
  ),
  defineRoute(
    {
      method: 'DELETE',
      path: '/v1/tenants/{tenant}/keys/{key}',
      roles: administrators,
      summary: 'Revokes an API key: calls and streams of its holder end at every process. Takes no If-Match.',
      tenantMayBeMissing: true
    },
    async (request, services) => {
      const tenant = tenantIn(request)
      const name = request.params['key'] ?? ''
      services.control.checkOwner(tenant)
      const [made] = await writeDocuments(request, services, {
        action: 'key.revoke',
        target: name,
        change: (documents) =>
          withKeys(documents, tenant, (keys) => {
            if (!keys.some((each) => each['name'] === name)) throw noSuch('key')
            return keys.filter((each) => each['name'] !== name)
          }),
        partOf: (tree) => keyNamed(tree, name)
      })
      return new AdminReply(undefined, etagHeader(made?.after))
    }
  )
] as const
