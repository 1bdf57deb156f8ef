// A process that is started ahead: who comes next gets one that was running before, and another takes its place.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
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
