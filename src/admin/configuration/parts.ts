// The parts of the document of a tenant that have paths of their own, and where each stands in it.

import { isTree, listOf, treeOf, type Tree } from '../../config/shape.ts'
import { ControlError } from '../../control/control-error.ts'

export type PartKind = 'tenant' | 'upstream' | 'endpoint' | 'issuer' | 'limit' | 'policy'

interface PartPlace {
  /** undefined: it is not there. */
  read(tree: Tree): unknown
  /** @param part undefined: without it. @throws ControlError conflict */
  write(tree: Tree, part: unknown): Tree
}

/** @param name of a part of which there may be several */
export const placeOf = (kind: PartKind, name: string): PartPlace => places[kind](name)

const places: Readonly<Record<PartKind, (name: string) => PartPlace>> = {
  tenant: () => ({ read: (tree) => tree, write: (_tree, part) => treeOf(part) }),
  upstream: (name) => member('upstreams', name),
  endpoint: (name) => ({
    read: (tree) => memberOf(tree['endpoints'] ?? impliedEndpoints(tree), name),
    write(tree, part) {
      if (part !== undefined) checkImpliedEndpoint(tree, name)
      return member('endpoints', name).write(tree, part)
    }
  }),
  issuer: (name) => ({
    read: ({ auth }) => issuersOf(auth).find((each) => treeOf(each)['issuer'] === name),
    write(tree, part) {
      const { auth } = tree
      if (!isTree(auth))
        throw new ControlError('conflict', 'The tenant lets everybody in without a token.', 'Change its auth first.')
      const issuers = issuersOf(auth)
      const at = issuers.findIndex((each) => treeOf(each)['issuer'] === name)
      const changed = part === undefined ? [] : [part]
      const after = at < 0 ? [...issuers, ...changed] : issuers.toSpliced(at, 1, ...changed)
      return { ...tree, auth: { ...auth, issuers: after } }
    }
  }),
  limit: (name) => member('limits', name),
  policy: () => ({
    read: ({ policy }) => policy,
    write: ({ policy: _before, ...rest }, part) => (part === undefined ? rest : { ...rest, policy: part })
  })
}

const issuersOf = (auth: unknown): readonly unknown[] => listOf(treeOf(auth)['issuers'])

const memberOf = (map: unknown, name: string): unknown =>
  Object.hasOwn(treeOf(map), name) ? treeOf(map)[name] : undefined

const member = (map: string, name: string): PartPlace => ({
  read: (tree) => memberOf(tree[map], name),
  write(tree, part) {
    const parts = new Map(Object.entries(treeOf(tree[map])))
    if (part === undefined) parts.delete(name)
    else parts.set(name, part)
    return { ...tree, [map]: Object.fromEntries(parts) }
  }
})

/** The endpoint of a tenant that names none. */
const impliedEndpoints = ({ upstreams }: Tree): Tree => ({ default: { upstreams: Object.keys(treeOf(upstreams)) } })

/** Whoever adds a second endpoint would otherwise lose the one that is there without being named. */
function checkImpliedEndpoint(tree: Tree, name: string): void {
  if (tree['endpoints'] !== undefined || name === 'default') return
  throw new ControlError(
    'conflict',
    'The tenant has the endpoint default with all its upstreams, because its configuration names none.',
    'Put the endpoint default first, or the tenant with all its endpoints.'
  )
}
