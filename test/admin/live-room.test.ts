// What runs, and what is exported, where there is little room: it is said how much is left out, no tenant is always the
// one, and a slow reader gets all.

import t from 'tap'
import type { Readable } from 'node:stream'
import { exported } from '../../src/admin/answering/exported.ts'
import { tellRunningCalls, type RunningCalls } from '../../src/admin/live/running.ts'
import { createWatch } from '../../src/admin/live/watch.ts'
import { createLiveEvents } from '../../src/observe/live.ts'
import type { Bus } from '../../src/session/bus/bus.ts'
import { handClock } from '../kit/connector.ts'

type Listener = (said: never, from: string) => void

/** Two processes that hear each other at once. */
function twoBuses(): Array<Pick<Bus, 'tell' | 'hear' | 'node' | 'shared'>> {
  const listeners: Array<[string, string, Listener]> = []
  return ['one', 'two'].map((node) => ({
    node,
    shared: true,
    hear: (kind, listener) => void listeners.push([node, kind, listener]),
    async tell(to, kind, said) {
      for (const [at, wanted, listener] of listeners)
        if (wanted === kind && (to === 'all' || to === at)) listener(JSON.parse(JSON.stringify(said)) as never, node)
      return true
    }
  }))
}

t.test('of calls that run, what is left out is counted, and each tenant has its turn', (t) => {
  const clock = handClock()
  const [one, two] = twoBuses()
  if (one === undefined || two === undefined) return t.end()
  const live = createLiveEvents()
  const far = createWatch({ live: createLiveEvents(), bus: one, clock })
  const home = createWatch({ live, bus: two, clock })
  const shown = new Map<string, number[]>()
  let missed = 0
  far.listen({
    kind: 'running',
    tenants: undefined,
    take(tenant, text) {
      const { calls, leftOut } = JSON.parse(text) as { calls: unknown[]; leftOut: number }
      t.equal(calls.length + leftOut, 40)
      shown.set(tenant, [...(shown.get(tenant) ?? []), calls.length])
    },
    missed: (count) => void (missed += count)
  })
  const startedAt = clock.now()
  const running = ['acme', 'globex', 'initech', 'umbrella'].flatMap((id) =>
    Array.from({ length: 40 }, () => ({
      call: {
        tenant: { id },
        endpoint: { name: 'default' },
        principal: { kind: 'user', subject: 'x'.repeat(5_000) },
        request: { method: 'tools/call', params: {} },
        record: { clock, startedAt, steps: [] }
      }
    }))
  ) as unknown as RunningCalls
  const stop = tellRunningCalls({ live, running, node: 'two', clock, wall: clock })
  for (let n = 0; n < 40; n++) clock.advance(250)
  stop()
  far.close()
  home.close()
  t.equal(shown.size, 4)
  t.equal(missed, 0)
  for (const [tenant, counts] of shown) {
    t.ok(counts.includes(40), `${tenant} is shown`)
    t.ok(counts.includes(0), `${tenant} is counted`)
  }
  t.end()
})

t.test(
  'a reader that takes 64 KiB in less than a minute gets all, and one that takes nothing is given up on',
  async (t) => {
    const clock = handClock()
    const text = 'ü'.repeat(500_000)
    let freed = 0
    async function* lines() {
      yield text
    }
    const slow = exported(lines(), 'x', () => void freed++, clock).body as Readable
    const pieces: Buffer[] = []
    for await (const piece of slow) {
      pieces.push(piece as Buffer)
      clock.advance(40_000)
    }
    t.ok(Buffer.concat(pieces).toString() === text)
    t.ok(pieces.length > 10)
    t.equal(freed, 1)
    const none = exported(lines(), 'x', () => void freed++, clock).body as Readable
    await none[Symbol.asyncIterator]().next()
    clock.advance(60_000)
    await new Promise((resolve) => setImmediate(resolve))
    t.ok(none.destroyed)
    t.equal(freed, 2)
  }
)
