// Attack: a caller cancels what does not run, over and over, so that every replica works for each of its messages.

import t from 'tap'
import { createRedisStore } from '../../src/store/redis.ts'
import { everyNode, nodeChannel } from '../../src/store/keys.ts'
import { keyOf } from '../kit/acme-gateway.ts'
import { legacyClient, type LegacyClient } from '../kit/client.ts'
import { postEvents } from '../kit/events.ts'
import { post } from '../kit/server-request.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'
import { quiet } from '../store/kit.ts'
import { sessionAt, startReplicas } from './rig.ts'

const upstream = await startUpstream()
t.teardown(() => upstream.close())
const rig = await startReplicas(t, {
  upstreams: {
    own: { type: 'http', url: upstream.url },
    shared: { type: 'http', url: upstream.url, isolation: 'shared' }
  },
  endpoints: { default: { upstreams: ['own'], prefix: '' }, shared: { upstreams: ['shared'], prefix: '' } }
})

const cancel = (requestId: string) => ({ method: 'notifications/cancelled', params: { requestId } })

/** A call that is under way at replica 0. */
async function begun(path: string, client: LegacyClient, id: string) {
  const params = { name: 'slow', _meta: { progressToken: id } }
  const call = await postEvents(rig.at(0, path), client, id, 'tools/call', params)
  await call.next('progress', ({ method }) => method === 'notifications/progress')
  return call
}

t.test('a flood of cancellations is told to all replicas in part; what runs is still cancelled', async (t) => {
  const store = await createRedisStore({ url: rig.store.url, clock: Date, log: quiet })
  t.teardown(() => store.close())
  let told = 0
  await store.subscribe(nodeChannel(everyNode), () => void told++)
  const [path, shared] = ['t/acme/mcp', 't/acme/shared/mcp']
  const ada = await sessionAt(rig.at(0, path))
  const call = await begun(path, ada, 'her call')

  const from = performance.now()
  const sent = 400
  for (let batch = 0; batch < 20; batch++)
    await Promise.all(
      Array.from({ length: sent / 20 }, async (_, n) =>
        t.equal((await post(rig.at(1, path), ada, cancel(`none ${batch} ${n}`))).status, 202)
      )
    )
  // One of somebody else, who is heard of by all: the messages of the flood are there by then.
  const bob = await legacyClient(rig.at(0, shared), keyOf.bob)
  const his = await begun(shared, bob, 'his call')
  await post(rig.at(1, shared), bob, cancel('his call'))
  await his.ended
  t.notOk(
    his.messages().some(({ id }) => id === 'his call'),
    'a call that may run anywhere is found'
  )
  const most = 100 + (10 * (performance.now() - from)) / 1000 + 2
  t.ok(told > 0 && told <= most, `${told} of ${sent} messages reached every replica; at most ${most}`)

  await post(rig.at(1, path), ada, cancel('her call'))
  await call.ended
  t.notOk(
    call.messages().some(({ id }) => id === 'her call'),
    'one that runs at the home of its session is found, too'
  )
  await until('its server was told', () =>
    upstream.server.received.some(({ method }) => method === 'notifications/cancelled')
  )
})
