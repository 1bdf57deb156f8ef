// Child processes that do not go by themselves: one that ignores the end of its input and TERM, and one that has left the
// process group and session of its parent. Whichever way the gateway ends, nothing of them survives it.

import { spawnSync } from 'node:child_process'
import { randomInt, randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { legacyClient } from '../kit/client.ts'
import { configOf, key } from '../kit/gateway.ts'
import { marked, serve, type Served } from '../kit/process.ts'
import { allGone, descendants, gatehouse, signalAll } from './kit/process.ts'
import { until } from '../kit/until.ts'
import type { Test } from 'tap'

const server = new URL('../kit/stdio-server.ts', import.meta.url).pathname
/** Starts a daemon, which is `setsid` for, and goes on as the server. */
const daemonAndServer = `
require('node:child_process').spawn('sleep', ['3600'], { detached: true, stdio: 'ignore' }).unref()
import(${JSON.stringify(server)})`

interface Made extends Served {
  /** Has called, so that its session has a process. Resolves with what came of it. */
  session(): Promise<{ readonly pids: readonly number[]; end(): Promise<unknown>; call(): Promise<unknown> }>
  alive(): Promise<number[]>
}

async function made(t: Test): Promise<Made> {
  const mark = `GATEHOUSE_TEST_${randomUUID()}`
  const config = configOf({
    upstreams: {
      up: {
        command: process.execPath,
        args: ['-e', daemonAndServer, 'server', JSON.stringify({ stubborn: true })],
        env: { MARK: mark },
        era: 'legacy'
      }
    },
    limits: { coldStartMs: 30_000 }
  })
  const started = await serve(t, config)
  const alive = () => marked(mark)
  t.teardown(async () => signalAll(await alive(), 'SIGKILL'))
  return {
    ...started,
    alive,
    async session() {
      const client = await legacyClient(`${started.url}/t/acme/mcp`, key)
      const call = async (tool = 'echo') =>
        (await client.request('tools/call', { name: `up__${tool}`, arguments: {} })).json
      // By its own word: the process that its list is read from may start or end meanwhile.
      const server = Number((await call('pid')).result?.content[0].text)
      const pids = await until('server and daemon', async () => {
        const own = [server, ...descendants(server)]
        return own.length === 2 ? own : undefined
      })
      return { pids, call, end: () => client.end() }
    }
  }
}

t.test('when its session ends, what a server has left ends too, and nothing of other sessions', async (t) => {
  const { session, alive } = await made(t)
  const [first, second] = [await session(), await session()]
  await first.end()
  await until('the end of both', async () => !(await alive()).some((pid) => first.pids.includes(pid)))
  const left = await alive()
  t.ok(
    second.pids.every((pid) => left.includes(pid)),
    'those of the other session live on'
  )
  t.match(await second.call(), { result: {} })
})

for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
  t.test(`after ${signal} nothing that a server has started survives the gateway`, async (t) => {
    const gateway = await made(t)
    const { pids, call } = await gateway.session()
    t.match(await call(), { result: {} })
    t.same((await gateway.alive()).filter((pid) => pids.includes(pid)).length, 2, 'while the gateway lives, both live')
    gateway.signal(signal)
    await gateway.ended
    await until('the end of all', async () => (await gateway.alive()).length === 0)
    t.pass('nothing is left')
  })
}

t.test('after a second signal, which ends the gateway at once, nothing survives either', async (t) => {
  const gateway = await made(t)
  await gateway.session()
  gateway.signal('SIGTERM')
  await gateway.logged('the first signal', ({ msg }) => String(msg).startsWith('stopping'))
  gateway.signal('SIGTERM')
  await gateway.ended
  await until('the end of all', async () => (await gateway.alive()).length === 0)
  t.pass('nothing is left')
})

t.test('after SIGKILL a process without the environment that it was given ends with its process group', async (t) => {
  const args = ['-i', process.execPath, server, JSON.stringify({ stubborn: true })]
  const upstreams = { up: { command: 'env', args, era: 'legacy' } }
  const gateway = await serve(t, configOf({ upstreams, limits: { coldStartMs: 30_000 } }))
  const client = await legacyClient(`${gateway.url}/t/acme/mcp`, key)
  t.match((await client.request('tools/call', { name: 'up__echo', arguments: {} })).json, { result: {} })
  const pids = descendants(gateway.pid)
  t.ok(pids.length > 0)
  gateway.signal('SIGKILL')
  await gateway.ended
  await allGone(pids)
})

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1')
  } catch {
    return '' // No process, or gone meanwhile.
  }
}

const works = (command: string, args: readonly string[]): boolean =>
  spawnSync(command, [...args, '--', '/bin/sh', '-c', ':']).status === 0
/** What holds a daemon that wipes its environment, where the system has it. */
const holds = {
  'its sandbox': { sandbox: 'required', has: works('bwrap', ['--ro-bind', '/', '/', '--unshare-pid']) },
  'its limit': { sandbox: 'off', has: works('prlimit', ['--locks=1:']) }
}

t.test(
  'the log says at the start that nothing marks processes by their limits, and which upstreams need it',
  async (t) => {
    const up = { command: process.execPath, args: [server, '{}'], sandbox: 'off' }
    const config = configOf({
      upstreams: { up, more: up, web: { url: 'http://127.0.0.1:9/' } },
      tenants: {
        other: {
          auth: { keys: [{ name: 'other', key: `${key}_other` }] },
          upstreams: { own: up, boxed: { ...up, sandbox: 'required' } }
        }
      },
      limits: { coldStartMs: 30_000 }
    })
    const missing = 'prlimit'
    const without = await serve(t, config, { env: { PATH: t.testdir({}) } })
    const line = await without.logged('what is missing', (line) => line['missing'] === missing)
    t.match(line, {
      level: 40,
      count: 3,
      msg: /outlives its session and the gateway.*install prlimit.*`sandbox: required`/
    })
    t.same((line['upstreams'] as string[]).toSorted(), ['acme/more', 'acme/up', 'other/own'])
    const call = async ({ url }: Served) =>
      (await (await legacyClient(`${url}/t/acme/mcp`, key)).request('tools/call', { name: 'up__echo', arguments: {} }))
        .json
    const told = ({ log }: Served): number => log().filter((each) => each['missing'] === missing).length
    t.match(await call(without), { result: {} }, 'without it, they are started all the same')
    t.equal(told(without), 1, 'the log says it once')
    if (!holds['its limit'].has) return t.comment('not tried, since this system has no prlimit: that nothing is said')
    const usual = await serve(t, config)
    // Its process waits for the same look at the system.
    t.match(await call(usual), { result: {} })
    t.same(
      usual.log().filter((each) => 'missing' in each),
      [],
      'the control, also of what is below'
    )
  }
)

/** Folders without which a gateway cannot end what a server leaves. */
const hidden = {
  '/proc': { missing: '/proc', msg: /outside of its process group outlives its session and the gateway.*container/ },
  '/bin': { missing: '/bin/sh', msg: /ignore the end of their input outlive a gateway that is killed.*container/ }
}
for (const [folder, { missing, msg }] of Object.entries(hidden)) {
  const without = ['--dev-bind', '/', '/', '--tmpfs', folder, '--die-with-parent']
  if (spawnSync('bwrap', [...without, '--', process.execPath, '--version']).status !== 0)
    t.comment(`not tried, since this system has no bubblewrap: what the log says without ${missing}`)
  else
    t.test(`the log says at the start what outlives a gateway without ${missing}`, async (t) => {
      const up = { command: process.execPath, args: [server, '{}'], sandbox: 'off' }
      const config = configOf({ upstreams: { up }, limits: { coldStartMs: 30_000 } })
      const file = join(t.testdir({ 'gatehouse.json': JSON.stringify(config) }), 'gatehouse.json')
      const gateway = gatehouse(t, ['serve', '--config', file, '--port', '0'], {
        node: 'bwrap',
        nodeArgs: [...without, '--', process.execPath]
      })
      t.match(await gateway.logged('what is missing', (line) => line['missing'] === missing), { level: 40, msg })
      const client = await legacyClient(`${await gateway.ready}/t/acme/mcp`, key)
      const { json } = await client.request('tools/call', { name: 'up__echo', arguments: {} })
      t.match(json, { result: {} }, 'it serves all the same')
    })
}

for (const [what, { sandbox, has }] of Object.entries(holds)) {
  if (!has) t.comment(`not tried, since this system offers none: that a daemon ends by ${what}`)
  for (const end of has ? (['DELETE', 'SIGTERM', 'SIGKILL'] as const) : []) {
    t.test(`a daemon without the environment that it was given ends by ${what}: ${end}`, async (t) => {
      const kit = new URL('../kit/', import.meta.url).pathname
      // Its own time to sleep, by which it is found: neither its environment nor its group names it.
      const seconds = String(randomInt(1_000_000, 9_000_000))
      const script = `(env -i setsid sleep ${seconds} &); exec /bin/sh ${kit}small-server.sh`
      const up = { command: '/bin/sh', args: ['-c', script], era: 'legacy', sandbox, sandboxRead: [kit] }
      const gateway = await serve(t, configOf({ upstreams: { up }, limits: { coldStartMs: 30_000 } }))
      const client = await legacyClient(`${gateway.url}/t/acme/mcp`, key)
      const daemons = (): string[] => readdirSync('/proc').filter((pid) => commandOf(pid) === `sleep\0${seconds}\0`)
      t.teardown(() => signalAll(daemons().map(Number), 'SIGKILL'))
      await until('the daemon of the list', () => daemons().length > 0)
      const before = new Set(daemons())
      t.match((await client.request('tools/call', { name: 'up__pid', arguments: {} })).json, { result: {} })
      const [own] = await until('one of the session', () => {
        const others = daemons().filter((pid) => !before.has(pid))
        return others.length > 0 ? others : undefined
      })
      if (end === 'DELETE') await client.end()
      else gateway.signal(end)
      await until('its end', () => !daemons().includes(own ?? ''))
      if (end !== 'DELETE') await until('the end of all', () => daemons().length === 0)
      t.pass('it is gone')
    })
  }
}
