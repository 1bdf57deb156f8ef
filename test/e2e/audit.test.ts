// The audit log of processes that share a Redis, one of which is killed under load: every call that a client has an
// answer to is in it, and it verifies.

import pino from 'pino'
import t from 'tap'
import { createRedisStore } from '../../src/store/redis.ts'
import { wallClock } from '../../src/time/clock.ts'
import { auditPublicKey } from '../../src/audit/keys.ts'
import { readAudit } from '../../src/audit/segments.ts'
import { verifyAudit } from '../../src/audit/verify.ts'
import { legacyClient } from '../kit/client.ts'
import { key } from '../kit/gateway.ts'
import { serve } from '../kit/process.ts'
import { redis } from '../kit/redis.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'

t.test('no answered call is missing after a process was killed, and the log of all is whole', async (t) => {
  const [store, upstream] = await Promise.all([redis(t), startUpstream()])
  t.teardown(() => upstream.close())
  const config = {
    store: store.url,
    audit: {},
    limits: { requestsPerSecondPerPrincipal: 1_000_000, requestsPerSecondPerTenant: 1_000_000 },
    tenants: {
      acme: {
        audit: { required: true, arguments: true },
        auth: { keys: [{ name: 'test', key }] },
        upstreams: { up: { type: 'http', url: upstream.url } }
      }
    }
  }
  const answered: string[] = []
  async function callers(url: string, name: string, calls: number) {
    const clients = await Promise.all(Array.from({ length: 8 }, () => legacyClient(`${url}/t/acme/mcp`, key)))
    const call = async (client: (typeof clients)[number], text: string) => {
      const { json } = await client.request('tools/call', { name: 'up__echo', arguments: { text } })
      if (json.result !== undefined) answered.push(text)
    }
    // Those whose process is killed get no answer to their last call.
    const loop = async (client: (typeof clients)[number], who: number) => {
      for (let at = 0; at < calls; at++) await call(client, `${name}-${who}-${at}`)
    }
    return Promise.allSettled(clients.map(loop))
  }
  const [one, other] = await Promise.all([serve(t, config), serve(t, config)])
  const load = [callers(one.url, 'one', 10_000), callers(other.url, 'other', 60)]
  await until('many calls have reached the upstream', () => upstream.seen.length > 600)
  one.signal('SIGKILL')
  await Promise.all(load)
  const third = await serve(t, config)
  await callers(third.url, 'third', 5)
  for (const each of [other, third]) t.equal((await each.stop()).code, 0)

  const kept = await createRedisStore({ url: store.url, clock: wallClock, log: pino({ level: 'silent' }) })
  t.teardown(() => kept.close())
  const lines: string[] = []
  for await (const batch of readAudit(kept, 'acme')) lines.push(...batch.trimEnd().split('\n'))
  const recorded = new Map<string, number>()
  for (const line of new Set(lines)) {
    const { kind, outcome, arguments: args } = JSON.parse(line) as Record<string, unknown>
    const { text } = (args ?? {}) as { text?: string }
    if (kind === 'call' && outcome === 'ok' && text !== undefined) recorded.set(text, (recorded.get(text) ?? 0) + 1)
  }
  t.ok(answered.length > 500, `${answered.length} calls were answered`)
  t.same(
    answered.filter((text) => recorded.get(text) !== 1),
    [],
    'each answered call is recorded once'
  )
  const { publicKey } = await other.logged('its key', ({ publicKey }) => publicKey !== undefined)
  const report = await verifyAudit(
    (async function* all() {
      yield* lines
    })(),
    [auditPublicKey(String(publicKey))],
    Date.now()
  )
  t.match(report, { chains: 3, problems: [] })
  t.match(report.notes.join('\n'), /has no end: its gateway runs, was killed/)
})
