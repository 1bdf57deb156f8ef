// Conversations and sessions cost a caller nothing, and each is a process where the server is one: a caller who takes all there are to be had
// leaves some for everybody else of the tenant.

import t from 'tap'
import { keyOf } from '../kit/acme.ts'
import { scriptedStdio } from '../kit/asked.ts'
import { legacyClient } from '../kit/client.ts'
import { gateway } from '../kit/gateway.ts'
import { modernRequest } from '../kit/modern-client.ts'

t.test('sessions and invented conversations of one caller together take three quarters of the processes of a tenant', async (t) => {
  const house = await gateway(t, {
    upstreams: { up: { ...scriptedStdio, era: 'legacy' } },
    endpoints: { default: { upstreams: ['up'], prefix: '' }, again: { upstreams: ['up'], prefix: '' } },
    auth: { keys: [{ name: 'ada', key: keyOf.ada }, { name: 'bob', key: keyOf.bob }] },
    limits: { processesPerTenant: 4 }
  })
  const call = async (token: string, conversation: string, endpoint = 'default'): Promise<unknown> =>
    (await modernRequest(house.url(endpoint), 'tools/call', { name: 'pid', arguments: {} }, { token, meta: { 'io.gatehouse/conversation': conversation } })).json
  const fine = { result: { content: [{ type: 'text' }] } }
  const refused = { error: { data: { reason: 'too_many', limit: 'processesPerTenant' }, message: /one caller may have no more than three quarters/ } }
  const ada = await legacyClient(house.url(), keyOf.ada)
  t.match((await ada.request('tools/call', { name: 'pid', arguments: {} })).json, fine)
  t.match(await call(keyOf.ada, 'one'), fine)
  t.match(await call(keyOf.ada, 'one', 'again'), fine)
  t.match(await call(keyOf.ada, 'two'), refused)
  t.match((await (await legacyClient(house.url('again'), keyOf.ada)).request('tools/call', { name: 'pid', arguments: {} })).json, refused)
  t.match(await call(keyOf.bob, 'mine'), fine, 'there is one left for others')
  t.match(await call(keyOf.ada, 'one'), fine, 'and what ada has goes on')
})
