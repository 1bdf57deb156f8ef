// A rolling restart: each replica is replaced, one after the other, while clients of both eras call.

import t from 'tap'
import { canaries } from './held-calls.ts'
import { startReplicas } from './rig.ts'
import { rollingLimits, rollUnderLoad } from './rolling.ts'

const web = await canaries(t)
const rig = await startReplicas(t, { ...web.behind, limits: rollingLimits })

t.test('three replicas replaced under load: no request fails, and each call is executed once', async (t) => {
  const starts = rig.nodes.map(() => () => rig.start())
  const { failed, calls } = await rollUnderLoad(t, rig, web, starts)
  t.same(failed, [])
  t.ok(calls > 60, `${calls} calls`)
})
