// What stdio servers may take of the machine: memory, processes, and the memory of all servers of a tenant. Real
// servers that take more are ended, and nobody else.

import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import {
  callOf,
  handshake,
  never,
  recordingClient,
  recordingEvents,
  stdioDefinition,
  testConnector,
  until
} from '../kit/connector.ts'
import { createUsageReader } from '../../src/upstream/stdio/process-usage.ts'
import type { StdioDefinition } from '../../src/config/snapshot.ts'

const server = new URL('../kit/prying-server.ts', import.meta.url).pathname
const MiB = 1_048_576
const skip = process.platform === 'linux' ? false : 'only Linux has /proc'

function shopFor(t: Test, limits: Parameters<typeof testConnector>[0] = {}) {
  const shop = testConnector(limits)
  return {
    ...shop,
    async open(overrides: Partial<StdioDefinition> = {}) {
      const events = recordingEvents()
      const definition = stdioDefinition({}, { args: [server], ...overrides })
      const upstream = await shop.connector.connect(definition, handshake, events)
      t.teardown(() => upstream.close())
      const call = (tool: string, args: object = {}) => upstream.request(callOf(tool, args), recordingClient(), never)
      return { call, events }
    }
  }
}

t.test('a server that takes more memory than its own limit is ended, and its calls say why', { skip }, async (t) => {
  const { open, logged, supervisor } = shopFor(t)
  const neighbour = await open()
  const { call } = await open({ memoryBytes: 160 * MiB })
  t.match(await call('processes'), { content: [{}] }, 'the control: what it takes at rest is within')
  await t.rejects(call('grow', { mebibytes: 256 }), {
    code: 'upstream_lost',
    message: /it took \d+ MiB, more than its memoryBytes \(167772160\)/,
    data: { outcome: 'unknown' }
  })
  t.match(
    logged.filter(({ msg }) => /took too much/.test(msg)),
    [{ upstream: 'files', processes: 1 }]
  )
  await until(() => supervisor.count() === 1, 'only that one is ended')
  t.match(await neighbour.call('processes'), { content: [{}] })
})

t.test(
  'a server that starts more processes than it may is ended, with those that left its group',
  { skip },
  async (t) => {
    const { open, supervisor } = shopFor(t)
    const { call } = await open({ maxProcesses: 8 })
    await t.rejects(call('fork', { count: 20 }), { message: /it had \d+ processes, more than its maxProcesses \(8\)/ })
    await until(() => supervisor.count() === 0, 'all are gone')
  }
)

t.test('a server that clears its environment is within the same limits', { skip }, async (t) => {
  const { open } = shopFor(t)
  const bare = { command: 'env', args: ['-i', process.execPath, server] }
  const forking = await open({ ...bare, maxProcesses: 8 })
  await t.rejects(forking.call('fork', { count: 20 }), { message: /more than its maxProcesses \(8\)/ })
  const growing = await open({ ...bare, memoryBytes: 160 * MiB })
  t.match(await growing.call('processes'), { content: [{}] }, 'the control: what it takes at rest is within')
  await t.rejects(growing.call('grow', { mebibytes: 256 }), { message: /more than its memoryBytes \(167772160\)/ })
})

t.test('memory that the processes of a server share is counted once, and what is read from files is not', async (t) => {
  const status = 'Name:\tx\nRssAnon:\t    1024 kB\nRssFile:\t   90000 kB\nRssShmem:\t    4096 kB\n'
  const plain = 'Name:\tx\nVmRSS:\t    3072 kB\n'
  const proc = t.testdir({ 7: { status }, 8: { status }, 9: { status: plain }, 10: { status }, self: {} })
  const marks = new Map([
    ['7', 'a'],
    ['8', 'a'],
    ['9', 'b']
  ])
  const usage = createUsageReader((pid) => Promise.resolve(marks.get(pid)), proc)
  t.same(Object.fromEntries(await usage(['a', 'b'])), {
    a: { bytes: 6 * MiB, processes: 2 },
    b: { bytes: 3 * MiB, processes: 1 }
  })
})

t.test('where the servers of a tenant take more than it may, the largest is ended', { skip }, async (t) => {
  const { open } = shopFor(t, { maxBytesPerTenant: 400 * MiB })
  const small = await open()
  const large = await open()
  const grown = large.call('grow', { mebibytes: 512 })
  await t.rejects(grown, { message: /the servers of tenant acme took more than limits\.processBytesPerTenant/ })
  t.match(await small.call('processes'), { content: [{}] })
})

t.test('where memory runs out, the system ends servers before the gateway', { skip }, async (t) => {
  const { open } = shopFor(t)
  const { call } = await open()
  const { content } = (await call('read', { path: '/proc/self/oom_score_adj' })) as { content: [{ text: string }] }
  t.equal(content[0].text.trim(), '500')
  t.not(readFileSync('/proc/self/oom_score_adj', 'utf8').trim(), '500', 'the gateway itself has not')
})
