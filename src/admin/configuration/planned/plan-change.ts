// What a plan is of: tenants as they shall be, or an earlier version taken up again.

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
      description: 'In place of `tenants`, by a platform-admin: the version that `POST /v1/rollback` would take up.'
    })
  ),
  tenant: Type.Optional(Type.String({ description: 'Of `rollback`: of this tenant. Not given: all.' }))
})

interface PlanRequest extends AdminRequest {
  readonly body: Static<typeof PlanBody>
}

/** @throws AdminProblem */
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
