// What people ask those who run the gateway, each answered by one command: `gatehouse` in a process of its own, on the
// log that `gatehouse serve` wrote, and on its admin API. Faults are made.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { adminKeys, adminSection, globexKey } from '../kit/admin.ts'
import { legacyClient, send } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { configOf, key } from '../kit/gateway.ts'
import { startUpstream } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'

const bin = join(import.meta.dirname, '../../bin/gatehouse.mjs')
const folder = t.testdir()
const [log, config, change] = ['gatehouse.log', 'gatehouse.json', 'change.yaml'].map((name) => join(folder, name)) as [
  string,
  string,
  string
]
/** Nothing of the test runner's own; what one process has compiled the next one need not. */
const environment = { PATH: process.env['PATH'], HOME: folder, NODE_COMPILE_CACHE: join(folder, 'compiled') }

const upstream = await startUpstream()
t.teardown(() => upstream.close())
const stdioServer = join(import.meta.dirname, '../kit/stdio-server.ts')
const options = {
  upstreams: {
    up: { url: upstream.url },
    gone: { url: 'http://127.0.0.1:1/mcp' },
    broken: { command: process.execPath, args: [stdioServer, JSON.stringify({ die: 3 })] },
    noisy: { command: process.execPath, args: [stdioServer] }
  },
  endpoints: { default: { upstreams: ['up'] }, all: { upstreams: ['up', 'gone', 'broken', 'noisy'] } },
  auth: {
    keys: [
      { name: 'alice', key },
      { name: 'bob', key: 'gh_key_of_bob_0123456789' }
    ]
  },
  policy: {
    default: 'allow',
    rules: [{ name: 'no-failing', effect: 'deny', who: { keys: ['bob'] }, what: { names: ['fail'] } }]
  }
}
const [port, adminPort] = [await freePort(), await freePort()]
const publicUrl = `http://127.0.0.1:${port}`
const top = { admin: { ...adminSection, listen: { port: adminPort } }, audit: {}, listen: { host: '127.0.0.1', port } }
const tenants = { globex: { auth: { keys: [{ name: 'gus', key: globexKey }] }, upstreams: {} } }
writeFileSync(config, JSON.stringify(configOf({ ...options, tenants, top })))

// As somebody runs it: gatehouse serve --config gatehouse.json 2> gatehouse.log
const logFile = openSync(log, 'w')
const served = spawn(process.execPath, [bin, 'serve', '--config', config], {
  env: environment,
  stdio: ['ignore', 'pipe', logFile]
})
closeSync(logFile)
t.teardown(async () => {
  served.kill('SIGTERM')
  await once(served, 'exit')
})
served.stdout?.resume()
const logged = (words: string): Promise<true> =>
  until(`in the log: ${words}`, () => readFileSync(log, 'utf8').includes(words) || undefined)
await logged('"msg":"listening"')

const env = {
  GATEHOUSE_ADMIN_URL: `http://127.0.0.1:${adminPort}`,
  GATEHOUSE_ADMIN_KEY: adminKeys.platform,
  GATEHOUSE_URL: publicUrl,
  GATEHOUSE_KEY: key
}
const [url, urlOfAll] = [`${publicUrl}/t/acme/mcp`, `${publicUrl}/t/acme/all/mcp`]

async function gatehouse(argv: readonly string[]): Promise<{ code: number; out: string; err: string }> {
  const child = spawn(process.execPath, [bin, ...argv], {
    env: { ...environment, ...env },
    stdio: ['ignore', 'pipe', 'pipe']
  })
  const [[code], out, err] = await Promise.all([once(child, 'close'), text(child.stdout), text(child.stderr)])
  return { code: Number(code), out, err }
}

// As somebody says it: a time of day, from the minute before on.
const minute = new Date(Date.now() - 60_000).toTimeString().slice(0, 5)
const minutes = ['--since', minute]

// The faults.
const alice = await legacyClient(urlOfAll, key)
const failed = await alice.request('tools/call', { name: 'up__fail', arguments: {} })
await alice.request('tools/call', { name: 'up__echo', arguments: { a: 1 } })
await alice.request('tools/call', { name: 'up__ehco', arguments: {} })
const bob = await legacyClient(url, 'gh_key_of_bob_0123456789')
const denied = await bob.request('tools/call', { name: 'up__fail', arguments: {} })
await alice.request('tools/call', { name: 'gone__search', arguments: {} })
await until('the noisy one is listed', async () => (await alice.request('tools/list')).text.includes('noisy__raw'))
await alice.request('tools/call', { name: 'noisy__raw', arguments: { text: 'one\ntwo\n' } })
const wrong = { authorization: 'Bearer gh_an_old_key_of_nobody_at_all', 'content-type': 'application/json' }
await send(url, { headers: wrong, body: '{"jsonrpc":"2.0","id":1,"method":"ping"}' })
writeFileSync(change, 'tenants: { hooli: { auth: {}, upstreams: {} } }')
await gatehouse(['apply', change])
// Planned, and never applied.
const wish = join(folder, 'wish.yaml')
writeFileSync(wish, 'tenants: { hooli: { auth: {}, upstreams: { new: { url: "https://new.example/mcp" } } } }')
await until('the broken ones are known', async () => {
  const { out } = await gatehouse(['status', '--tenant', 'acme', '--json'])
  return (JSON.parse(out) as Array<{ state: string }>).filter(({ state }) => state === 'away').length === 2
})
await logged('"reason":"unauthenticated"')

const id = String(failed.headers['x-request-id'])
const questions: ReadonlyArray<readonly [question: string, argv: readonly string[], answer: RegExp, code?: number]> = [
  [
    'Alice says that her call failed just now: why?',
    ['tail', log, '--user', 'alice', '--failed', ...minutes],
    /up__fail tool_error \d+ ms alice/
  ],
  [
    'What was request … about?',
    ['tail', log, '--request', id],
    /tool +fail[^]*outcome +tool_error[^]*meaning +The tool answered/
  ],
  [
    'Which tool did the model make up?',
    ['tail', log, '--outcome', 'invalid_params'],
    /tools\/call invalid_params .*alice/
  ],
  [
    'Which calls do rules and kill switches refuse?',
    ['tail', log, '--outcome', 'denied', '--tool', 'fail', '--user', 'bob', '--upstream', 'up'],
    /^\S+ up__fail denied \d+ ms bob: the rule no-failing\n$/
  ],
  [
    'What was he told, and why?',
    ['tail', log, '--request', String(denied.headers['x-request-id'])],
    /outcome +denied[^]*rule +no-failing[^]*error +Unknown tool: up__fail[^]*meaning +A rule or a kill switch/
  ],
  [
    'Whom does the server that is away keep waiting?',
    ['tail', log, '--upstream', 'gone'],
    /^\S+ gone__search upstream_unavailable \d+ ms alice: Upstream gone is away/
  ],
  ['Who used this tool?', ['tail', log, '--tool', 'echo', '--json'], /"apiKey":"alice"/],
  ['Which calls are slow?', ['tail', log, '--slower', '0', '--upstream', 'up'], /up__echo ok/],
  ['Somebody cannot get in: why?', ['tail', log, '--failed', '--json'], /"reason":"unauthenticated"/],
  [
    'With which software, and in which revision, do people come?',
    ['session', 'list', 'acme'],
    /SOFTWARE +REVISION[^]*alice[^]*2025-11-25/
  ],
  ['Which servers are away?', ['status'], /acme +gone +http +away[^]*acme +up +streamable-http +connected/, 1],
  [
    'Does a server write what is no message?',
    ['status', '--tenant', 'acme'],
    /acme +noisy +stdio[^]*\nacme\/noisy writes to its standard output what is no message: 2 lines so far\n/,
    1
  ],
  [
    'Why does that server not start?',
    ['upstream', 'get', 'acme', 'broken'],
    /lastStderr: .*cannot start: bad configuration/
  ],
  [
    'And what did it say before?',
    ['upstream', 'stderr', 'acme', 'broken'],
    /^AT +TEXT\n\d{4}-\S+Z +cannot start: bad configuration/
  ],
  ['When is it tried again?', ['upstream', 'get', 'acme', 'gone'], /nextTryAt: \d{4}-/],
  [
    'Why can bob not use this tool?',
    ['explain', '--config', config, '--endpoint', 'acme', '--tool', 'up/fail', '--caller', '{ key: bob }'],
    /no-failing \(deny, tenant\)/
  ],
  ['What does bob see?', ['catalog', 'acme', '--caller', '{ key: bob }'], /^NAME[^]*up__echo(?![^]*up__fail)/],
  ['What does an endpoint offer to me?', ['list', 'acme'], /^NAME[^]*up__echo/],
  ['Does this tool work at all?', ['call', 'acme', 'up__echo', '{ a: 1 }', '--json'], /"a": 1/],
  [
    'My host does not connect: whose fault is it?',
    ['doctor', '--url', url, '--token', 'gh_an_old_key_of_nobody_at_all'],
    /FAILS credential +The API key is not one of this tenant/,
    1
  ],
  ['And with a good key?', ['doctor', '--url', url], /All hops are well/],
  ['How do I connect Cursor?', ['connect', url, '--host', 'cursor'], /mcpServers[^]*cursor:\/\//],
  ['Who changed the configuration?', ['versions'], /platform +platform-admin +apply +hooli/],
  ['What would this change do?', ['plan', wish], /tenant: hooli\n +change: changed[^]*upstream: new\n +change: made/],
  ['And what one that is made already?', ['plan', change], /tenants: \[\]/],
  ['Who has an API key?', ['key', 'list', 'acme'], /alice[^]*bob/],
  ['Who did what, for the auditor?', ['audit', 'list', 'acme', '--json'], /"outcome": "tool_error"/],
  [
    'Is this configuration right, and what does it cost in tokens?',
    ['check', config, '--connect'],
    /\/t\/acme\/mcp: 21 tools \(about \d+ tokens\)[^]*gone is missing/,
    1
  ],
  ['Stop that tool, now', ['kill', 'tool', 'acme', 'up', 'echo'], /stopped/],
  ['What is stopped?', ['kill', 'list', 'acme'], /^KIND +UPSTREAM +TOOL .*\ntool +up +echo /],
  ['Let it run again', ['kill', 'tool', 'acme', 'up', 'echo', '--undo'], /taken back/]
]

t.test('there are twenty questions and more', async (t) => {
  t.ok(questions.length >= 20)
})
for (const [question, argv, answer, expected = 0] of questions)
  t.test(question, async (t) => {
    const { code, out, err } = await gatehouse(argv)
    t.match(out, answer, `gatehouse ${argv.join(' ')}: ${err}`)
    t.equal(code, expected)
    if (argv[0] === 'check')
      t.match(
        err,
        /FAILS acme\/broken: .*\(exit code 3\) before it answered\. If its standard error does not say why, run .* by hand .*\n +standard error: cannot start: bad/
      )
  })

t.test('Does this tool work, whose server is away?', async (t) => {
  const { code, err } = await gatehouse(['call', 'acme/all', 'gone__search', '{}'])
  t.match(err, /Upstream gone is away.* \[-?\d+ \(upstream_unavailable\), HTTP 200, request [\w-]+\]\n/)
  t.notMatch(err, /There is no tool/)
  t.equal(code, 1)
})

t.test('What did this session of the list do?', async (t) => {
  const listed = JSON.parse((await gatehouse(['session', 'list', 'acme', '--json'])).out) as Array<{ id: string }>
  const lines = await Promise.all(listed.map(async ({ id }) => (await gatehouse(['tail', log, '--session', id])).out))
  t.match(
    lines.find((text) => text.includes('bob')),
    /up__fail denied \d+ ms bob/
  )
  t.ok(
    lines.every((text) => !/alice[^]*bob|bob[^]*alice/.test(text)),
    'each those of its own only'
  )
})

t.test('What is going on right now?', async (t) => {
  const args = [bin, 'tail', '--tenant', 'acme', '--user', 'alice']
  const child = spawn(process.execPath, args, { env: { ...environment, ...env }, stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const exited = once(child, 'exit')
  let out = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
  await until('a call is heard', async () => {
    await alice.request('tools/call', { name: 'up__echo', arguments: {} })
    return /up__echo ok \d+ ms alice/.test(out)
  })
  child.kill('SIGTERM')
  t.same(await exited, [0, null])
})
