// Replicas replaced one after the other while clients of both eras call.

import type { Test } from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import { send, type Answer } from '../kit/client.ts'
import { modernRequest } from '../kit/modern-client.ts'
import type { Served } from '../kit/process.ts'
import { until } from '../kit/until.ts'
import { mirror, type Canaries } from './held-calls.ts'
import { sessionAt, type Rig } from './rig.ts'

/** As long as the load balancer may take to hear that a replica is not ready any more. */
export const rollingLimits = { readyDelayMs: 4_000 }

/**
 * Puts a new replica in the place of each, in turn, and asserts that each ends well.
 * @param starts as many rounds as there are
 * @returns what failed, a line each, and how many calls were made
 */
export async function rollUnderLoad(
  t: Test,
  rig: Rig,
  web: Canaries,
  starts: ReadonlyArray<() => Promise<Served>>
): Promise<{ readonly failed: readonly string[]; readonly calls: number }> {
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
      repeat(`modern ${n}`, (canary, more) => {
        const params = { name: 'mirror', arguments: { canary, ...more } }
        return modernRequest(rig.url(), 'tools/call', params, { id: canary, token: keyOf.ada })
      })
    )
  ]
  const nodes = [...rig.nodes]
  for (const start of starts) {
    const next = await start()
    nodes.push(next)
    rig.targets.push(next.url)
    const before = calls
    await until('the new replica has its share of the load', () => calls > before + 12)
    const old = nodes.shift() as Served
    old.signal('SIGTERM')
    await until('it says that it is not ready', async () => {
      const { status } = await send(`${old.url}/health/ready`, { method: 'GET' })
      return status === 503
    })
    rig.targets.splice(rig.targets.indexOf(old.url), 1)
    t.same(await old.ended, { code: 0, signal: null })
  }
  const before = calls
  await until('calls at the new replicas', () => calls > before + 20)
  load.over = true
  await Promise.all(clients)
  return { failed, calls }
}
