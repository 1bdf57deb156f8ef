// Child processes: what they see, how they end, and that nothing is left of them.

import t, { type Test } from 'tap'
import { readFile } from 'node:fs/promises'
import { type Result, tenantId } from '../../src/protocol/messages.ts'
import { environment } from '../../src/upstream/stdio/child-environment.ts'
import { startError, startRemedies } from '../../src/upstream/stdio/start-error.ts'
import {
  alive,
  callOf,
  handClock,
  handshake,
  heldClock,
  never,
  realClock,
  recordingClient,
  recordingEvents,
  stdioDefinition,
  testConnector,
  type TestConnector,
  until
} from '../kit/connector.ts'
import type { StdioDefinition } from '../../src/config/snapshot.ts'
import type { ConnectionUse } from '../../src/upstream/rpc/transport.ts'

/** Of the end of a process; see `close` of a child. */
const graceMs = 2_000
/** How long a start waits for a process that is ending. */
const maxEndMs = 6_000

const textOf = (result: Result): string => (result['content'] as Array<{ text: string }>)[0]?.text ?? ''

async function open(t: Test, definition: StdioDefinition, shop: TestConnector = testConnector()) {
  const events = recordingEvents()
  const upstream = await shop.connector.connect(definition, handshake, events)
  t.teardown(() => upstream.close())
  const call = async (tool: string, args: object = {}) =>
    textOf(await upstream.request(callOf(tool, args), recordingClient(), never))
  return { upstream, events, call, ...shop }
}

/** The definition behind a shell that stays its parent, as npx does. */
function wrapped(definition: StdioDefinition): StdioDefinition {
  return { ...definition, command: '/bin/sh', args: ['-c', '"$@"; :', 'sh', definition.command, ...definition.args] }
}

t.test('a child sees the few inherited variables and its own, and nothing else', async (t) => {
  const shop = testConnector({
    env: {
      ...process.env,
      ...{ CANARY: 'secret', LANG: 'C.UTF-8', SHELL: '() { evil; }', NODE_OPTIONS: '--no-warnings' },
      ...{ HTTPS_PROXY: 'http://proxy:3128', no_proxy: 'localhost', SSL_CERT_FILE: '/ca.pem', WANTED: 'a', OTHER: 'b' }
    }
  })
  const definition = stdioDefinition({}, { env: { OWN: 'declared' }, inheritEnv: ['WANTED', 'UNSET'] })
  const { call } = await open(t, definition, shop)
  const env = JSON.parse(await call('env')) as Record<string, string>
  t.match(env, { HTTPS_PROXY: 'http://proxy:3128', no_proxy: 'localhost', SSL_CERT_FILE: '/ca.pem', WANTED: 'a' })
  t.match(env, { OWN: 'declared', LANG: 'C.UTF-8', PATH: process.env['PATH'] })
  // GATEHOUSE_CHILD is the mark by which what it leaves is found.
  const allowed = new Set([
    'PATH',
    'HOME',
    'LANG',
    'LC_ALL',
    'TZ',
    'TMPDIR',
    'USER',
    'LOGNAME',
    'SHELL',
    'OWN',
    'WANTED',
    'GATEHOUSE_CHILD',
    ...['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY'].flatMap((name) => [name, name.toLowerCase()]),
    ...['NODE_EXTRA_CA_CERTS', 'NODE_USE_SYSTEM_CA', 'SSL_CERT_FILE', 'SSL_CERT_DIR'],
    ...['REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE']
  ])
  // The test runner puts its own variables into every child.
  const own = Object.entries(env).filter(([name]) => !name.startsWith('_TAPJS'))
  t.same(
    own.filter(([name]) => !allowed.has(name) && name !== 'NODE_OPTIONS'),
    []
  )
  t.notMatch(JSON.stringify(own), /secret|no-warnings/)
  t.same(
    environment(
      { PATH: '/bin', CANARY: 'secret', NODE_OPTIONS: '-x', TZ: undefined },
      { env: { A: 'b', PATH: '/own' } }
    ),
    {
      PATH: '/own',
      A: 'b'
    }
  )
  const proxied = {
    HTTPS_PROXY: 'http://proxy:3128',
    no_proxy: 'localhost',
    SSL_CERT_FILE: '/ca.pem',
    OWN: 'a',
    B: 'b'
  }
  t.same(environment(proxied, { env: {}, inheritEnv: ['OWN', 'UNSET'] }), {
    HTTPS_PROXY: 'http://proxy:3128',
    no_proxy: 'localhost',
    SSL_CERT_FILE: '/ca.pem',
    OWN: 'a'
  })
  t.notOk('SHELL' in env, 'a value that is a shell function stays outside')
})

t.test('closing ends the whole group, the grandchild behind a wrapper too', async (t) => {
  const { upstream, call, supervisor } = await open(t, wrapped(stdioDefinition()))
  const pid = Number(await call('pid'))
  const parent = Number((await readFile(`/proc/${pid}/stat`, 'utf8')).split(' ')[3])
  t.not(parent, process.pid, 'it is a grandchild indeed')
  t.ok(await alive(pid))
  t.equal(supervisor.count(), 1)
  await upstream.close()
  await until(async () => !(await alive(pid)) && !(await alive(parent)), 'both are gone')
  await until(() => supervisor.count() === 0, 'and forgotten')
})

t.test('a grandchild that ignores the end of its input and TERM is killed', async (t) => {
  const { upstream, call } = await open(t, wrapped(stdioDefinition({ stubborn: true })))
  const pid = Number(await call('pid'))
  await upstream.close()
  await until(async () => !(await alive(pid)), 'the grandchild is gone')
})

t.test('when the wrapper is killed, the grandchild goes too', async (t) => {
  const { call, events } = await open(t, wrapped(stdioDefinition({ stubborn: true })))
  const pid = Number(await call('pid'))
  const parent = Number((await readFile(`/proc/${pid}/stat`, 'utf8')).split(' ')[3])
  process.kill(parent, 'SIGKILL')
  await until(async () => !(await alive(pid)), 'the grandchild is gone')
  await until(() => events.ended.length === 1, 'the owner was told')
})

t.test('destroying kills at once', async (t) => {
  const definition = wrapped(stdioDefinition({ stubborn: true }))
  const { upstream, call, supervisor } = await open(t, definition, testConnector({ clock: heldClock(graceMs) }))
  const pid = Number(await call('pid'))
  upstream.destroy(new Error('now'))
  await until(async () => !(await alive(pid)), 'it is gone')
  await until(() => supervisor.count() === 0, 'and forgotten')
})

t.test('killAllNow leaves no process, without waiting for anything', async (t) => {
  const shop = testConnector()
  const pids = await Promise.all(
    [1, 2, 3].map(async () =>
      Number(await (await open(t, wrapped(stdioDefinition({ stubborn: true })), shop)).call('pid'))
    )
  )
  shop.supervisor.killAllNow()
  for (const pid of pids) await until(async () => !(await alive(pid)), 'it is gone')
})

t.test('a crash tells its owner once, with the exit code, and loses the call', async (t) => {
  const { upstream, events } = await open(t, stdioDefinition())
  const other = upstream.request(callOf('slow'), recordingClient(), never)
  const lost = t.rejects(other, { code: 'upstream_lost', message: /exit code 9/, data: { outcome: 'unknown' } })
  await t.rejects(upstream.request(callOf('crash', { code: 9 }), recordingClient(), never), {
    code: 'upstream_lost',
    message: /exit code 9/
  })
  await lost
  t.equal(events.ended.length, 1)
  t.match(events.ended[0], { code: 'upstream_lost' })
})

t.test('a signal is named', async (t) => {
  const { upstream, call } = await open(t, stdioDefinition())
  const pid = Number(await call('pid'))
  const slow = upstream.request(callOf('slow'), recordingClient(), never)
  process.kill(pid, 'SIGKILL')
  await t.rejects(slow, { code: 'upstream_lost', message: /SIGKILL/ })
})

t.test('a child that gives up at its start makes the handshake fail as something to retry', async (t) => {
  const shop = testConnector()
  await t.rejects(open(t, stdioDefinition({ die: 5 }), shop), {
    code: 'upstream_unavailable',
    message: /exit code 5/,
    data: { upstream: 'files' }
  })
  t.ok(
    shop.logged.some(({ stderr }) => stderr === 'cannot start: bad configuration'),
    'its last words are in the log'
  )
})

t.test(
  'a process that ends before its server has answered is told with what to do, by what it really does',
  async (t) => {
    const shop = testConnector()
    const file = t.testdirName
    const ends: ReadonlyArray<readonly [row: number, command: string, args: readonly string[]]> = [
      [0, '/bin/sh', ['-c', 'no-such-command-anywhere']],
      [1, '/bin/sh', ['-c', '/']],
      [2, '/bin/sh', ['-c', 'echo "ModuleNotFoundError: No module named \'mcp\'" >&2; exit 1']],
      [3, process.execPath, [`${file}/not-there.js`]],
      [3, process.execPath, ['--input-type=module', '-e', 'import "not-a-package-anywhere"']],
      [4, process.execPath, ['-e', 'throw new Error("GITHUB_TOKEN environment variable is not set")']],
      [4, '/bin/sh', ['-c', 'echo "Missing required environment variable: API_KEY" >&2']],
      [4, '/bin/sh', ['-c', ': "${API_KEY:?must be set}"']],
      [5, '/bin/sh', ['-c', 'echo "the database is locked" >&2; exit 1']],
      [5, '/bin/sh', ['-c', 'kill -9 $$']]
    ]
    for (const [row, command, args] of ends) {
      const error = (await open(t, { ...stdioDefinition(), command, args }, shop).then(
        () => t.fail('it started'),
        (reason: unknown) => reason as Error
      )) as Error
      const remedy = startRemedies[row]?.remedy ?? 'there is such a row'
      t.match(
        error.message,
        /^Upstream .* ended during its start\. .* \((?:exit code \d+|signal SIGKILL)\) before it answered\. /
      )
      t.ok(error.message.endsWith(` before it answered. ${remedy}`), `${args.join(' ')}: ${error.message}`)
    }
    t.same([...new Set(ends.map(([row]) => row))], [...startRemedies.keys()], 'each row of the table is met')
  }
)

t.test('a child that never answers initialize is given up after connectMs and ended', async (t) => {
  const shop = testConnector()
  await t.rejects(open(t, stdioDefinition({ silent: ['initialize'] }, { connectMs: 300 }), shop), {
    code: 'upstream_unavailable',
    message: /connectMs/
  })
  await until(() => shop.supervisor.count() === 0, 'no process is left')
})

t.test('a command that cannot be started is named, its arguments are not', async (t) => {
  const folder = t.testdir({ plain: 'not a program' })
  const message = async (overrides: Partial<StdioDefinition>): Promise<string> => {
    const shop = testConnector()
    const error = (await shop.connector
      .connect(stdioDefinition({}, overrides), handshake, recordingEvents())
      .catch((error: unknown) => error)) as Error & { code: string }
    t.equal(error.code, 'upstream_unavailable')
    t.equal(shop.supervisor.count(), 0)
    t.notMatch(error.message, /hunter2/)
    return error.message
  }
  t.match(await message({ command: 'no-such-command', args: ['--key', 'hunter2'] }), /no-such-command was not found/)
  t.match(await message({ command: `${folder}/plain`, args: ['hunter2'] }), /may not be executed/)
  t.match(await message({ cwd: '/no/such/folder', args: ['hunter2'] }), /\/no\/such\/folder does not exist/)
  t.match(await message({ args: ['hunter2\0'] }), /cannot be started/)
})

t.test('what the gateway itself has too few of is no fault of the upstream', (t) => {
  for (const [code, limit] of [
    ['EMFILE', 'descriptors'],
    ['ENFILE', 'descriptors'],
    ['EAGAIN', 'systemProcesses']
  ] as const)
    t.match(startError(stdioDefinition(), { code }), { code: 'too_many', message: /ulimit/, data: { limit } }, code)
  t.match(startError(stdioDefinition(), { code: 'ENOENT' }), { code: 'upstream_unavailable' })
  t.end()
})

t.test('nothing in a definition is read by a shell', async (t) => {
  const { call } = await open(t, stdioDefinition({}, { env: { X: '$(id)', Y: '`id`' } }))
  t.match(JSON.parse(await call('env')), { X: '$(id)', Y: '`id`' })
})

t.test('the limit of processes is an error of its own', async (t) => {
  const shop = testConnector({ maxProcesses: 1 })
  const { upstream } = await open(t, stdioDefinition(), shop)
  await t.rejects(open(t, stdioDefinition(), shop), { code: 'too_many', message: /limits\.processes/ })
  await upstream.close()
  const again = await open(t, stdioDefinition(), shop)
  t.ok(again, 'a place that became free is used')
})

t.test('a start waits for the processes that are ending, and for no others', async (t) => {
  const shop = testConnector({ maxProcesses: 1, clock: heldClock(maxEndMs) })
  const { upstream } = await open(t, stdioDefinition(), shop)
  await t.rejects(open(t, stdioDefinition(), shop), { code: 'too_many', message: /limits\.processes/ }, 'nothing ends')
  const closed = upstream.close()
  t.equal(shop.supervisor.count(), 1, 'it has not ended yet')
  await t.resolves(open(t, stdioDefinition(), shop))
  await closed
})

t.test('a start that is refused for other reasons does not wait for a process that is ending', async (t) => {
  const shop = testConnector({ maxPerTenant: 1 })
  const { upstream } = await open(t, stdioDefinition({ stubborn: true }, { tenant: tenantId('other') }), shop)
  await open(t, stdioDefinition(), shop)
  const closed = upstream.close()
  await t.rejects(open(t, stdioDefinition(), shop), { code: 'too_many', message: /limits\.processesPerTenant \(1\)/ })
  t.equal(shop.supervisor.count(), 2, 'it has not ended yet')
  await closed
})

t.test('the processes of one caller leave room for those of others of the tenant', async (t) => {
  const shop = testConnector({ maxPerTenant: 3 })
  const connect = async (share: string | undefined, tenant = 'acme') => {
    const upstream = await shop.connector.connect(
      stdioDefinition({}, { tenant: tenantId(tenant) }),
      { ...handshake, ...(share === undefined ? {} : { quotaKey: share }) },
      recordingEvents(),
      never
    )
    t.teardown(() => upstream.close())
    return upstream
  }
  const [first] = await Promise.all([connect('ada'), connect('ada')])
  await t.rejects(connect('ada'), {
    code: 'too_many',
    message: /this caller has 2 processes.* three quarters of limits\.processesPerTenant \(3\)/,
    data: { limit: 'processesPerTenant' }
  })
  await connect('bob')
  await t.rejects(
    connect(undefined),
    { code: 'too_many', message: /limits\.processesPerTenant \(3\) is reached/ },
    'but all of them have no more than their tenant'
  )
  await connect('ada', 'globex')
  await first.close()
  t.ok(await connect('ada'), 'a place that became free is used')
})

t.test(
  'the processes of one tenant leave room for those of another, and its lists are read all the same',
  async (t) => {
    const shop = testConnector({ maxPerTenant: 1, maxProcesses: 4 })
    const connect = async (
      tenant: string,
      use?: ConnectionUse,
      isolation: StdioDefinition['isolation'] = 'session'
    ) => {
      const upstream = await shop.connector.connect(
        stdioDefinition({}, { tenant: tenantId(tenant), isolation }),
        handshake,
        recordingEvents(),
        never,
        use
      )
      t.teardown(() => upstream.close())
      return upstream
    }
    const first = await connect('acme')
    await t.rejects(connect('acme'), { code: 'too_many', message: /limits\.processesPerTenant \(1\)/ })
    await connect('globex')
    await connect('acme', 'listing')
    await connect('acme', 'calls', 'shared')
    await t.rejects(
      connect('acme', 'listing'),
      { code: 'too_many', message: /limits\.processes \(4\)/ },
      'but never beyond the limit of all'
    )
    await first.close()
    t.ok(await connect('acme'), 'a place that became free is used')
  }
)

t.test('stray text on standard output is left out and logged on one line', async (t) => {
  const env = { API_KEY: 'hunter2-hunter2' }
  const banner = '\n\r\n*** Welcome \x1b[31mred\x1b[0m hunter2-hunter2 ***\n'
  const { call, logged } = await open(t, stdioDefinition({ banner }, { env }))
  t.equal(await call('raw', { text: 'debug: 1\n[]\n"text"\n{"jsonrpc":"2.0"}\n' }), 'written')
  t.equal(await call('pid').then(Number).then(Number.isInteger), true)
  const told = logged.find(({ line }) => String(line).includes('Welcome'))
  t.equal(told?.['line'], '*** Welcome \\u{1b}[31mred\\u{1b}[0m *** ***')
})

t.test('a huge line fails the only call that can be meant', async (t) => {
  const { upstream, call } = await open(t, stdioDefinition({}, { maxMessageBytes: 10_000 }))
  await t.rejects(upstream.request(callOf('raw', { text: `${'y'.repeat(50_000)}\n` }), recordingClient(), never), {
    code: 'upstream_protocol',
    message: /10000 bytes/
  })
  t.match(await call('echo', { still: 'here' }), /here/)
})

t.test('a flood on standard error neither blocks the child nor fills the log', async (t) => {
  // However long it takes: no time passes in which more lines would be let through.
  const shop = testConnector({ clock: { ...realClock, now: handClock().now } })
  const { call, logged } = await open(t, stdioDefinition({}, { env: { API_KEY: 'hunter2-hunter2' } }), shop)
  t.equal(await call('stderr', { text: 'key is hunter2-hunter2 \x07\n', times: 50_000 }), 'written')
  t.equal(await call('stderr', { text: 'x', times: 1_000_000 }), 'written')
  t.match(await call('echo', {}), /{}/)
  await until(() => logged.some(({ stderr }) => stderr !== undefined), 'something was logged')
  const lines = logged.filter(({ stderr }) => stderr !== undefined)
  t.ok(lines.length < 400, `${lines.length} lines of 50000`)
  t.equal(lines[0]?.['stderr'], 'key is *** \\u{7}')
  t.notMatch(JSON.stringify(logged), /hunter2/)
})

t.test('a child that stops reading costs a bounded queue, and then calls fail without being sent', async (t) => {
  const { upstream } = await open(t, stdioDefinition({ deaf: true }, { timeoutMs: 60_000 }))
  const args = { blob: 'b'.repeat(200_000) }
  const errors: unknown[] = []
  const stop = new AbortController()
  for (let n = 0; n < 30; n++)
    upstream.request(callOf('echo', args), recordingClient(), stop.signal).catch((error: unknown) => errors.push(error))
  await until(() => errors.length >= 15, 'later calls are refused')
  t.match(errors[0], { code: 'upstream_unavailable', message: /does not read its input/ })
  t.ok(errors.length < 30, 'the earlier ones wait for their answer')
  stop.abort()
})

t.test('a batch is taken from a server of 2025-03-26 and from no other', async (t) => {
  const batch =
    '[{"jsonrpc":"2.0","method":"notifications/tools/list_changed"},{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}]\n'
  const old = await open(t, stdioDefinition({ revision: '2025-03-26' }))
  await old.call('raw', { text: batch })
  t.same(old.events.changed, ['tools', 'prompts'])
  const current = await open(t, stdioDefinition())
  await current.call('raw', { text: batch })
  t.same(current.events.changed, [])
})

t.test('a late answer, and progress of a foreign token, are dropped', async (t) => {
  const { upstream, events } = await open(t, stdioDefinition())
  const client = recordingClient()
  const stray = [
    { id: 999, result: {} },
    { id: '2', result: {} },
    { id: 2, method: 'x' },
    { method: 'notifications/progress', params: { progressToken: 999, progress: 1 } },
    { method: 'notifications/progress', params: { progressToken: '2', progress: 1 } }
  ]
  const text = stray.map((message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`).join('')
  await upstream.request({ ...callOf('raw', { text }, { progressToken: 'mine' }) }, client, never)
  t.same(client.notified, [])
  t.same(events.notifications, [])
})

t.test('a log message that names no call goes to the connection, not to a client', async (t) => {
  const { upstream, events } = await open(t, stdioDefinition())
  const clients = [recordingClient(), recordingClient()]
  const stop = new AbortController()
  const slow = upstream
    .request(callOf('slow'), clients[0] as ReturnType<typeof recordingClient>, stop.signal)
    .catch(() => {})
  await upstream.request(callOf('log'), clients[1] as ReturnType<typeof recordingClient>, never)
  t.same(
    clients.map(({ notified }) => notified.length),
    [0, 0]
  )
  t.equal(events.notifications.length, 1)
  stop.abort()
  await slow
})
