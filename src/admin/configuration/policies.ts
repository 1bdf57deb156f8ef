// Who may use what at a tenant, as it is in force. Policies of endpoints are parts of these.

import type { Static } from 'typebox'
import { PolicySchema, RuleSchema } from '../../config/schema/policy.ts'
import { closedObject } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import { treeOf } from '../../config/shape.ts'
import { tenantId } from '../../protocol/messages.ts'
import type { Administrator } from '../access.ts'
import { noSuch } from '../problem.ts'
import { AdminReply, defineRoute, type AdminServices } from '../route.ts'
import {
  configurationSchema,
  documentsKnown,
  etagHeader,
  managedBySchema,
  managedOf,
  mayRead,
  versionSchema
} from './managed.ts'

/** A rule of a policy, or what a kill switch is among them. */
export const RuleInForce = closedObject({
  ...RuleSchema.properties,
  name: Type.String({
    description: 'Name of the rule in `explain` and in the log; `kill switch` for the rule of a stopped tool.'
  })
})

export const PolicyDetails = closedObject({
  ...PolicySchema.properties,
  rules: Type.Array(RuleInForce, { description: 'The rules. Their order has no meaning.' }),
  managedBy: managedBySchema,
  version: versionSchema,
  configuration: configurationSchema
})

/** @throws AdminProblem not_found */
export function policyAnswer(
  { tenant: id = '' }: Readonly<Record<string, string>>,
  { role }: Administrator,
  { snapshot, control }: Pick<AdminServices, 'snapshot' | 'control'>,
  status = 200
): AdminReply {
  const policy = snapshot().tenants.get(tenantId(id))?.policy
  if (policy === undefined) throw noSuch('policy')
  const document = documentsKnown(control).get(id)
  const body: Static<typeof PolicyDetails> = {
    ...(policy as Static<typeof PolicySchema>),
    ...managedOf(document),
    configuration: document && mayRead(role) ? treeOf(document.tree['policy']) : null
  }
  return new AdminReply(body, etagHeader(document), status)
}

export const policyRoutes = [
  defineRoute(
    {
      method: 'GET',
      path: '/v1/tenants/{tenant}/policy',
      roles: ['platform-admin', 'tenant-admin', 'auditor'],
      summary: 'Returns the policy in force of a tenant; kill switches of tools are among its rules.',
      response: PolicyDetails
    },
    ({ administrator, params }, services) => policyAnswer(params, administrator, services)
  )
] as const
