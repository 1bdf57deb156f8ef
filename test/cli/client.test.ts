// `list`, `call` and `tail` as somebody types them, at a real gateway.

import { writeFileSync } from 'node:fs'
import { appendFile } from 'node:fs/promises'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { acmeGateway, keyOf } from '../kit/acme-gateway.ts'
import { adminGateway, adminKeys } from '../kit/admin.ts'
import { gateway, key } from '../kit/gateway.ts'
import { listen } from '../kit/listen.ts'
import { until } from '../kit/until.ts'
import { isCall, startUpstream } from '../kit/upstream.ts'
import { testProxy } from './doctor-kit.ts'
import { cli } from './kit.ts'

const acme = await acmeGateway(t)
const env = { GATEHOUSE_URL: acme.publicUrl, GATEHOUSE_KEY: keyOf.ada }

t.test('list shows tools with their arguments, as a table and as data', async (t) => {
  const { code, out } = await cli(['list', 'acme'], env)
  t.equal(code, 0)
  t.match(out, /^NAME +DESCRIPTION\necho +the echo tool\n/)
  const inputSchema = { type: 'object', properties: { query: {}, limit: {} }, required: ['query'] }
  const tools = [{ name: 'search', description: 'Finds pages. Slowly.', inputSchema }]
  const other = await startUpstream({ tools })
  t.teardown(() => other.close())
  const made = await gateway(t, { upstreams: { up: { url: other.url } } })
  t.equal(
    (await cli(['list', made.url(), '--token', key])).out,
    'NAME        ARGUMENTS      DESCRIPTION\nup__search  query [limit]  Finds pages.\n'
  )
  const { out: json } = await cli(['list', acme.url(), '--json'], env)
  t.ok((JSON.parse(json) as Array<{ name: string }>).some(({ name }) => name === 'echo'))
  t.match(await cli(['list', 'acme', 'toolz'], env), { code: 2, err: /Lists: tools, prompts/ })
})

t.test('call calls a tool, and its exit code says whether it failed', async (t) => {
  const key = join(t.testdir({ key: `${keyOf.ada}\n` }), 'key')
  const { GATEHOUSE_URL } = env
  const asked = ['call', 'acme/files', 'up__echo', '{ a: 1 }', '--key-file', key, '--json']
  const { code, out } = await cli(asked, { GATEHOUSE_URL })
  t.equal(code, 0)
  t.match(JSON.parse(out), { structuredContent: { arguments: { a: 1 } } })
  t.match(await cli(['call', 'acme', 'fail'], env), { code: 1, err: /isError|the tool says/ })
})

t.test('what a tool writes does not steer a terminal, and a file has it as it is', async (t) => {
  const evil = '\u001b]0;x\u0007\u001b[2J\u009b31m\u202eab\tc\nnext'
  const argv = ['call', 'acme', 'echo', JSON.stringify({ text: evil })]
  const terminal = await cli(argv, env, '', () => {}, true)
  t.equal(terminal.code, 0)
  t.notMatch(terminal.out, /[\u001b\u0007\u009b\u202e]/)
  const json = await cli([...argv, '--json'], env)
  t.notMatch(json.out, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
  t.same((JSON.parse(json.out) as { structuredContent: { arguments: unknown } }).structuredContent.arguments, {
    text: evil
  })
  acme.upstream.override(
    isCall('pid'),
    (response, { message }) => {
      const result = { content: [{ type: 'text', text: evil }] }
      const body = JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result })
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(body)
    },
    2
  )
  const shown = await cli(['call', 'acme', 'pid'], env, '', () => {}, true)
  t.equal(shown.out, '\\u{1b}]0;x\\u{7}\\u{1b}[2J\\u{9b}31m\\u{202e}ab\tc\nnext\n')
  t.equal((await cli(['call', 'acme', 'pid'], env)).out, `${evil}\n`, 'the control')
})

t.test('long numbers keep their digits, there and back', async (t) => {
  let sent = ''
  const proxy = await testProxy(t, {
    requestHeaders: { host: new URL(acme.listening).host },
    answers: (incoming) => (incoming.on('data', (part: Buffer) => (sent += part.toString())), false)
  })
  proxy.target = acme.listening
  acme.upstream.override(
    isCall('pid'),
    (response, { message }) => {
      const result = '{"content":[],"structuredContent":{"id":9007199254740995}}'
      const body = `{"jsonrpc":"2.0","id":${Number(message?.['id'])},"result":${result}}`
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(body)
    },
    1
  )
  const { out } = await cli(['call', `${proxy.url}/t/acme/mcp`, 'pid', '{"id": 9007199254740993}', '--json'], env)
  t.match(sent, '"arguments":{"id":9007199254740993}')
  t.match(out, '"id": 9007199254740995')
})

t.test('an answer is as deep as the gateway takes it from an upstream', async (t) => {
  const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels)
  const answered = async (levels: number) => {
    acme.upstream.override(
      isCall('pid'),
      (response, { message }) => {
        const result = `{"content":[],"structuredContent":{"deep":${nested(levels)}}}`
        const body = `{"jsonrpc":"2.0","id":${Number(message?.['id'])},"result":${result}}`
        response.writeHead(200, { 'Content-Type': 'application/json' }).end(body)
      },
      1
    )
    return await cli(['call', 'acme', 'pid', '--json'], env)
  }
  const { code, out } = await answered(500)
  t.equal(code, 0)
  t.match(JSON.stringify(JSON.parse(out)), `{"deep":${nested(500)}}`)
  t.equal((await answered(600)).code, 1, 'the control')
})

t.test('an empty key is none, and is said where it was meant', async (t) => {
  const { GATEHOUSE_URL } = env
  const empty = join(t.testdir({ key: '\n' }), 'key')
  t.match(await cli(['list', 'acme'], { GATEHOUSE_URL, GATEHOUSE_KEY: '' }), { code: 1, err: /Give an API key/ })
  const doctor = await cli(['doctor', '--url', acme.url()], { GATEHOUSE_KEY: '' })
  t.match(doctor.out, /ok +resource metadata/, 'it asks how to sign in')
  t.notMatch(doctor.out, 'credential')
  t.match(await cli(['list', 'acme', '--key-file', empty], env), { code: 2, err: /is empty\. --key-file takes/ })
  t.match(await cli(['list', 'acme', '--token', ''], env), { code: 2, err: /--token is empty/ })
  t.match(await cli(['status'], { GATEHOUSE_ADMIN_KEY: '' }), { code: 2, err: /^Give an admin key/ })
  t.match(await cli(['status', '--admin-key-file', empty]), { code: 2, err: /is empty\. --admin-key-file takes/ })
})

t.test('a caller that is a mere name is told how to be written', async (t) => {
  const asked = ['catalog', 'acme', '--caller', 'key:bob']
  t.match(await cli(asked, { GATEHOUSE_ADMIN_KEY: 'gha_x' }), { code: 2, err: /an object, such as .*\{ key: ci \}/ })
})

t.test('what is no admin API is said to be none, whatever it answers', async (t) => {
  const page = createServer((_request, response) => response.end('<h1>It works</h1>'))
  const broken = createServer((_request, response) =>
    response.writeHead(200, { 'Content-Type': 'application/json' }).end('<h1>It works</h1>')
  )
  for (const server of [page, broken]) {
    const GATEHOUSE_ADMIN_URL = await listen(t, server)
    for (const command of ['tail', 'status'])
      t.match(await cli([command], { GATEHOUSE_ADMIN_URL, GATEHOUSE_ADMIN_KEY: 'gha_x' }), {
        code: 1,
        err: /answered with HTTP 200, and not as the admin API does/
      })
  }
})

t.test('a list has all of its pages, however many there are', async (t) => {
  const pages = createServer((request, response) => {
    const at = Number(new URL(request.url ?? '', 'http://x').searchParams.get('cursor') ?? 0)
    const page = { items: [{ name: `key-${at}` }], ...(at < 59 && { nextCursor: String(at + 1) }) }
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(page))
  })
  const { out } = await cli(['key', 'list', 'acme', '--json'], {
    GATEHOUSE_ADMIN_URL: await listen(t, pages),
    GATEHOUSE_ADMIN_KEY: 'gha_x'
  })
  t.equal((JSON.parse(out) as unknown[]).length, 60)
})

t.test('live calls that end because the gateway stops are no success', async (t) => {
  const made = await adminGateway(t, { upstreams: { up: { url: acme.upstream.url } } })
  const ofAdmin = { GATEHOUSE_ADMIN_URL: made.adminUrl, GATEHOUSE_ADMIN_KEY: adminKeys.platform }
  const bin = join(import.meta.dirname, '../../bin/gatehouse.mjs')
  const child = spawn(process.execPath, [bin, 'tail'], { env: { ...process.env, ...ofAdmin } })
  t.teardown(() => child.kill('SIGKILL'))
  // Not `exit`, which may come before the last of what it wrote.
  const exited = once(child, 'close')
  let [out, err] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text))
  const call = ['call', made.url(), 'up__echo', '{}', '--token', key]
  await until('a call is heard', async () => (await cli(call), out.includes('up__echo ok')))
  await made.close()
  t.same(await exited, [1, null])
  t.match(err, /the stream of calls has ended: the gateway stops/)
})

t.test('times of day are those that have been, and have to be some', async (t) => {
  const now = Date.now()
  const line = (ms: number, tool: string): string =>
    JSON.stringify({ level: 30, time: now - ms, msg: 'call', upstream: 'up', tool, outcome: 'ok', ms: 1 })
  const hour = 3_600_000
  const lines = [line(23 * hour, 'early'), line(hour, 'late')].join('\n')
  const clock = (ms: number): string => new Date(ms).toTimeString().slice(0, 5)
  const tail = (...rest: string[]) => cli(['tail', '-', ...rest], {}, lines)
  const ahead = await tail('--since', clock(now + 2 * 60_000))
  t.match(ahead.out, /up__early[^]*up__late/, 'a time that is still to come was yesterday')
  const between = await tail('--since', clock(now + 2 * 60_000), '--until', clock(now - 2 * hour))
  t.match(between.out, /up__early/)
  t.notMatch(between.out, /up__late/)
  const past = await tail('--since', clock(now - 2 * hour))
  t.match(past.out, /up__late/)
  t.notMatch(past.out, /up__early/)
  for (const wrong of ['99:99', '24:00', '7:5', '7'])
    t.match(await tail('--since', wrong), { code: 2, err: /--since takes a time of day/ }, wrong)
})

t.test('a refusal is told in the words of the gateway, with what to do', async (t) => {
  t.match(await cli(['call', 'acme', 'ehco'], env), {
    code: 1,
    err: /Unknown tool: ehco \[-32602 \(invalid_params\), .*, request [\w-]+\]\nThere is no tool "ehco" here\. Did you/
  })
  const without = await cli(['list', 'acme'], { GATEHOUSE_URL: acme.publicUrl })
  t.match(without, {
    code: 1,
    err: /\[-?\d+ \(unauthenticated\), HTTP 401, request [\w-]+\]\nGive an API key.*--key-file/
  })
  t.match(await cli(['list', 'nobody'], env), { code: 1, err: /HTTP 404/ })
  const closed = await cli(['list', 'http://127.0.0.1:1/t/acme/mcp'], env)
  t.match(closed, {
    code: 1,
    err: /127\.0\.0\.1:1.*(?:ECONNREFUSED|bad port)/
  })
  t.match(await cli(['call', 'acme', 'echo', 'text'], env), { code: 2, err: /are an object in JSON or YAML/ })
  t.match(await cli(['list', 'acme', '--header', 'nonsense'], env), { code: 2, err: /"Name: value"/ })
})

t.test('tail finds requests by who, what, when and how they ended, and explains one', async (t) => {
  const file = join(t.testdir(), 'gatehouse.log')
  await cli(['list', 'acme'], { GATEHOUSE_URL: acme.publicUrl })
  writeFileSync(file, ['not a line of the log', ...acme.log.map((line) => JSON.stringify(line))].join('\n') + '\n')
  const { code, out } = await cli(['tail', file, '--user', 'ada', '--tool', 'fail'])
  t.equal(code, 0)
  t.match(out, /^\d\d:\d\d:\d\d up__fail tool_error \d+ ms ada\n$/)
  const failed = await cli(['tail', file, '--failed', '--since', '5m', '--json'])
  const lines = failed.out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  t.ok(lines.length >= 3)
  t.ok(lines.every(({ outcome }) => outcome !== 'ok'))
  const refused = lines.find(({ msg }) => msg === 'refused')
  const one = await cli(['tail', file, '--request', String(refused?.['requestId'])])
  t.match(one.out, /what +a request that was refused/)
  t.match(one.out, /reason +unauthenticated/)
  t.match(one.out, /meaning +\w/)
  t.match(await cli(['tail', file, '--user', 'nobody']), { code: 1, out: '', err: /no request fits/ })
  t.match(await cli(['tail', file, '--user', 'Ada']), {
    code: 1,
    err: /no request fits\. .*--user Ada\. Did you mean "ada"/
  })
  t.match(
    (await cli(['tail', file, '--user', 'ada', '--tool', 'up__fail'])).out,
    /^\S+ up__fail tool_error \d+ ms ada\n$/
  )
  t.match(await cli(['tail', file, '--outcome', 'tool_eror']), {
    code: 2,
    err: /"tool_eror"\. Did you mean "tool_error"/
  })
  t.match(await cli(['tail', file, '--outcome', 'timeout']), { code: 2, err: /Did you mean .*"upstream_timeout".*\?/ })
  t.match(await cli(['tail', '-'], {}, '10:42:09 up__echo ok 1 ms ada\n'), {
    code: 1,
    err: /no line of it is JSON.*FORMAT=json/
  })
  t.match(await cli(['tail', file, '--until', '2020-01-01T00:00:00Z']), { code: 1 })
  t.match(await cli(['tail', file, '--since', 'noon']), { code: 2, err: /--since takes a time of day/ })
  t.match(await cli(['tail', join(file, 'x')]), { code: 2, err: /cannot be read \(ENOTDIR\)/ })
  t.match(await cli(['tail', '-', '--tool', 'echo'], {}, acme.log.map((line) => JSON.stringify(line)).join('\n')), {
    out: /up__echo ok/
  })
})

t.test('tail --follow goes on with what comes, until it is told to end', async (t) => {
  const file = join(t.testdir(), 'gatehouse.log')
  const line = (tool: string): string =>
    `${JSON.stringify({ level: 30, time: Date.now(), msg: 'call', method: 'tools/call', upstream: 'up', tool, outcome: 'ok', ms: 1, user: 'ada' })}\n`
  writeFileSync(file, line('one'))
  const bin = join(import.meta.dirname, '../../bin/gatehouse.mjs')
  const child = spawn(process.execPath, [bin, 'tail', file, '--follow'], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const ended = Promise.withResolvers<number | null>()
  child.on('exit', (code) => ended.resolve(code))
  let out = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
  await until('what was there', () => out.includes('up__one'))
  const [begin, rest] = [line('two').slice(0, 20), line('two').slice(20)]
  await until('what is added', async () => {
    if (!out.includes('up__two')) await appendFile(file, out.includes('up__two') ? '' : begin + rest)
    return out.includes('up__two')
  })
  child.kill('SIGTERM')
  t.equal(await ended.promise, 0)
})

t.test('a file that holds more than a key is named, and what it holds is not shown', async (t) => {
  const file = join(t.testdir({ 'gatehouse.yaml': 'tenants:\n  secret-of-the-file: 1\n' }), 'gatehouse.yaml')
  const admin = 'http://127.0.0.1:1'
  for (const [argv, env, place] of [
    [['list', 'demo', '--key-file', file], {}, file],
    [['status', '--admin', admin, '--admin-key-file', file], {}, file],
    [['list', 'demo', '--token', 'a secret-of-the-file'], {}, '--token'],
    [['list', 'demo'], { GATEHOUSE_KEY: 'a\nsecret-of-the-file' }, 'GATEHOUSE_KEY'],
    [['status', '--admin', admin], { GATEHOUSE_ADMIN_KEY: 'ü secret-of-the-file' }, 'GATEHOUSE_ADMIN_KEY']
  ] as const) {
    const { code, out, err } = await cli([...argv], env)
    t.match({ code, out }, { code: 2, out: '' })
    t.ok(err.startsWith(`${place} does not have an `), err)
    t.notMatch(err, 'secret-of-the-file')
  }
})
