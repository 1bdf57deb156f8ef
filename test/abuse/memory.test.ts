// Attack: all callers and upstreams of one tenant fill the memory at once, in every way that there is, and begin again
// when they are refused. In 600 MiB and for some seconds; `npm run test:long` does it in 2 GiB and for a minute
// (ABUSE_MEMORY_MIB, ABUSE_SECONDS).

import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { legacyClient, send } from '../kit/client.ts'
import { modernMessage } from '../kit/modern-client.ts'
import { until } from '../kit/until.ts'
import { attacked, keys } from './kit.ts'
import { type Attack, memoryAttacks, memoryUpstreams } from './memory-attacks.ts'

const mebibyte = 1024 * 1024
const memoryBytes = Number(process.env['ABUSE_MEMORY_MIB'] ?? 600) * mebibyte
const attackMs = Number(process.env['ABUSE_SECONDS'] ?? 5) * 1_000
/** Attackers of each kind. */
const crowd = Math.round(memoryBytes / mebibyte / 60)

const callers = [keys.attacker, keys.colleague]

t.test('whatever one tenant sends, its neighbour is served and the memory stays below its limit', async (t) => {
  const stop = new AbortController()
  const { signal } = stop
  t.teardown(() => stop.abort())
  const { upstreams, broadcast } = await memoryUpstreams(t)
  void broadcast(signal)
  const gateway = await attacked(t, {
    upstreams,
    limits: { memoryBytes }
  })
  const neighbour = await gateway.neighbour()
  const attack: Attack = { url: gateway.url, signal, ended: new Map(), sessions: [] }
  const attackers = Object.values(memoryAttacks).flatMap((run) =>
    Array.from({ length: crowd }, async (_, at) => {
      for (let round = at; !signal.aborted; round++) {
        const key = callers[round % callers.length] ?? keys.attacker
        // It is refused, or its connection is closed: it tries again.
        await run(attack, key, round).catch(() => wait(100, undefined, { signal }).catch(() => {}))
      }
    })
  )
  await wait(attackMs, undefined, { signal })
  await until('attackers are refused, over and over', () => (attack.ended.get('too_many') ?? 0) > 20)
  const { calls, meanwhile, failures, medianMs, p99Ms, longestMs } = await neighbour.stop()
  t.same(failures, [], 'the neighbour was served')
  t.ok(meanwhile > 0, `${meanwhile} calls meanwhile: median ${medianMs} ms, p99 ${p99Ms} ms, longest ${longestMs} ms`)
  const peak = gateway.peakMemory()
  t.ok(peak < memoryBytes, `the resident set grew to ${Math.round(peak / mebibyte)} MiB`)
  t.comment(JSON.stringify({ peakMiB: Math.round(peak / mebibyte), calls, medianMs, p99Ms, longestMs }))
  t.comment(JSON.stringify(Object.fromEntries(attack.ended)))
  stop.abort()
  await Promise.all(attackers)
  // What they held is given back: one of them is served like anybody.
  for (const session of attack.sessions) await session.end()
  await until('an attacker is served', async () => {
    const headers = { ...modernMessage('tools/call', { name: 'calm__echo' }, { token: keys.attacker }) }
    const answer = await send(gateway.url, headers)
    return answer.status === 200 && answer.json.result !== undefined
  })
  const own = await legacyClient(gateway.url, keys.attacker)
  const large = { name: 'calm__echo', arguments: { text: 'x'.repeat(4_000_000) } }
  await until('also with a large call', async () => {
    // Refused, it may be closed before its body was sent.
    const answer = await own.request('tools/call', large).catch(() => undefined)
    return answer?.json?.result !== undefined
  })
  t.same((await gateway.stop()).code, 0)
})
