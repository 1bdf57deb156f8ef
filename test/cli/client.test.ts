// `list`, `call` and `tail` as somebody types them, at a real gateway.

import { writeFileSync } from 'node:fs'
import { appendFile } from 'node:fs/promises'
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'
import { acmeGateway, keyOf } from '../kit/acme-gateway.ts'
import { until } from '../kit/until.ts'
import { cli } from './kit.ts'

const acme = await acmeGateway(t)
const env = { GATEHOUSE_URL: acme.publicUrl, GATEHOUSE_KEY: keyOf.ada }

t.test('list shows tools with their arguments, as a table and as data', async (t) => {
  const { code, out } = await cli(['list', 'acme'], env)
  t.equal(code, 0)
  t.match(out, /^NAME +.*DESCRIPTION|^NAME/)
  t.match(out, /^echo/m)
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
