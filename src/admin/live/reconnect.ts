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
      'Reconnects an upstream at every gateway process, and restarts its child processes, each after the calls that ' +
      'run on it. At servers over HTTP a new session is begun, and the earlier one is ended after its calls; a ' +
      'session at a server without a connection is kept. An upstream that is away is tried at once. Answers with ' +
      'its state after that.',
    body: closedObject({
      atOnce: defaulted(
        Type.Boolean({ default: false, description: 'Ends the calls that run. Whether they took effect is unknown.' })
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
