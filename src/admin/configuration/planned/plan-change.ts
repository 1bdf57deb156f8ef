// The change that a plan is about: wanted configurations of tenants, or a rollback to an earlier version.

import type { Static } from 'typebox'
import { closedObject } from '../../../config/schema/parts.ts'
import { Type } from '../../../config/schema/type.ts'
import type { ChangeRequest } from '../../../control/judge.ts'
import { AdminProblem } from '../../problem.ts'
import type { AdminRequest, AdminServices } from '../../route.ts'
import { rollbackChange } from './rollback.ts'
import { behindFile, wantedChange, wantedTenants } from '../versions.ts'

export const PlanBody = closedObject({
  tenants: Type.Optional(wantedTenants.tenants),
  ...behindFile,
  rollback: Type.Optional(
    Type.Integer({
      minimum: 1,
      description: 'The version to plan a rollback to, in place of `tenants` (platform-admins only).'
    })
  ),
  tenant: Type.Optional(
    Type.String({ description: 'With `rollback`: the tenant to roll back. Not given: all that this API manages.' })
  )
})

interface PlanRequest extends AdminRequest {
  readonly body: Static<typeof PlanBody>
}

/**
 * Reads the body of a plan.
 * @throws AdminProblem invalid_request; not_found for a tenant that the key is not for; forbidden for a rollback by
 * another role than platform-admin
 */
export async function changeOfPlan(
  request: PlanRequest,
  { control }: AdminServices
): Promise<Pick<ChangeRequest, 'change' | 'removed' | 'past'>> {
  const { tenants, rollback, tenant } = request.body
  if ((tenants === undefined) === (rollback === undefined))
    throw new AdminProblem('invalid_request', 'A plan is of "tenants" or of "rollback".', 'Send one of them.')
  if (rollback === undefined) {
    const wanted = wantedChange(request, tenants)
    return { change: () => wanted }
  }
  const { role } = request.administrator
  if (role !== 'platform-admin')
    throw new AdminProblem('forbidden', `The role ${role} may roll nothing back.`, 'Use a key of a platform-admin.')
  const { ofFile: _ofFile, ...change } = await rollbackChange(control, {
    version: rollback,
    ...(tenant !== undefined && { tenant })
  })
  return change
}
