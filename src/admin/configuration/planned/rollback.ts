// An earlier version taken up again: what of the documents it changes, and which of their API keys come back.

import type { Static } from 'typebox'
import { closedObject } from '../../../config/schema/parts.ts'
import { Type } from '../../../config/schema/type.ts'
import { isTree, listOf, treeOf, type Tree } from '../../../config/shape.ts'
import type { Documents } from '../../../control/compiled-documents.ts'
import { ControlError } from '../../../control/control-error.ts'
import type { Control } from '../../../control/control.ts'
import type { Wish } from '../../../control/judge.ts'
import type { RemovedTenant } from '../../../control/removed-tenants.ts'
import { noSuch } from '../../problem.ts'

export const Rollback = closedObject({
  version: Type.Integer({ minimum: 1, description: 'One of `GET /v1/versions`.' }),
  tenant: Type.Optional(Type.String({ description: 'Not given: all.' }))
})

/** The document of then with those of its API keys only that the other one has, too, whatever their names. */
function withKeysOf(then: Tree, { auth: other }: Tree): Tree {
  const { auth } = then
  if (!isTree(auth) || !Array.isArray(auth['keys'])) return then
  const valueOf = (key: unknown): string => JSON.stringify([treeOf(key)['sha256'], treeOf(key)['key']])
  const known = new Set(listOf(treeOf(other)['keys']).map(valueOf))
  return { ...then, auth: { ...auth, keys: auth['keys'].filter((key) => known.has(valueOf(key))) } }
}

/**
 * What makes the documents of now those of then, without keys that were revoked since.
 * @param removed what tenants that are not there any more had last
 * @throws ControlError conflict
 */
const differenceTo = (
  then: Documents,
  now: Documents,
  removed: ReadonlyMap<string, RemovedTenant>
): Map<string, Tree | undefined> =>
  new Map(
    [...new Set([...then.keys(), ...now.keys()])].map((id) => {
      const tree = then.get(id)?.tree
      if (tree === undefined) return [id, undefined]
      const last = now.get(id) ?? removed.get(id)
      // What was revoked since is not known: it must not come back.
      if (last === undefined) throw new ControlError('conflict', `The tenant ${id} is being removed.`, 'Try again.')
      return [id, withKeysOf(tree, last.tree)]
    })
  )

/**
 * @returns the wish, and the tenants of the version that the configuration file has now, which are left out
 * @throws AdminProblem not_found, GatewayError unavailable
 */
export async function rollbackWish(
  control: Pick<Control, 'at' | 'isOfFile' | 'removedOf'>,
  { version, tenant }: Static<typeof Rollback>
): Promise<Required<Pick<Wish, 'change' | 'removed' | 'past'>> & { readonly ofFile: readonly string[] }> {
  const isMeant = ([id]: readonly [string, unknown]): boolean =>
    tenant === undefined ? !control.isOfFile(id) : id === tenant
  const found = await control.at(version, tenant)
  if (found === undefined) throw noSuch('version')
  const then = new Map([...found].filter(isMeant))
  const removed = await control.removedOf(then.keys())
  return {
    change: (now) => differenceTo(then, new Map([...now].filter(isMeant)), removed),
    removed,
    past: then,
    ofFile: tenant === undefined ? [...found.keys()].filter(control.isOfFile) : []
  }
}
