// The log: no line is lost on the way out, and the names of secrets never carry a value.

import t from 'tap'
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { stripVTControlCharacters } from 'node:util'
import pino from 'pino'
import { GatewayError } from '../../src/protocol/messages.ts'
import { afterWrites, batched, type LoggedCall, redacted, shortError, writeCall } from '../../src/observe/log.ts'
import { handClock } from '../kit/connector.ts'
import { textLine } from '../../src/observe/text-log.ts'

const module = join(import.meta.dirname, '../../src/observe/log.ts')

/** Of a log without fields of its own, at the time 7. @param request a text when it is written */
const loggedCall = (request: () => string): LoggedCall => ({
  time: 7,
  bindings: '',
  call: {
    request: { method: 'ping' },
    tenant: { id: 'acme', audit: { required: false, arguments: false, redact: [] } },
    endpoint: { name: 'default' },
    principal: { kind: 'key', issuer: '', subject: 'ci', clientId: 'ci' },
    record: {
      get requestId() {
        return request()
      }
    }
  },
  ended: { outcome: 'ok', ms: 1, rule: undefined }
})

const lineOf = (request: string): string =>
  `{"level":30,"time":7,"requestId":"${request}","tenant":"acme","endpoint":"default","apiKey":"ci","client":"ci",` +
  '"method":"ping","outcome":"ok","ms":1,"msg":"call"}\n'

/** What a process of its own writes to standard error. */
function logged(code: string): { lines: Array<Record<string, unknown>>; status: number | null } {
  const script = `import { createLog } from ${JSON.stringify(module)}\nconst log = createLog('info', 'json')\n${code}`
  const { stderr, status } = spawnSync(process.execPath, ['--input-type=module', '--eval', script], {
    encoding: 'utf8'
  })
  return {
    lines: stderr
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>),
    status
  }
}

t.test('every line is there after a process came to its end by itself', async (t) => {
  const { lines, status } = logged('for (let n = 0; n < 1000; n++) log.info({ n }, "line")')
  t.equal(status, 0)
  t.same(
    lines.map(({ n }) => n),
    Array.from({ length: 1000 }, (_, n) => n),
    'all, in order, once'
  )
})

t.test('every line is there after process.exit, those of exit listeners too', async (t) => {
  const { lines, status } = logged(
    'process.on("exit", () => log.warn("going"))\nlog.info("one")\nlog.info("two")\nprocess.exit(3)'
  )
  t.equal(status, 3)
  t.same(
    lines.map(({ msg }) => msg),
    ['one', 'two', 'going']
  )
})

t.test('a fatal line is out at once, with those before it', async (t) => {
  const { lines } = logged('log.info("before")\nlog.fatal("the end")\nprocess.kill(process.pid, "SIGKILL")')
  t.same(
    lines.map(({ msg }) => msg),
    ['before', 'the end']
  )
})

t.test('a line goes out with its turn; under load, lines of some milliseconds are one write', async (t) => {
  const written: string[] = []
  const clock = handClock()
  const lines = batched({ write: (lines) => written.push(String(lines)) }, clock)
  lines.write('a\n')
  lines.write('b\n')
  t.same(written, [])
  await turn()
  t.same(written, ['a\nb\n'])
  lines.write('c\n')
  await turn()
  await turn()
  lines.write('d\n')
  t.same(written.length, 1, 'something was written a moment ago')
  clock.advance(49)
  t.equal(written.length, 1)
  clock.advance(1)
  t.same(written.slice(1), ['c\nd\n'])
  clock.advance(50)
  lines.write('e\n')
  await turn()
  t.same(written.slice(2), ['e\n'], 'the load is over')
  lines.write('x'.repeat(140_000))
  t.equal(written.length, 4, 'much does not wait')
  lines.write('f\n')
  lines.end()
  lines.write('g\n')
  lines.later(loggedCall(() => 'h'))
  t.same(written.slice(4), ['f\n', 'g\n', lineOf('h')])
  clock.advance(100)
  await turn()
  t.equal(written.length, 7)
})

t.test('the line of a call is made when it is written, in its place among the others', async (t) => {
  const written: string[] = []
  let id = 'too early'
  const lines = batched({ write: (lines) => written.push(String(lines)) }, handClock())
  lines.write('before\n')
  const next = loggedCall(() => id)
  lines.later(next)
  lines.write('after\n')
  id = 'first'
  await turn()
  t.same(written, [`before\n${lineOf('first')}after\n`])
  for (let call = 0; call < 300; call++) lines.later(next)
  t.equal(written.length, 2, 'many do not wait')
  lines.flushSync()
  t.equal(written.slice(1).join(''), lineOf('first').repeat(300), 'none is lost')
})

t.test('what else is told of calls hears of each write of their lines', async (t) => {
  const heard: string[] = []
  const clock = handClock()
  const log = pino({ base: null }, batched({ write: (lines) => heard.push(String(lines)) }, clock))
  afterWrites(log, () => heard.push('counted'))
  writeCall(
    log,
    loggedCall(() => 'a'),
    true
  )
  t.same(heard, [])
  await turn()
  t.match(heard, [/"requestId":"a"/, 'counted'])
  log.info('b')
  clock.advance(50)
  t.match(heard.slice(2), [/"msg":"b"/, 'counted'])
  const plain = pino({ base: null }, { write: (line: string) => heard.push(line) })
  afterWrites(plain, () => heard.push('counted'))
  plain.info('c')
  t.match(heard.slice(4), [/"msg":"c"/], 'a log that writes each line at once does not say so')
})

t.test('names of secrets carry no value, in a line and in the objects of a line', async (t) => {
  const line = { tenant: 'acme', token: 'canary', request: { authorization: 'canary', key: 'canary' }, list: ['kept'] }
  const safe = redacted(line)
  t.notMatch(JSON.stringify(safe), /canary/)
  t.match(safe, {
    tenant: 'acme',
    token: '[Redacted]',
    request: { authorization: '[Redacted]', key: '[Redacted]' },
    list: ['kept']
  })
  t.equal(line.token, 'canary', 'what the caller holds stays as it was')
})

t.test('a line without secrets is passed on as it is', async (t) => {
  const line = { tenant: 'acme', target: { upstream: 'files' } }
  t.equal(redacted(line), line)
})

t.test('the members of an error are seen by the net as well', async (t) => {
  const { lines } = logged(
    'log.error({ err: Object.assign(new Error("it broke"), { secret: "canary", kept: 1 }) }, "fault")'
  )
  t.match(lines, [{ err: { message: 'it broke', kept: 1, secret: '[Redacted]' }, msg: 'fault' }])
})

t.test('an error of ours is logged by its code, with its cause', async (t) => {
  t.same(shortError(new GatewayError('too_large', 'Too large.', { cause: new GatewayError('internal', 'Why.') })), {
    code: 'too_large',
    message: 'Too large.',
    cause: { code: 'internal', message: 'Why.' }
  })
})

t.test('a line for a terminal stands on one line, and nothing in it reaches the terminal as a command', async (t) => {
  const time = new Date(2026, 0, 2, 3, 4, 5, 67).getTime()
  const line = (fields: object) =>
    textLine(JSON.stringify({ level: 30, time, msg: 'upstream stderr', ...fields }), false)
  t.equal(
    line({ upstream: 'files', stderr: 'two words', ms: 1.5, keys: ['a'], on: true, empty: '' }),
    '03:04:05 upstream stderr upstream=files stderr="two words" ms=1.5 keys=["a"] on=true empty=""\n'
  )
  t.equal(line({ msg: 'a\nb' }), '03:04:05 a\\u{a}b\n')
  t.equal(line({ it: '\u001b[2J' }), '03:04:05 upstream stderr it=\\u{1b}[2J\n')
  t.equal(line({ it: 'a \u009b2J\u202e' }), '03:04:05 upstream stderr it="a \\u{9b}2J\\u{202e}"\n')
})

t.test('a call is one short line: what, how it ended, how long it took, for whom, and why it failed', async (t) => {
  const time = new Date(2026, 0, 2, 22, 47, 9).getTime()
  const line = (fields: object) => textLine(JSON.stringify({ level: 30, time, msg: 'call', ...fields }), false)
  const read = { method: 'tools/call', upstream: 'files', tool: 'read', ms: 36.4, user: 'alice' }
  t.equal(line({ ...read, outcome: 'ok', requestId: 'a-1' }), '22:47:09 files__read ok 36 ms alice\n')
  t.equal(line({ method: 'tools/list', ms: 0.4, apiKey: 'ci', outcome: 'ok' }), '22:47:09 tools/list ok 0 ms ci\n')
  const prompt = { method: 'prompts/get', upstream: 'files', prompt: 'greet', ms: 2, user: 'ada', outcome: 'ok' }
  t.equal(line(prompt), '22:47:09 prompts/get files__greet ok 2 ms ada\n')
  const resource = { method: 'resources/read', upstream: 'files', resource: 'note://{id}', ms: 2, user: 'ada' }
  t.equal(line({ ...resource, outcome: 'ok' }), '22:47:09 resources/read files note://{id} ok 2 ms ada\n')
  const failed = { outcome: 'rpc_error', code: -32050, error: 'no such\nfile' }
  t.equal(line({ ...read, ...failed }), '22:47:09 files__read rpc_error -32050 36 ms alice: no such\\u{a}file\n')
})

t.test('a call that fails by a fault of the gateway is one short line, with the stack below; no field paints', (t) => {
  const call = { tenant: 'acme', tool: 'read', upstream: 'files', ms: 35.6, user: 'ada', address: '10.0.0.1' }
  const fault = {
    outcome: 'internal',
    error: 'x is undefined',
    err: { message: 'x is undefined', stack: 'Error: x\n  at \u001b[31mf' }
  }
  const text = textLine(JSON.stringify({ level: 50, time: 0, ...call, ...fault, msg: 'call' }), false)
  t.equal(text.slice(9), 'ERROR files__read internal 36 ms ada: x is undefined\n    Error: x\n      at \\u{1b}[31mf\n')
  const painted = { ...call, level: '\u001b[1m', outcome: 'rpc_error', code: '\u001b[2m', '\u001b[3m': 1, time: 0 }
  for (const msg of ['call', 'something']) {
    const line = textLine(JSON.stringify({ ...painted, msg }), false)
    t.notMatch(line, '\u001b')
    t.match(line, '\\u{1b}[2m', 'the control')
  }
  t.end()
})

t.test('a refusal is one short line: what came, with what it was refused, from where', async (t) => {
  const time = new Date(2026, 0, 2, 22, 47, 9).getTime()
  const line = (fields: object, level = 30) =>
    textLine(JSON.stringify({ level, time, msg: 'refused', method: 'POST', path: '/t/x/mcp', ...fields }), false)
  const from = { ms: 0.6, address: '127.0.0.1' }
  const unknown = {
    status: 401,
    reason: 'unauthenticated',
    cause: { reason: 'no_token' },
    error: 'Send a key. Or not.'
  }
  t.equal(line({ ...unknown, ...from }), '22:47:09 POST /t/x/mcp 401 no_token 1 ms 127.0.0.1\n')
  const host = { status: 403, reason: 'forbidden_host', error: 'Not known. Set hosts.', host: 'evil\u001b.example' }
  t.equal(line({ ...host, ...from }), '22:47:09 POST /t/x/mcp 403 forbidden_host 1 ms 127.0.0.1: evil\\u{1b}.example\n')
  const away = { status: 503, reason: 'unavailable', error: 'The store is away. Retry.', user: 'ada' }
  t.equal(
    line({ ...away, ...from }, 50),
    '22:47:09 POST /t/x/mcp 503 unavailable 1 ms ada 127.0.0.1: The store is away.\n'
  )
  const unread = { method: undefined, path: undefined, status: 431, reason: 'headers_too_large', address: '::1' }
  t.equal(line(unread), '22:47:09 431 headers_too_large ::1\n')
})

t.test('an upstream that has come is one short line', async (t) => {
  const time = new Date(2026, 0, 2, 22, 47, 9).getTime()
  const fields = { upstream: 'slow', tenant: 'demo', tools: 13, seconds: 13 }
  const line = textLine(JSON.stringify({ level: 30, time, msg: 'upstream is ready', ...fields }), false)
  t.equal(line, '22:47:09 slow is ready: 13 tools, 13 s (demo)\n')
})

t.test('only the stack of an error stands below its line', async (t) => {
  const json = JSON.stringify({
    level: 50,
    time: 0,
    msg: 'fault',
    err: { message: 'm', stack: 'Error: m\n    at f\u001b' }
  })
  t.match(textLine(json, false), /ERROR fault err=\{"message":"m"\}\n {4}Error: m\n {8}at f\\u\{1b\}\n$/)
})

t.test('faults of a configuration stand below its line, each by itself', async (t) => {
  const problems = [
    {
      path: 'tenants.x.upstreams.up.comand',
      line: 8,
      message: 'is not a known key',
      suggestion: 'Did you mean "command"?'
    },
    { path: '', message: 'is odd\u001b' }
  ]
  const line = (fields: object) =>
    textLine(JSON.stringify({ level: 50, time: 0, msg: 'refused whole', ...fields }), false).slice(9)
  t.equal(
    line({ file: 'gatehouse.yaml', problems }),
    'ERROR refused whole\n' +
      '    gatehouse.yaml line 8, tenants.x.upstreams.up.comand: is not a known key. Did you mean "command"?\n' +
      '    gatehouse.yaml: is odd\\u{1b}.\n'
  )
  t.match(
    line({ tenant: 'x', problems }),
    /^ERROR refused whole tenant=x\n {4}tenants.x.upstreams.up.comand \(line 8\): /
  )
  t.match(line({ problems: ['other'], file: 'f' }), 'refused whole problems=["other"] file=f\n')
})

t.test('colours are written only where they are wanted', async (t) => {
  const json = JSON.stringify({ level: 40, time: 0, msg: 'm', a: 1 })
  t.match(textLine(json, true), '\u001b[33mWARN \u001b[39m')
  t.equal(stripVTControlCharacters(textLine(json, true)), textLine(json, false))
})

t.test('no line of the gateway has a field whose value is never shown', async (t) => {
  const folder = join(import.meta.dirname, '../../src')
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
  const lines = files.flatMap(
    (name) => readFileSync(join(folder, name), 'utf8').match(/\blog\.\w+\(\s*\{[^}]*\}/g) ?? []
  )
  t.ok(lines.length > 50)
  const hidden = lines.filter((line) => /[{,]\s*(?:authorization|token|key|secret|password)\s*[,:}]/.test(line))
  t.same(hidden, [], 'what it is about could not be read')
})
