// Attack: sessions of clients whose names have megabytes. What is kept of a name is short; a part that still points into
// the whole keeps all of it, as long as the session.

import t from 'tap'
import { initializeBody } from '../kit/acme-gateway.ts'
import { jsonHeaders, send } from '../kit/client.ts'
import { attacked, keys } from './kit.ts'

const sessions = 40
const nameBytes = 3_900_000

t.test('forty sessions whose clients have long names take little memory', async (t) => {
  // Less than all names take together.
  const gateway = await attacked(t, { heapMiB: 110 })
  const neighbour = await gateway.neighbour()
  const { jsonrpc, id, method, params } = JSON.parse(initializeBody()) as Record<string, object>
  const clientInfo = { name: 'n'.repeat(nameBytes), version: '1' }
  const body = JSON.stringify({ jsonrpc, id, method, params: { ...params, clientInfo } })
  const headers = { ...jsonHeaders, authorization: `Bearer ${keys.attacker}` }
  const statuses = new Set<number>()
  for (let n = 0; n < sessions; n++) statuses.add((await send(gateway.url, { headers, body })).status)
  t.same([...statuses], [200])
  t.same((await neighbour.stop()).failures, [])
})
