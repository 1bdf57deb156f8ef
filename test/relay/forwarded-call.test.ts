// A call of 2026-07-28 on its way to another process.

import t from 'tap'
import { personKeyOf } from '../../src/auth/principal.ts'
import type { ModernCall } from '../../src/relay/call/call.ts'
import { forwardToNode } from '../../src/relay/call/forwarded-call.ts'
import { endpointName, tenantId, upstreamName } from '../../src/protocol/messages.ts'

t.test('it counts for its person, whatever their client and the endpoint', async (t) => {
  const counted: unknown[] = []
  const bus = {
    async request(_to: string, _kind: string, whose: unknown) {
      counted.push(whose)
      return {}
    }
  }
  const person = { tenant: tenantId('acme'), issuer: 'https://idp.example', subject: 'ada' }
  const call = (clientId: string, endpoint: string) =>
    ({
      tenant: { id: person.tenant },
      endpoint: { name: endpointName(endpoint) },
      request: { method: 'tools/call' },
      principal: { kind: 'token', ...person, clientId },
      client: { capabilities: {}, notify() {} },
      signal: new AbortController().signal
    }) as unknown as ModernCall
  await forwardToNode(bus, call('app', 'default'), upstreamName('tools'), 'two')
  await forwardToNode(bus, call('editor', 'other'), upstreamName('tools'), 'two')
  const whose = { tenant: 'acme', caller: personKeyOf(person) }
  t.same(counted, [whose, whose])
})
