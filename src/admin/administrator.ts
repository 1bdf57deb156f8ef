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
    summary: 'Returns the administrator of the request: its name, role and tenants.',
    response: closedObject({
      name: Type.String({ description: 'Name of the admin key, or subject and issuer of the token.' }),
      role: Type.Enum([...adminRoles]),
      tenants: Type.Union([Type.Array(Type.String()), Type.Null()], {
        description: 'Ids of the tenants that it is for. null: all tenants.'
      }),
      hasLongSeries: Type.Boolean({
        description: 'Whether series of more than the last hour can be read (`…/series/long`).'
      }),
      traceUrl: Type.Union([Type.String(), Type.Null()], {
        description: 'URL of a trace, with `{traceId}` as placeholder. null: the configuration has none.'
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
