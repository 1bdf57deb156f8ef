// The sandbox of a stdio server: what a real server sees and reaches from within it, and what happens where there is none.

import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
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
import type { StdioDefinition } from '../../src/config/snapshot.ts'

const server = new URL('../kit/prying-server.ts', import.meta.url).pathname
const repository = join(import.meta.dirname, '..', '..')
const isThere = spawnSync('bwrap', ['--ro-bind', '/', '/', '--unshare-pid', '--', '/bin/sh', '-c', ':']).status === 0
/** Where the system lets nobody make sandboxes, what happens without one is all that can be tried. */
function testWithin(name: string, run: (t: Test) => Promise<void>): void {
  if (isThere) void t.test(name, run)
  else t.comment(`not tried, since this system lets nobody make sandboxes: ${name}`)
}

async function open(t: Test, overrides: Partial<StdioDefinition> = {}, env = process.env) {
  const shop = testConnector({ env })
  const definition = stdioDefinition({}, { args: [server], sandboxRead: [repository], ...overrides })
  const upstream = await shop.connector.connect(definition, handshake, recordingEvents())
  t.teardown(() => upstream.close())
  const call = async (tool: string, args: object = {}): Promise<string> => {
    const { content } = (await upstream.request(callOf(tool, args), recordingClient(), never)) as {
      content: [{ text: string }]
    }
    return content[0].text
  }
  return { call, ...shop }
}

testWithin(
  'a server in a sandbox sees its own processes, and neither the files nor the environment of the gateway',
  async (t) => {
    const folder = t.testdir({ secret: 'of the gateway', given: { note: 'for the server' }, kept: {} })
    const given = join(folder, 'given')
    const kept = join(folder, 'kept')
    const secret = join(folder, 'secret')
    // The repository is given so that the server finds its own program; the folder of the test lies within it.
    const outside = { sandboxRead: [join(repository, 'test', 'kit'), given], sandboxWrite: [kept] }
    const bare = await open(t)
    t.equal(await bare.call('read', { path: secret }), 'of the gateway', 'the control: without a sandbox it sees them')
    t.ok(Number(await bare.call('processes')) > 3)
    t.match(await bare.call('environment', { pid: process.pid }), 'PATH=')

    const { call } = await open(t, { sandbox: 'required', ...outside })
    t.equal(await call('read', { path: secret }), 'ENOENT')
    t.equal(await call('read', { path: join(given, 'note') }), 'for the server', 'what it is given')
    t.equal(await call('write', { path: join(given, 'note'), text: 'changed' }), 'EROFS')
    t.equal(await call('write', { path: join(kept, 'note'), text: 'kept' }), 'written')
    t.equal(readFileSync(join(kept, 'note'), 'utf8'), 'kept')
    t.equal(await call('write', { path: '/tmp/note', text: 'for a while' }), 'written')
    t.equal(await call('write', { path: join(process.env['HOME'] ?? '/root', 'note'), text: 'for a while' }), 'written')
    t.equal(await call('write', { path: '/usr/note', text: 'no' }), 'EROFS')
    t.ok(Number(await call('processes')) <= 3)
    t.equal(await call('environment', { pid: process.pid }), 'ENOENT')
  }
)

testWithin('a command in a home folder shows nothing else of it', async (t) => {
  const home = t.testdir({ bin: {}, lib: {}, secret: 'of the user' })
  const command = join(home, 'bin', 'serve')
  writeFileSync(command, `#!/bin/sh\nexec ${process.execPath} ${server}\n`, { mode: 0o755 })
  const sandboxRead = [join(repository, 'test', 'kit'), process.execPath]
  const env = { ...process.env, HOME: home }
  const { call } = await open(t, { sandbox: 'required', command, args: [], sandboxRead }, env)
  t.equal(await call('read', { path: join(home, 'secret') }), 'ENOENT')
  t.match(await call('read', { path: command }), /exec/, 'the control: the command itself is there')
})

testWithin('it reaches the network, unless its definition says that it may not', async (t) => {
  const listener = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  t.teardown(() => listener.close())
  const { port } = listener.address() as AddressInfo
  t.equal(await (await open(t, { sandbox: 'required' })).call('connect', { port }), 'connected')
  const alone = await open(t, { sandbox: 'required', sandboxNetwork: false })
  t.equal(await alone.call('connect', { port }), 'ECONNREFUSED')
})

testWithin('its processes end with it, also those that left its group', async (t) => {
  const { call, supervisor } = await open(t, { sandbox: 'required' })
  void call('fork', { count: 3 }).catch(() => {})
  t.ok(Number(await call('processes')) >= 4)
  supervisor.killAllNow()
  await until(() => supervisor.count() === 0, 'all have ended')
})

testWithin('a command that is not found is said to be not found', async (t) => {
  await t.rejects(open(t, { sandbox: 'required', command: 'no-such-program' }), {
    code: 'upstream_unavailable',
    message: /command no-such-program was not found/
  })
})

t.test('where the system offers none, required refuses and preferred runs without, and the log says so', async (t) => {
  // A folder of programs without bwrap.
  const programs = join(t.testdir({}), 'bin')
  mkdirSync(programs)
  symlinkSync('/bin/sh', join(programs, 'sh'))
  const env = { ...process.env, PATH: programs }
  await t.rejects(open(t, { sandbox: 'required' }, env), {
    code: 'upstream_unavailable',
    message: /sandbox: required.*bubblewrap \(bwrap\) is not installed/
  })
  const { call, logged } = await open(t, { sandbox: 'preferred' }, env)
  t.ok(Number(await call('processes')) > 3)
  t.match(
    logged.filter(({ reason }) => reason !== undefined),
    [{ reason: 'bubblewrap (bwrap) is not installed' }]
  )
  writeFileSync(
    join(programs, 'bwrap'),
    '#!/bin/sh\necho "bwrap: No permissions to create new namespace" >&2\nexit 1\n',
    { mode: 0o755 }
  )
  await t.rejects(open(t, { sandbox: 'required' }, env), { message: /No permissions to create new namespace/ })
})
