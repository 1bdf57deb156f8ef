// The gateway as a person starts it on a terminal: how the log looks, what closing the terminal does, and what is said
// where the port or the data folder is taken. The terminal is a real one, of `script`, which Debian always has.

import t, { type Test } from 'tap'
import { execFileSync, spawnSync } from 'node:child_process'
import { closeSync, constants, existsSync, openSync, readSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { eventsOf, jsonHeaders, type LegacyClient, legacyClient, open, send } from '../kit/client.ts'
import { until } from '../kit/until.ts'
import { allGone, descendants, gatehouse, type Running } from './kit/process.ts'

const { stdout: version } = spawnSync('script', ['--version'], { encoding: 'utf8' })
const skip = (version ?? '').includes('util-linux') ? false : 'there is no `script` of util-linux on this machine'

/** Both outputs are the terminal, which closes when `script` is killed. */
const onTerminal = (t: Test, args: readonly string[]): Running =>
  gatehouse(t, args, {
    node: 'sh',
    nodeArgs: ['-c', `exec script -qfec "exec '${process.execPath}' $*" /dev/null`, 'sh']
  })

/** The processes under `script`, the gateway first. */
const inside = (terminal: Running): number[] => descendants(terminal.pid)

const quickstart = (data: string, port = '0') => ['quickstart', '--port', port, '--data', data]

const shown = async (running: Running, name: string): Promise<string> =>
  (await until(`${name} is shown`, () => running.stdout.find((line) => line.startsWith(`  ${name} `))))
    .slice(name.length + 2)
    .trim()

const acme = { auth: { keys: [{ name: 'ci', key: 'a-key-of-this-very-test' }] }, upstreams: {} }

async function configured(t: Test): Promise<string> {
  const file = join(t.testdir(), 'gatehouse.json')
  await writeFile(file, JSON.stringify({ store: 'memory:', listen: { port: 0 }, tenants: { acme } }))
  return file
}

/** A call of three seconds that has begun: its first progress has arrived. */
const slowCall = ({ headers }: LegacyClient, url: string, name: string) =>
  open(url, {
    method: 'POST',
    headers: { ...headers, ...jsonHeaders },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: name,
      method: 'tools/call',
      params: { name, arguments: { duration: 3, steps: 10 }, _meta: { progressToken: name } }
    })
  })

t.test('a quickstart on a terminal', { skip }, async (t) => {
  const data = join(t.testdir(), 'data')
  const terminal = onTerminal(t, quickstart(data))
  const origin = await terminal.ready
  const url = await shown(terminal, 'Endpoint')
  const client = await legacyClient(url, await shown(terminal, 'API key'))

  await t.test('logs one line of text for each call', async (t) => {
    await until('the upstream is there', async () => {
      const { json } = await client.request('tools/call', { name: 'everything__echo', arguments: { message: 'a b' } })
      return json.result !== undefined
    })
    const line = await until('it is logged', () =>
      terminal.stdout.find((text) => stripVTControlCharacters(text).includes('__echo ok '))
    )
    t.match(stripVTControlCharacters(line), /^\d\d:\d\d:\d\d \S+__echo ok \d+ ms \S+$/)
    t.not(stripVTControlCharacters(line), line, 'its outcome is coloured')
  })

  await t.test('a second one on the same port says who holds it and how to choose another', async (t) => {
    const second = gatehouse(t, quickstart(join(t.testdir(), 'other'), new URL(origin).port))
    t.same(await second.ended, { code: 1, signal: null })
    t.match(second.stderr.join('\n'), `${new URL(origin).host} is in use by another gateway. Stop it, or choose`)
    t.match(second.stderr.join('\n'), '--port')
  })

  await t.test('a second one on the same data folder says who holds it and how to choose another', async (t) => {
    const second = gatehouse(t, quickstart(data))
    t.same(await second.ended, { code: 1, signal: null })
    const words = second.stderr.join('\n')
    t.match(words, `gatehouse.db is in use by another process (process ${inside(terminal)[0]})`)
    t.match(words, '--data')
  })

  await t.test('finishes the running calls when the terminal closes, then ends with all it started', async (t) => {
    const names = ['everything', 'remote'].map((upstream) => `${upstream}__trigger-long-running-operation`)
    const calls = await Promise.all(names.map((name) => slowCall(client, url, name)))
    const processes = inside(terminal)
    t.ok(processes.length >= 4, 'the gateway, two servers over stdio and one over HTTP')
    terminal.signal('SIGKILL')
    for (const [at, call] of calls.entries()) {
      const text = Buffer.concat(await call.toArray()).toString()
      t.match(eventsOf(text).at(-1), { id: names[at], result: { content: [{ text: /completed/ }] } })
    }
    await allGone(processes)
    t.notOk(existsSync(join(data, 'gatehouse.db-wal')), 'the store is closed as after SIGTERM')
  })
})

t.test('serve on a terminal', { skip }, async (t) => {
  const terminal = onTerminal(t, ['serve', '--config', await configured(t)])
  const origin = await terminal.ready
  const processes = inside(terminal)

  await t.test('SIGHUP reads the configuration again while the terminal is open', async (t) => {
    process.kill(processes[0] ?? 0, 'SIGHUP')
    await until('it is read', () => terminal.stdout.some((line) => line.includes('configuration read again')))
    t.equal((await send(`${origin}/health/live`, { method: 'GET' })).status, 200)
  })

  await t.test('it ends when the terminal closes', async () => {
    terminal.signal('SIGKILL')
    await allGone(processes)
  })
})

t.test('SIGHUP ends nothing that was started without a terminal, as with nohup', async (t) => {
  const folder = t.testdir()
  const file = join(folder, 'mcp.json')
  await writeFile(file, '{"mcpServers":{}}')
  const running = gatehouse(t, ['serve', '--mcp-json', file, '--port', '0', '--data', folder])
  const origin = await running.ready
  running.signal('SIGHUP')
  t.equal((await send(`${origin}/health/live`, { method: 'GET' })).status, 200)
  t.same(await running.stop(), { code: 0, signal: null })
})

t.test('GATEHOUSE_LOG_FORMAT chooses the form of the log, and nothing but the two is taken', async (t) => {
  const config = await configured(t)
  const start = (form: string) => gatehouse(t, ['serve', '--config', config], { env: { GATEHOUSE_LOG_FORMAT: form } })
  const text = start('text')
  await text.ready
  const listening = await until('a line', () => text.stderr.find((line) => line.includes(' listening ')))
  t.match(listening, /^\d\d:\d\d:\d\d listening url=http:\S+ /)
  await text.stop()
  const json = start('json')
  await json.logged('the address', ({ msg }) => msg === 'listening')
  await json.stop()
  const wrong = start('pretty')
  t.same(await wrong.ended, { code: 1, signal: null })
  t.match(wrong.stderr.join('\n'), 'GATEHOUSE_LOG_FORMAT is "pretty". Set it to text or json')
})

t.test('a log on a full disk loses lines and stops nothing', { skip: !existsSync('/dev/full') }, async (t) => {
  const running = gatehouse(t, ['serve', '--config', await configured(t)], {
    node: 'sh',
    nodeArgs: ['-c', `exec '${process.execPath}' "$@" 2>/dev/full`, 'sh'],
    env: { GATEHOUSE_LOG_LEVEL: 'debug' }
  })
  const origin = await running.ready
  running.signal('SIGHUP') // It logs what it has read.
  for (let nth = 0; nth < 3; nth++) t.equal((await send(`${origin}/health/live`, { method: 'GET' })).status, 200)
  t.same(await running.stop(), { code: 0, signal: null })
})

t.test('a log that nobody reads stops nothing, and neither does the end wait for it', async (t) => {
  const config = await configured(t)
  const pipe = join(dirname(config), 'log')
  execFileSync('mkfifo', [pipe])
  const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK)
  const running = gatehouse(t, ['serve', '--config', config], {
    node: 'sh',
    nodeArgs: ['-c', `exec '${process.execPath}' "$@" 2>'${pipe}'`, 'sh'],
    env: { GATEHOUSE_LOG_LEVEL: 'debug' }
  })
  const origin = await running.ready
  // Each is logged, in some three hundred bytes. A pipe takes 16 pages, each of them half full or more.
  const statuses = new Set<number>()
  const ask = async (): Promise<void> => {
    for (let nth = 0; nth < 100; nth++) statuses.add((await send(`${origin}/nowhere`, { method: 'GET' })).status)
  }
  await Promise.all(Array.from({ length: 10 }, ask))
  t.same([...statuses], [404])
  t.ok(readSync(reader, Buffer.alloc(65_536)) > 30_000, 'the pipe was full')
  t.same(await running.stop(), { code: 0, signal: null })
  closeSync(reader)
})

t.test('a data folder that cannot be used is named, with what to do', async (t) => {
  const file = join(t.testdir({ taken: 'a file' }), 'taken')
  const running = gatehouse(t, quickstart(file))
  t.same(await running.ended, { code: 1, signal: null })
  t.match(running.stderr.join('\n'), `The data folder ${file} cannot be used (EEXIST). Choose one with --data`)
})
