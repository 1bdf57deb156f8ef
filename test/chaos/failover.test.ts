// The short form of `npm run chaos -- --sentinel`: the primary of Redis dies, and its replica takes over, under load.

import t from 'tap'
import { chaos } from './chaos.ts'

t.test('Redis is failed over and a replica of the gateway is killed, and no promise is broken', async (t) => {
  const only = ['fail over Redis', 'kill'] as const
  const report = await chaos(t, { seed: 2, faults: only.length, only, clients: 4, sentinel: true })
  t.same(report.violations, [], JSON.stringify(report))
  t.equal(report.outcomes['session lost'], 0)
  t.ok(report.outcomes.answered > 20, `${report.outcomes.answered} calls were answered`)
  t.same(report.faults, { 'fail over Redis': 1, kill: 1 })
})
