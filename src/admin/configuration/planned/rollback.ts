// The changes that a rollback to an earlier version makes. API keys stay as they are: a revoked key does not come back,
// and a key that was made since is not lost.

import type { Static } from 'typebox'
import { closedObject } from '../../../config/schema/parts.ts'
import { Type } from '../../../config/schema/type.ts'
import { isTree, listOf, treeOf, type Tree } from '../../../config/shape.ts'
import type { Documents } from '../../../control/compiled-documents.ts'
import { ControlError } from '../../../control/control-error.ts'
import type { Control } from '../../../control/control.ts'
import type { ChangeRequest } from '../../../control/judge.ts'
import type { RemovedTenant } from '../../../control/removed-tenants.ts'
import { noSuch } from '../../problem.ts'

export const Rollback = closedObject({
  version: Type.Integer({ minimum: 1, description: 'The version to restore, one of `GET /v1/versions`.' }),
  tenant: Type.Optional(Type.String({ description: 'The tenant to roll back. Not given: all that this API manages.' }))
})

/** Returns how long a key is good, and which one it replaces: to shorten that is to revoke something, too. */
const trustIn = ({ expires, previousSha256, previousUntil }: Tree): Tree =>
  Object.fromEntries(
    Object.entries({ expires, previousSha256, previousUntil }).filter(([, value]) => value !== undefined)
  )

const withoutTrust = ({ expires: _1, previousSha256: _2, previousUntil: _3, ...rest }: Tree): Tree => rest

/**
 * The document of then with the API keys that the other one has, and no more: a key that it has not was revoked, and
 * one that was made since stays. What both have is as it was then, but good for no longer than now.
 */
function withKeysOf(then: Tree, { auth: other }: Tree): Tree {
  const { auth } = then
  // There was no place for keys: everybody was let in.
  if (!isTree(auth)) return then
  const keysIn = (tree: unknown): readonly Tree[] => listOf(treeOf(tree)['keys']).map(treeOf)
  const valueOf = ({ sha256, key }: Tree): string => JSON.stringify([sha256, key])
  const [before, now] = [keysIn(auth), keysIn(other)]
  const names = new Set(now.map(({ name }) => name))
  const keys = now.map((key) => {
    const old = before.find((each) => valueOf(each) === valueOf(key))
    // Another key may have the name of then.
    if (old === undefined || (old['name'] !== key['name'] && names.has(old['name']))) return key
    return { ...withoutTrust(old), ...trustIn(key) }
  })
  return keys.length === 0 && auth['keys'] === undefined ? then : { ...then, auth: { ...auth, keys } }
}

/**
 * What makes the documents of now those of then, but with the API keys of now.
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
 * @returns the change, and the tenants of the version that the configuration file has now, which are left out
 * @throws AdminProblem not_found, ControlError managed_by_file, GatewayError unavailable
 */
export async function rollbackChange(
  control: Pick<Control, 'at' | 'checkOwner' | 'isOfFile' | 'lastChangeOf' | 'removedOf'>,
  { version, tenant }: Static<typeof Rollback>
): Promise<Required<Pick<ChangeRequest, 'change' | 'removed' | 'past'>> & { readonly ofFile: readonly string[] }> {
  const isMeant = ([id]: readonly [string, unknown]): boolean =>
    tenant === undefined ? !control.isOfFile(id) : id === tenant
  // A misspelt name would roll nothing back, and be answered as if all were so already.
  if (tenant !== undefined && control.lastChangeOf(tenant) === 0) {
    control.checkOwner(tenant)
    throw noSuch('tenant')
  }
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
