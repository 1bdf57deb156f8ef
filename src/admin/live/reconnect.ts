// Reconnects an upstream at every process: for a list that changed without a notification, or a process that hangs.

import { closedObject, defaulted } from '../../config/schema/parts.ts'
import { Type } from '../../config/schema/type.ts'
import { upstreamName } from '../../protocol/messages.ts'
import { changeHash, recordChange } from '../changes.ts'
import { noSuch } from '../problem.ts'
import { administrators, defineRoute } from '../route.ts'
import { UpstreamEntry, upstreamAnswer } from '../upstreams.ts'

/** The time that the answer waits for the first new connection, in milliseconds. */
const reconnectWaitMs = 5_000

export const reconnectRoute = defineRoute(
  {
    method: 'POST',
    path: '/v1/tenants/{tenant}/upstreams/{upstream}/reconnect',
    roles: administrators,
    summary:
      'Opens the connections to an upstream anew, at every process, and starts its processes anew: each after the ' +
      'calls that run on it. At servers over HTTP a new session is begun, and the one before is ended once its calls ' +
      'have; a session at a server in which no process has a connection is gone on with. One that is away is tried ' +
      'at once. Answers how it does then.',
    body: closedObject({
      atOnce: defaulted(
        Type.Boolean({ default: false, description: 'Ends the calls that run: whether they took effect is unknown.' })
      )
    }),
    response: UpstreamEntry
  },
  async ({ tenant, params, body, administrator, address }, services) => {
    const definition = tenant.upstreams.get(upstreamName(params['upstream'] ?? ''))
    if (definition === undefined) throw noSuch('upstream')
    const { hash, name } = definition
    services.renew({ hash, atOnce: body.atOnce })
    await recordChange(services, {
      actor: administrator.name,
      role: administrator.role,
      action: 'upstream.reconnect',
      tenant: tenant.id,
      target: name,
      before: undefined,
      after: changeHash({ atOnce: body.atOnce }),
      address
    })
    await services.listings.revalidate([definition], reconnectWaitMs, 'asked')
    await services.listings.awaitListings([definition], reconnectWaitMs)
    return upstreamAnswer(params, administrator, services)
  }
)
