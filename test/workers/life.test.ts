// Workers that end, and a primary that does: the others go on, and nothing is left behind.

import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import t from 'tap'
import { legacyClient, send } from '../kit/client.ts'
import { configOf, key } from '../kit/gateway.ts'
import { marked, start } from '../kit/process.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'
import { allGone, descendants, signalAll } from '../e2e/kit/process.ts'
import { ownProcess, workers } from './kit.ts'

t.test('a worker that is killed is replaced, and the others serve meanwhile', async (t) => {
  const gateway = await workers(t, ownProcess)
  const client = await legacyClient(gateway.mcp, key)
  const [victim = 0, ...others] = await gateway.pidsOfWorkers()
  t.equal(others.length, 1)
  signalAll([victim], 'SIGKILL')
  t.match(await gateway.logged('its end', ({ signal }) => signal === 'SIGKILL'), {
    level: 50,
    code: null,
    afterMs: 1_000,
    msg: 'a worker ended by SIGKILL; another one takes its place'
  })
  for (let n = 0; n < 4; n++) t.equal((await send(`${gateway.url}/health/live`, { method: 'GET' })).status, 200)
  await until('there are two again', () => gateway.log().filter(({ msg }) => msg === 'listening').length === 3)
  const pids = await gateway.pidsOfWorkers()
  t.equal(pids.length, 2)
  t.notOk(pids.includes(victim))
  for (let n = 0; n < 4; n++) t.equal((await client.request('tools/list')).status, 200, 'its session lives on')
  t.same(await gateway.stop(), { code: 0, signal: null }, 'an earlier end does not count')
})

t.test('a primary that is killed takes workers and processes of servers with it', async (t) => {
  const mark = `GATEHOUSE_TEST_${randomUUID()}`
  const gateway = await workers(t, ownProcess, 2, { MARK: mark })
  t.teardown(async () => signalAll(await marked(mark), 'SIGKILL'))
  const client = await legacyClient(gateway.mcp, key)
  const called = await client.request('tools/call', { name: 'pid', arguments: {} })
  const server = Number(JSON.parse(called.text).result.content[0].text)
  const pids = descendants(gateway.pid)
  t.ok(pids.includes(server), 'the control')
  gateway.signal('SIGKILL')
  await allGone(pids)
  await until('nothing is left', async () => (await marked(mark)).length === 0)
})

t.test('a port that is in use is said once, with exit code 1', async (t) => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => other.close())
  const { port } = other.address() as AddressInfo
  const started = await start(t, configOf(ownProcess), { args: ['--workers', '2', '--port', String(port)] })
  t.same(await started.ended, { code: 1, signal: null })
  const words = started.stderr.filter((line) => line.startsWith('gatehouse: '))
  t.equal(words.length, 1)
  t.match(words[0], `127.0.0.1:${port} is in use by another program.`)
  t.notMatch(started.stderr.join('\n'), /uncaught|stopping|killed/, 'the start fails at once')
  t.same(started.stdout, [])
})

t.test('a signal that all processes get, as of a terminal, counts once', async (t) => {
  const up = await startUpstream()
  t.teardown(() => up.close())
  const gateway = await workers(t, { upstreams: { up: { type: 'http', url: up.url } } })
  const client = await legacyClient(gateway.mcp, key)
  const call = client.request('tools/call', { name: 'up__slow', arguments: {} })
  await until('the call runs', () => up.server.calls('slow') === 1)
  signalAll([gateway.pid, ...(await gateway.pidsOfWorkers())], 'SIGINT')
  await gateway.logged('both stop', () => gateway.workersOf(({ drainMs }) => drainMs !== undefined).length === 2)
  up.server.release()
  t.match((await call).text, 'slow is done')
  t.same(await gateway.ended, { code: 0, signal: null })
})

t.test('a signal to a worker alone has that one drain, and another one takes its place', async (t) => {
  const up = await startUpstream()
  t.teardown(() => up.close())
  const gateway = await workers(t, { upstreams: { up: { type: 'http', url: up.url } } })
  const client = await legacyClient(gateway.mcp, key)
  const calls = Array.from({ length: 4 }, () => client.request('tools/call', { name: 'up__slow', arguments: {} }))
  await until('the calls run', () => up.server.calls('slow') === 4)
  const [told = 0] = await gateway.pidsOfWorkers()
  // A service manager may say it again.
  for (let n = 0; n < 2; n++) signalAll([told], 'SIGTERM')
  const stopping = await gateway.logged('it drains', ({ drainMs }) => drainMs !== undefined)
  up.server.release()
  for (const { text } of await Promise.all(calls)) t.match(text, 'slow is done')
  t.match(await gateway.logged('its end', ({ afterMs }) => afterMs !== undefined), {
    level: 30,
    worker: stopping['worker'],
    msg: 'a worker ended with code 0; another one takes its place'
  })
  await until('there are two again', () => gateway.log().filter(({ msg }) => msg === 'listening').length === 3)
  t.notOk((await gateway.pidsOfWorkers()).includes(told))
  t.equal(gateway.workersOf(({ drainMs }) => drainMs !== undefined).length, 1, 'the other one serves')
  t.equal((await client.request('tools/list')).status, 200)
  t.same(await gateway.stop(), { code: 0, signal: null })
})

t.test('a signal that all processes get while workers start ends all of it with 0', async (t) => {
  const gateway = await start(t, configOf(ownProcess), { args: ['--workers', '2'] })
  const pids = await until('two workers', () => {
    const below = descendants(gateway.pid)
    return below.length >= 2 ? below : undefined
  })
  signalAll([gateway.pid, ...pids], 'SIGINT')
  t.same(await gateway.ended, { code: 0, signal: null }, { log: gateway.stderr })
})

t.test('a signal while a worker opens its port ends all of it with 0, and no worker is killed', async (t) => {
  const signalled = new URL('signal-at-listen.mjs', import.meta.url)
  const gateway = await start(t, configOf(ownProcess), {
    args: ['--workers', '2'],
    env: { NODE_OPTIONS: `--import=${signalled}` }
  })
  t.same(await gateway.ended, { code: 0, signal: null })
  t.notMatch(gateway.stderr.join('\n'), 'it is killed')
  t.equal(gateway.log().filter(({ msg, worker }) => msg === 'stopped' && worker !== undefined).length, 2)
})

t.test('a worker that hangs is killed after a second signal, and the others end at once', async (t) => {
  const mark = `GATEHOUSE_TEST_${randomUUID()}`
  const gateway = await workers(t, ownProcess, 2, { MARK: mark })
  t.teardown(async () => signalAll(await marked(mark), 'SIGKILL'))
  const [hung = 0] = await gateway.pidsOfWorkers()
  signalAll([hung], 'SIGSTOP')
  gateway.signal('SIGTERM')
  await gateway.logged('the other one has ended', ({ msg, code }) => msg === 'stopped' && code === 0)
  gateway.signal('SIGTERM')
  t.same(await gateway.ended, { code: 130, signal: null })
  await until('nothing is left', async () => (await marked(mark)).length === 0)
})

t.test('a worker that hangs is killed some time after the others had to end', async (t) => {
  const mark = `GATEHOUSE_TEST_${randomUUID()}`
  const gateway = await workers(t, { ...ownProcess, limits: { drainMs: 0 } }, 2, { MARK: mark })
  t.teardown(async () => signalAll(await marked(mark), 'SIGKILL'))
  const [hung = 0] = await gateway.pidsOfWorkers()
  signalAll([hung], 'SIGSTOP')
  t.same(await gateway.stop(), { code: 1, signal: null })
  t.match(await gateway.logged('why', ({ msg }) => msg === 'a worker does not end; it is killed'), { level: 50 })
  await until('nothing is left', async () => (await marked(mark)).length === 0)
})

t.test('a worker that cannot take the place of another one is tried again, and the others go on', async (t) => {
  const gateway = await workers(t, ownProcess)
  const file = join(gateway.folder, 'gatehouse.json')
  const good = await readFile(file, 'utf8')
  await writeFile(file, '{ "tenants": 1 }')
  const [victim = 0] = await gateway.pidsOfWorkers()
  signalAll([victim], 'SIGKILL')
  const { err } = await gateway.logged('why not', ({ msg }) => msg === 'a worker could not start')
  t.match((err as Error).message, 'gatehouse.json cannot be used')
  t.equal((await legacyClient(gateway.mcp, key)).initialized.status, 200)
  await writeFile(file, good)
  await until('there are two again', () => gateway.log().filter(({ msg }) => msg === 'listening').length === 3)
  t.equal(gateway.stdout.length, 1)
})
