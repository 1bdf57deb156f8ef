// Attack: one caller sends large arguments to a tool that does not answer, on several sessions at once. The endpoint
// adds an argument, so that they cannot be let go of when they are sent (test/abuse/long-arguments.test.ts).

import t from 'tap'
import { legacyClient } from '../kit/client.ts'
import { until } from '../kit/until.ts'
import { attacked, keys, stdioServer } from './kit.ts'

const mebibyte = 1024 * 1024
const text = 'x'.repeat(4_000_000)
// Nothing but brackets: 21 times their length in memory.
const dense = Array.from({ length: 120_000 }, () => [])

for (const [name, load] of Object.entries({ text, dense }))
  t.test(`large bodies in flight are refused before they fill the memory: ${name}`, async (t) => {
    const silent = { tools: [{ name: 'hang', inputSchema: { type: 'object' } }], silent: ['tools/call'] }
    const gateway = await attacked(t, {
      upstreams: { slow: stdioServer(silent) },
      tenant: {
        endpoints: { default: { upstreams: ['slow', 'calm'], tools: { 'slow/hang': { defaults: { more: 1 } } } } }
      },
      limits: { memoryBytes: 600 * mebibyte },
      heapMiB: 500
    })
    const neighbour = await gateway.neighbour()
    const clients = await Promise.all([1, 2, 3, 4].map(() => legacyClient(gateway.url, keys.attacker)))
    const stop = new AbortController()
    const refusals: number[] = []
    const calls = clients.flatMap((client) =>
      Array.from({ length: 25 }, async () => {
        const params = { name: 'slow__hang', arguments: { load } }
        while (!stop.signal.aborted) {
          const answer = await client.request('tools/call', params, { signal: stop.signal }).catch(() => undefined)
          if (answer?.json?.error?.data?.reason !== 'too_many') continue // A busy machine was too slow to read it.
          refusals.push(answer.status)
          return
        }
      })
    )
    await until('most are refused', () => refusals.length > 50)
    const colleague = await legacyClient(gateway.url, keys.colleague)
    const call = { name: 'calm__echo', arguments: { text: 'x'.repeat(1_000_000) } }
    t.match((await colleague.request('tools/call', call)).json, { result: {} }, 'a colleague is served meanwhile')
    t.match((await clients[0]?.request('ping'))?.json, { result: {} }, 'and so are small requests of the caller')
    stop.abort()
    await Promise.all(calls)
    t.same([...new Set(refusals)], [429])
    const { failures } = await neighbour.stop()
    t.same(failures, [])
    t.ok(gateway.peakMemory() < 600 * mebibyte, `the resident set grew to ${gateway.peakMemory()} bytes`)
  })
