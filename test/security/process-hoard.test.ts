// Attack: one caller opens sessions and conversations, each a process of a stdio server, until no other caller of the
// tenant gets one.

import t from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import { scriptedStdio } from '../kit/server-request.ts'
import { legacyClient } from '../kit/client.ts'
import { gateway } from '../kit/gateway.ts'
import { modernRequest } from '../kit/modern-client.ts'

t.test(
  "sessions and conversations of one caller together get at most three quarters of a tenant's processes",
  async (t) => {
    const acme = await gateway(t, {
      upstreams: { up: { ...scriptedStdio, era: 'legacy' } },
      endpoints: { default: { upstreams: ['up'], prefix: '' }, again: { upstreams: ['up'], prefix: '' } },
      auth: {
        keys: [
          { name: 'ada', key: keyOf.ada },
          { name: 'bob', key: keyOf.bob }
        ]
      },
      limits: { processesPerTenant: 4 }
    })
    const call = async (token: string, conversation: string, endpoint = 'default'): Promise<unknown> =>
      (
        await modernRequest(
          acme.url(endpoint),
          'tools/call',
          { name: 'pid', arguments: {} },
          { token, meta: { 'io.gatehouse/conversation': conversation } }
        )
      ).json
    const fine = { result: { content: [{ type: 'text' }] } }
    const refused = {
      error: {
        data: { reason: 'too_many', limit: 'processesPerTenant' },
        message: /one caller may have no more than three quarters/
      }
    }
    const ada = await legacyClient(acme.url(), keyOf.ada)
    t.match((await ada.request('tools/call', { name: 'pid', arguments: {} })).json, fine)
    t.match(await call(keyOf.ada, 'one'), fine)
    t.match(await call(keyOf.ada, 'one', 'again'), fine)
    t.match(await call(keyOf.ada, 'two'), refused)
    t.match(
      (await (await legacyClient(acme.url('again'), keyOf.ada)).request('tools/call', { name: 'pid', arguments: {} }))
        .json,
      refused
    )
    t.match(await call(keyOf.bob, 'mine'), fine, 'there is one left for others')
    t.match(await call(keyOf.ada, 'one'), fine, 'and what ada has goes on')
  }
)
