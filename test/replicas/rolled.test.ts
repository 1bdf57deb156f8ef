// A rolling restart: each replica is replaced, one after the other, while clients of both eras call.

import t from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import { send, type Answer } from '../kit/client.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { until } from '../kit/until.ts'
import { canaries, mirror } from './held-calls.ts'
import { sessionAt, startReplicas } from './rig.ts'

const web = await canaries(t)
// As long as the load balancer may take to hear that a replica is not ready any more.
const rig = await startReplicas(t, { ...web.behind, limits: { readyDelayMs: 4_000 } })

t.test('three replicas replaced under load: no request fails, and each call is executed once', async (t) => {
  const failed: string[] = []
  let calls = 0
  const load = { over: false }
  async function repeat(what: string, call: (canary: string, more: object) => Promise<Answer>): Promise<void> {
    for (let n = 0; !load.over; n++) {
      const canary = `${what} ${n}`
      const answer = await call(canary, { delayMs: (n % 5) * 100, steps: n % 3 })
      // A process that is held up for longer than a command of Redis may take says so, and nothing was executed.
      if (/The store of the gateway cannot be reached/.test(answer.text) && !web.executed.has(canary)) continue
      const text = answer.json?.result?.content?.[0]?.text as unknown
      if (answer.status !== 200 || text !== canary || web.executed.get(canary) !== 1)
        failed.push(`${canary}: ${answer.status} ${answer.text}`)
      calls++
    }
  }
  const sessions = await Promise.all([0, 1, 2, 0].map((node) => sessionAt(rig.at(node))))
  const clients = [
    ...sessions.map((client, n) => repeat(`session ${n}`, (canary, more) => mirror(rig.url(), client, canary, more))),
    ...[0, 1].map((n) =>
      repeat(`modern ${n}`, (canary, more) =>
        modernRequest(
          rig.url(),
          'tools/call',
          { name: 'mirror', arguments: { canary, ...more } },
          { id: canary, token: keyOf.ada }
        )
      )
    )
  ]
  for (const node of rig.nodes) {
    const next = await rig.start()
    rig.targets.push(next.url)
    const before = calls
    await until('the new replica has its share of the load', () => calls > before + 12)
    node.signal('SIGTERM')
    await until('it says that it is not ready', async () => {
      const { status } = await send(`${node.url}/health/ready`, { method: 'GET' })
      return status === 503
    })
    rig.targets.splice(rig.targets.indexOf(node.url), 1)
    t.same(await node.ended, { code: 0, signal: null })
  }
  const before = calls
  await until('calls at the new replicas', () => calls > before + 20)
  load.over = true
  await Promise.all(clients)
  t.same(failed, [])
  t.ok(calls > 60, `${calls} calls`)
})
