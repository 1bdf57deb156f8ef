// Describes the requesting administrator, so that a page or a program can offer only what the key may do.

import { closedObject } from '../config/schema/parts.ts'
import { Type } from '../config/schema/type.ts'
import { adminRoles } from '../config/schema/admin.ts'
import { defineRoute, everyRole } from './route.ts'

export const administratorRoute = defineRoute(
  {
    method: 'GET',
    path: '/v1/administrator',
    roles: everyRole,
    summary: 'Who asks: the key, or the token, as it is configured now.',
    response: closedObject({
      name: Type.String({ description: 'Of the key; of a token its subject and issuer.' }),
      role: Type.Enum([...adminRoles]),
      tenants: Type.Union([Type.Array(Type.String()), Type.Null()], { description: 'null: all.' }),
      hasLongSeries: Type.Boolean({ description: 'Whether there is more than the last hour (`…/series/long`).' }),
      traceUrl: Type.Union([Type.String(), Type.Null()], {
        description: 'Where a trace is looked at, with `{traceId}` in it; null where the configuration does not say.'
      })
    })
  },
  ({ administrator: { name, role, tenants } }, { snapshot }) => {
    const { prometheus, traceUrl = null } = snapshot().admin ?? {}
    return {
      name,
      role,
      tenants: tenants === undefined ? null : [...tenants],
      hasLongSeries: prometheus !== undefined,
      traceUrl
    }
  }
)
