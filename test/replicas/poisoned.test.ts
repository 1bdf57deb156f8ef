// Values in Redis that no gateway has written: of a wrong type, or of a wrong form.

import t from 'tap'
import { Redis } from 'ioredis'
import { until } from '../kit/until.ts'
import { canaries, mirror, mirrored } from './held-calls.ts'
import { sessionAt, startReplicas } from './rig.ts'

const web = await canaries(t)
const rig = await startReplicas(t, web.behind, [{}, {}])
const store = new Redis(rig.store.url)
t.teardown(() => store.disconnect())

const keys = async (pattern: string): Promise<string[]> => (await store.keys(`gatehouse:${pattern}`)).sort()
let calls = 0

const wrongTypes: Record<string, (key: string) => Promise<unknown>> = {
  'a list': (key) => store.rpush(key, 'x'),
  'a hash': (key) => store.hset(key, 'x', 'y'),
  'no JSON': (key) => store.set(key, '{'),
  'JSON of another form': (key) => store.set(key, '{"owner":{"tenant":7},"home":[]}')
}

for (const [what, poison] of Object.entries(wrongTypes)) {
  t.test(`a session whose record is ${what} is unknown at every replica, and no other is`, async (t) => {
    const whole = await sessionAt(rig.at(0))
    const before = await keys('session:*')
    const client = await sessionAt(rig.at(0))
    const key = (await keys('session:*')).find((each) => !before.includes(each)) ?? ''
    const canary = `call ${++calls}`
    t.match(await mirror(rig.at(1), client, canary), mirrored(canary))
    await store.del(key)
    await poison(key)
    for (const node of [0, 1])
      await until('copies are out of date', async () => (await mirror(rig.at(node), client, 'lost')).status === 404)
    for (const node of [0, 1]) {
      const other = `call ${++calls}`
      t.match(await mirror(rig.at(node), whole, other), mirrored(other))
    }
    const [next, fresh] = [`call ${++calls}`, await sessionAt(rig.at(1))]
    t.match(await mirror(rig.at(0), fresh, next), mirrored(next), 'its client opens another one')
  })
}

t.test('counters and slots of a wrong type: sessions can be opened and used at every replica', async (t) => {
  const client = await sessionAt(rig.at(0))
  const all = (await keys('*')).filter((key) => !/^gatehouse:(?:session:|seal-key$)/.test(key))
  t.ok(all.some((key) => key.startsWith('gatehouse:principal-seat:')))
  for (const key of all) {
    await store.del(key)
    await store.hset(key, 'x', 'y')
  }
  const usable = [await sessionAt(rig.at(1)), await sessionAt(rig.at(0))]
  for (const [n, each] of usable.entries())
    for (const node of [0, 1]) {
      const canary = `poisoned ${n} at ${node}`
      t.match(await mirror(rig.at(node), each, canary), mirrored(canary))
    }
  t.ok([200, 404].includes((await mirror(rig.at(1), client, 'before')).status), 'it goes on, or its client knows')
})
