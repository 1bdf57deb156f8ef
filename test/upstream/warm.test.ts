// A process that is started ahead: who comes next gets one that was running before, and another takes its place.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import pino from 'pino'
import t from 'tap'
import type { StdioDefinition } from '../../src/config/snapshot.ts'
import type { Child, ChildEvents } from '../../src/upstream/stdio/child-process.ts'
import { createWarmChildren } from '../../src/upstream/stdio/warm-children.ts'
import { type LegacyClient, legacyClient } from '../kit/client.ts'
import { gateway, key, type TestGateway } from '../kit/gateway.ts'
import { scriptedStdio } from '../kit/server-request.ts'
import { until } from '../kit/until.ts'

/** Servers that this process has started, and theirs, wherever they have been put. */
const servers = (): number[] =>
  readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    try {
      const [, ppid] = /^PPid:\s+(\d+)$/m.exec(readFileSync(join('/proc', name, 'status'), 'utf8')) ?? []
      const isServer = readFileSync(join('/proc', name, 'cmdline'), 'utf8').includes('stdio-server')
      return Number(ppid) === process.pid && isServer ? [Number(name)] : []
    } catch {
      return [] // It has just ended.
    }
  })

const pidOf = async (client: LegacyClient): Promise<number> => {
  const { json } = await client.request('tools/call', { name: 'pipe__pid', arguments: {} })
  return Number(json.result.content[0].text)
}

const warmed = (made: TestGateway): Promise<LegacyClient> => legacyClient(made.url(), key)

t.test('sessions get processes that were running before them, each its own', async (t) => {
  const upstreams = { pipe: { ...scriptedStdio, warm: 1 } }
  const made = await gateway(t, { upstreams })
  const first = await warmed(made)
  const own = await pidOf(first)
  // One lists, one is the session's, and one waits.
  const there = await until('one waits', () => (servers().length >= 3 ? servers() : undefined))
  const second = await warmed(made)
  const taken = await pidOf(second)
  t.ok(taken !== own && there.includes(taken), 'it was running before there was a session to need it')
  t.equal(await pidOf(first), own)
  await until('another takes its place', () => servers().length >= 4)
  made.reload({
    listen: { host: '127.0.0.1', port: 0 },
    store: 'memory:',
    tenants: { acme: { auth: { keys: [{ name: 'test', key }] }, upstreams: {} } }
  })
  await until('what nobody has taken ends with its upstream', () => servers().length === 0)
  await made.close()
})

t.test('where there is little room, calls come before what is started ahead', async (t) => {
  const limits = { processes: 2, processesPerTenant: 2 }
  const made = await gateway(t, { upstreams: { pipe: { ...scriptedStdio, warm: 4 } }, limits })
  t.ok((await pidOf(await warmed(made))) > 0)
})

/** Of processes that are counted, not started; the clock goes when told. */
function counted() {
  const due: Array<() => void> = []
  const started: Array<{ readonly events: ChildEvents; kills: number }> = []
  const clock = {
    now: () => 0,
    timer(_ms: number, run: () => void) {
      due.push(run)
      return { close() {}, unref() {}, refresh() {} }
    }
  }
  const warm = createWarmChildren({
    start(_definition, events) {
      const one = { events, kills: 0, kill: () => void one.kills++, isEnding: () => one.kills > 0 }
      started.push(one)
      return one as unknown as Child
    },
    mayStart: async () => true,
    clock,
    log: pino({ enabled: false })
  })
  const pass = async (): Promise<void> => {
    for (const run of due.splice(0)) run()
    await new Promise(setImmediate)
  }
  return { warm, started, pass }
}

const definition = { hash: 'one', warm: 2, isolation: 'session' } as unknown as StdioDefinition
const nobody: ChildEvents = { stdout() {}, stderr() {}, ended() {} }

t.test('an upstream that is removed while its processes are about to start gets none', async (t) => {
  const { warm, started, pass } = counted()
  warm.fillSoon(definition)
  warm.retain(new Set())
  await pass()
  t.equal(started.length, 0)
  warm.fillSoon(definition)
  warm.retain(new Set(['one']))
  await pass()
  t.equal(started.length, 2, 'where it stays, they start')
})

t.test('one that was killed for what it wrote is given to nobody', async (t) => {
  const { warm, started, pass } = counted()
  warm.fillSoon(definition)
  await pass()
  started[0]?.events.stdout(Buffer.alloc(65_537))
  t.equal(started[0]?.kills, 1)
  t.equal(warm.next(definition), started[1] as unknown)
  t.equal(warm.take(definition, nobody), started[1] as unknown)
  t.equal(warm.take(definition, nobody), undefined)
})
