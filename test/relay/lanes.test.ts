// Lanes by themselves: what they remember of a definition, and for how long.

import t from 'tap'
import type { UpstreamDefinition } from '../../src/config/snapshot.ts'
import { createLanes } from '../../src/relay/modern/lanes.ts'
import type { Lane } from '../../src/relay/modern/lanes.ts'
import { stillClock } from './kit.ts'
import { atRest } from './parking-kit.ts'

const one = { name: 'one', type: 'http', hash: 'of one' } as unknown as UpstreamDefinition

async function isThere (lane: Promise<Lane>): Promise<boolean> {
  return await Promise.race([lane.then(() => true), atRest().then(() => false)])
}

t.test('what connections turned out to be is remembered until a reload takes their definition away', async (t) => {
  const lanes = createLanes(stillClock())
  const enter = (): Promise<Lane> => lanes.enter(one, 'ada', 'scope')
  const first = await enter()
  const second = enter()
  t.notOk(await isThere(second), 'until it is known')
  first.opened(true)
  t.ok(await isThere(second))
  t.ok(await isThere(Promise.race(Array.from({ length: 20 }, enter))), 'then they run side by side')
  lanes.retain(new Set(['of one']))
  t.ok((await Promise.all([enter(), enter()])).every(({ number }) => number === 0))
  lanes.retain(new Set())
  const again = await enter()
  const next = enter()
  t.notOk(await isThere(next), 'found out anew')
  again.opened(true)
  t.ok(await isThere(next))
})

t.test('calls that are in their lanes meanwhile stay there, and newer ones do not wait for them', async (t) => {
  const lanes = createLanes(stillClock())
  const enter = (): Promise<Lane> => lanes.enter(one, 'ada', 'scope')
  const parked = await enter()
  parked.opened(false)
  lanes.retain(new Set())
  const later = await enter()
  t.equal(later.number, 1)
  const last = enter()
  t.notOk(await isThere(last))
  later.opened(false)
  t.equal((await last).number, 2)
  parked.leave()
  t.equal((await enter()).number, 0)
})
