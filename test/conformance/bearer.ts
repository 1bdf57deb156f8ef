// Preloaded into the suite's process (`node --import`): adds the token that the suite has no way to send, and changes
// nothing else. The channels are undici's own, on which Node's fetch and the npm package both publish, and that of
// node:http, which the suite uses where names of headers have to stay as they are written. So Host, Origin, bodies and
// streams stay the suite's, which a forwarder between the two could not promise: the scenario dns-rebinding-protection
// sends a Host of its own.

import { subscribe } from 'node:diagnostics_channel'
import type { ClientRequest } from 'node:http'

interface Outgoing {
  readonly origin: string | URL
  addHeader(name: string, value: string): void
}

const { GATEHOUSE_SUITE_ORIGIN: origin, GATEHOUSE_SUITE_TOKEN: token } = process.env
if (origin === undefined || token === undefined)
  throw new Error('GATEHOUSE_SUITE_ORIGIN and GATEHOUSE_SUITE_TOKEN have to be set')

subscribe('undici:request:create', (message) => {
  const { request } = message as { request: Outgoing }
  if (new URL(request.origin).origin === origin) request.addHeader('authorization', `Bearer ${token}`)
})

subscribe('http.client.request.created', (message) => {
  const { request } = message as { request: ClientRequest }
  if (`${request.protocol}//${String(request.getHeader('host'))}` === origin)
    request.setHeader('authorization', `Bearer ${token}`)
})
