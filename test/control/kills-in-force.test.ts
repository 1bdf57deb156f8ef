// A kill switch is in force at every process within a second: each is told of it at once, and looks by itself every
// second. Both are counted here, not timed: of a process that may look once, and no more, all has to be stopped.

import t from 'tap'
import { pollMs } from '../../src/control/control.ts'
import { controlChannel, controlHeadKey } from '../../src/store/keys.ts'
import { openStore } from '../../src/store/open-store.ts'
import type { Store } from '../../src/store/port.ts'
import { steadyClock } from '../../src/time/clock.ts'
import { adminGateway } from '../kit/admin.ts'
import { legacyClient } from '../kit/client.ts'
import { key } from '../kit/gateway.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { redis } from '../kit/redis.ts'
import { until } from '../kit/until.ts'
import { isCall, startUpstream } from '../kit/upstream.ts'
import { quiet } from '../store/kit.ts'

/** A store at which the journal of the configuration is looked at only as often as a test allows. */
function countedLooks(store: Store, isTold: boolean) {
  const waiting: Array<() => void> = []
  const looks = { begun: 0, isHeld: false, allow: () => waiting.shift()?.(), waiting: () => waiting.length }
  const held: Store = {
    ...store,
    async get(place) {
      if (place === controlHeadKey) {
        looks.begun++
        if (looks.isHeld) await new Promise<void>((resolve) => waiting.push(resolve))
      }
      return await store.get(place)
    },
    subscribe: async (channel, listener) =>
      await store.subscribe(channel, (message) => {
        if (channel !== controlChannel) return listener(message)
        if (!isTold) return
        listener(message)
        // Told, it may look once: whether it had begun to by itself already does not matter.
        if (looks.isHeld) told.resolve()
      })
  }
  const told = Promise.withResolvers<void>()
  return { looks, held, told: told.promise }
}

for (const [how, isTold] of [
  ['that is told of it', true],
  ['that nobody tells it', false]
] as const)
  t.test(`a kill switch is in force after one look of a process ${how}, calls in flight included`, async (t) => {
    t.ok(pollMs <= 1_000, 'it looks every second')
    const [server, upstream] = await Promise.all([redis(t), startUpstream()])
    t.teardown(() => upstream.close())
    const options = { upstreams: { up: { type: 'http', url: upstream.url } }, store: server.url }
    const { looks, held, told } = countedLooks(
      await openStore({ kind: 'redis', url: server.url }, steadyClock, quiet),
      isTold
    )
    const [other, one] = await Promise.all([
      adminGateway(t, options),
      adminGateway(t, { ...options, overrides: { store: held } })
    ])
    const client = await legacyClient(one.url(), key)
    upstream.override(isCall('echo'), () => {}, 2)
    const call = (name: string) => client.request('tools/call', { name, arguments: {} })
    const modern = (name: string) =>
      modernRequest(one.url(), 'tools/call', { name, arguments: {} }, { token: key, id: 'x' })
    const running = [call('up__echo'), modern('up__echo')]
    await until('both calls have reached the upstream', () => upstream.seen.filter(isCall('echo')).length === 2)

    const before = looks.begun
    await until('it looks by itself', () => looks.begun > before)
    looks.isHeld = true
    t.equal((await other.call('PUT', '/v1/tenants/acme/kills/tools/up/echo')).status, 201)
    if (isTold) await told
    await until('it looks', () => looks.waiting() > 0)
    t.match((await call('up__pid')).json, { result: {} }, 'the control: it serves meanwhile')
    looks.allow()
    for (const answer of await Promise.all(running))
      t.match(answer.json, { error: { data: { reason: 'call_stopped', outcome: 'unknown' } } })
    for (const { json } of [await call('up__echo'), await modern('up__echo')])
      t.match(json, { error: { message: 'Unknown tool: up__echo' } })
    t.match((await call('up__pid')).json, { result: {} }, 'the control: another tool is called')
    looks.isHeld = false
    while (looks.waiting() > 0) looks.allow()
  })
