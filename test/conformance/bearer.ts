// Preloaded into the suite's process (`node --import`): adds the token that the suite has no way to send, and changes nothing else.
// The channel is undici's own; Node's fetch and the npm package both publish on it. So Host, Origin, bodies and streams stay the suite's,
// which a forwarder between the two could not promise: the scenario dns-rebinding-protection sends a Host of its own.

import { subscribe } from 'node:diagnostics_channel'

interface Outgoing {
  readonly origin: string | URL
  addHeader (name: string, value: string): void
}

const { GATEHOUSE_SUITE_ORIGIN: origin, GATEHOUSE_SUITE_TOKEN: token } = process.env
if (origin === undefined || token === undefined) throw new Error('GATEHOUSE_SUITE_ORIGIN and GATEHOUSE_SUITE_TOKEN have to be set')

subscribe('undici:request:create', (message) => {
  const { request } = message as { request: Outgoing }
  if (new URL(request.origin).origin === origin) request.addHeader('authorization', `Bearer ${token}`)
})
