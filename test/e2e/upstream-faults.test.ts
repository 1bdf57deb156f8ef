// Upstreams that are down, late, crash, forget, break off, flood or refuse: the endpoint goes on, the caller is told,
// and nothing is executed twice.

import t, { type Test } from 'tap'
import { createServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { jsonHeaders, legacyClient, send, type Answer, type LegacyClient } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { gateway, key } from '../kit/gateway.ts'
import {
  isCall,
  isMethod,
  startUpstream,
  type HttpUpstream,
  type HttpUpstreamOptions,
  type Seen
} from '../kit/upstream.ts'
import { until } from '../kit/until.ts'

const stdioServer = (script: object = {}) => ({
  command: process.execPath,
  args: [new URL('../kit/stdio-server.ts', import.meta.url).pathname, JSON.stringify(script)]
})

async function upstream(t: Test, options: HttpUpstreamOptions = {}): Promise<HttpUpstream> {
  const started = await startUpstream(options)
  t.teardown(() => started.close())
  return started
}

const call = (client: LegacyClient, name: string, args: object = {}): Promise<Answer> =>
  client.request('tools/call', { name, arguments: args })
const toolsOf = async (client: LegacyClient): Promise<string[]> =>
  (await client.request('tools/list')).json.result.tools.map(({ name }: { name: string }) => name)
const textOf = ({ json }: Answer): string => json.result.content[0].text
/** How often the upstream was asked to execute a tool, answered by it or not. */
const sentTo = ({ seen }: HttpUpstream, tool: string): number => seen.filter(isCall(tool)).length

t.test('upstreams that are down', async (t) => {
  const good = await upstream(t)
  const port = await freePort()
  const silent = createServer((socket) => {
    t.teardown(() => socket.destroy())
  }).listen(0, '127.0.0.1')
  t.teardown(() => silent.close())
  await once(silent, 'listening')
  const coldStartMs = 700
  const acme = await gateway(t, {
    upstreams: {
      missing: { command: 'no-such-command-of-anybody' },
      dying: stdioServer({ die: 3 }),
      refused: { url: `http://127.0.0.1:${port}/mcp` },
      hanging: { url: `http://127.0.0.1:${(silent.address() as AddressInfo).port}/mcp`, connectMs: 60_000 },
      good: { url: good.url }
    },
    limits: { coldStartMs }
  })

  const began = performance.now()
  const client = await legacyClient(acme.url(), key)
  t.ok(performance.now() - began < coldStartMs + 30_000, 'initialize does not wait for them')
  const names = await until('the others are listed', async () => {
    const listed = await toolsOf(client)
    return listed.length > 0 ? listed : undefined
  })
  t.ok(
    names.every((name) => name.startsWith('good__')),
    'and no more'
  )
  t.match(
    (await call(client, 'good__echo', { a: 1 })).json.result.structuredContent,
    { arguments: { a: 1 } },
    'and can be called'
  )
  const again = performance.now()
  await toolsOf(await legacyClient(acme.url(), key))
  t.ok(performance.now() - again < coldStartMs + 30_000, 'nor does the next client')
  const { error } = (await call(client, 'missing__echo')).json
  t.match(error, { code: -32603, data: { reason: 'upstream_unavailable' } }, 'what it would have is not known')
  for (const name of ['missing', 'dying', 'refused'])
    await until(`${name} is reported`, () =>
      acme.log.some(({ msg, upstream }) => String(msg).startsWith('cannot connect') && upstream === name)
    )
})

t.test('the tools of an upstream that is late appear, and clients that listen are told', async (t) => {
  const good = await upstream(t)
  const late = await upstream(t)
  const waiting: Array<() => void> = []
  late.override(isMethod('initialize'), (response, { message }) => {
    waiting.push(() => {
      late.sessions.add('late')
      const result = {
        protocolVersion: '2025-11-25',
        capabilities: { tools: {} },
        serverInfo: { name: 'late', version: '1' }
      }
      response
        .writeHead(200, { 'Content-Type': 'application/json', 'Mcp-Session-Id': 'late' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result }))
    })
  })
  const acme = await gateway(t, {
    upstreams: { good: { url: good.url }, late: { url: late.url } },
    limits: { coldStartMs: 300 }
  })
  const client = await legacyClient(acme.url(), key)
  const stream = await client.listen()
  await until('the other one is listed', async () => (await toolsOf(client)).includes('good__echo'))
  t.notOk((await toolsOf(client)).includes('late__echo'))
  await until('the late one is asked', () => waiting.length === 1)
  const told = (): number =>
    stream.messages.filter(({ method }) => method === 'notifications/tools/list_changed').length
  // That the other one is there may have been told, too.
  const before = told()
  for (const answer of waiting) answer()
  await until('the client is told', () => told() > before)
  await until('its tools are listed', async () => (await toolsOf(client)).includes('late__echo'))
  stream.close()
  t.match((await call(client, 'late__echo', { a: 1 })).json.result.structuredContent, { arguments: { a: 1 } })
})

t.test('a stdio upstream that crashes: its calls end, it is started again, other sessions do not notice', async (t) => {
  const acme = await gateway(t, { upstreams: { local: stdioServer() }, limits: { coldStartMs: 20_000 } })
  const [one, other] = await Promise.all([legacyClient(acme.url(), key), legacyClient(acme.url(), key)])
  const [pid, otherPid] = [textOf(await call(one, 'local__pid')), textOf(await call(other, 'local__pid'))]
  t.not(pid, otherPid, 'each session has a process of its own')

  const othersCall = call(other, 'local__slow')
  const [slow, crash] = await Promise.all([call(one, 'local__slow'), call(one, 'local__crash')])
  for (const { status, json } of [slow, crash]) {
    t.equal(status, 200)
    t.match(json.error, {
      code: -32603,
      message: /unknown/,
      data: { reason: 'upstream_lost', outcome: 'unknown', upstream: 'local' }
    })
  }
  // Right after its start a process that ends is given a moment before it is started again.
  const next = await until('the process to be started again', async () => {
    const answer = await call(one, 'local__pid')
    return answer.json.error?.data.reason === 'upstream_unavailable' ? undefined : textOf(answer)
  })
  t.not(next, pid, 'the next call has a new process')
  t.equal(textOf(await call(other, 'local__release')), 'released')
  t.equal(textOf(await othersCall), 'slow is done', 'the call of the other session was in flight all the time')
  t.equal(textOf(await call(other, 'local__pid')), otherPid)
})

t.test(
  'an HTTP upstream that forgets its session: a new one is made, and the tool is executed exactly once',
  async (t) => {
    const web = await upstream(t)
    const acme = await gateway(t, { upstreams: { web: { url: web.url } } })
    const client = await legacyClient(acme.url(), key)
    t.match((await call(client, 'web__echo', { n: 0 })).json.result.structuredContent, { arguments: { n: 0 } })
    const handshakes = web.seen.filter(isMethod('initialize')).length

    web.sessions.clear()
    const answers = await Promise.all([1, 2, 3, 4, 5].map((n) => call(client, 'web__echo', { n })))
    t.same(
      answers.map(({ json }) => json.result.structuredContent.arguments.n),
      [1, 2, 3, 4, 5],
      'each call has its own answer'
    )
    t.equal(web.server.calls('echo'), 6, 'each was executed once')
    t.equal(web.seen.filter(isMethod('initialize')).length, handshakes + 1, 'one new session serves them all')
  }
)

t.test(
  'an upstream that is cut off in the middle: the tool is not called again, and the outcome is said to be unknown',
  async (t) => {
    const web = await upstream(t)
    const acme = await gateway(t, { upstreams: { web: { url: web.url } } })
    const client = await legacyClient(acme.url(), key)
    const cuts: Record<string, (response: ServerResponse) => void> = {
      'before its answer': (response) => response.socket?.destroy(),
      'within a JSON answer': (response) => {
        response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': 1_000 })
        response.write('{"jsonrpc":"2.0",', () => response.socket?.destroy())
      },
      'within a stream': (response) => {
        response.writeHead(200, { 'Content-Type': 'text/event-stream' })
        response.write(
          'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"half"}}\n\ndata: {"json',
          () => response.socket?.destroy()
        )
      },
      'by the end of a stream without an answer': (response) => {
        response.writeHead(200, { 'Content-Type': 'text/event-stream' }).end(': nothing\n\n')
      }
    }
    for (const [how, cut] of Object.entries(cuts)) {
      const before = sentTo(web, 'echo')
      web.override(isCall('echo'), cut)
      t.match(
        (await call(client, 'web__echo')).json.error,
        { code: -32603, message: /not sent again/, data: { reason: 'upstream_lost', outcome: 'unknown' } },
        how
      )
      t.match(
        (await call(client, 'web__echo', { how })).json.result.structuredContent.arguments,
        { how },
        'the next call works'
      )
      t.equal(sentTo(web, 'echo'), before + 2, `${how}: it was sent once`)
    }
  }
)

t.test('answers above the limit are refused, those below pass, and the connection goes on', async (t) => {
  const maxMessageBytes = 65_536
  const json = await upstream(t)
  const sse = await upstream(t, { answers: 'sse' })
  const acme = await gateway(t, {
    upstreams: {
      json: { url: json.url, maxMessageBytes },
      sse: { url: sse.url, maxMessageBytes },
      stdio: { ...stdioServer(), maxMessageBytes }
    },
    limits: { coldStartMs: 20_000 }
  })
  const client = await legacyClient(acme.url(), key)
  for (const name of ['json', 'sse', 'stdio']) {
    t.equal(textOf(await call(client, `${name}__big`, { bytes: 60_000 })).length, 60_000, `${name}: below the limit`)
    t.match(
      (await call(client, `${name}__big`, { bytes: 5_000_000 })).json.error,
      {
        code: -32603,
        message: /larger than (its limit of )?65536 bytes/,
        data: { reason: 'upstream_protocol', outcome: 'unknown' }
      },
      `${name}: above`
    )
    t.match(
      (await call(client, `${name}__echo`, { name })).json.result.structuredContent.arguments,
      { name },
      `${name}: the next call`
    )
  }
  t.equal(json.server.calls('big'), 2, 'nothing was sent again')
  t.equal(sse.server.calls('big'), 2)
})

t.test('what an upstream refuses is not refused in our name: its 401 is not ours', async (t) => {
  const web = await upstream(t)
  const acme = await gateway(t, { upstreams: { web: { url: web.url } } })
  const client = await legacyClient(acme.url(), key)
  const refuse =
    (status: number) =>
    (response: ServerResponse, { message }: Seen): void => {
      response.writeHead(status, {
        'Content-Type': 'application/json',
        'WWW-Authenticate': 'Bearer resource_metadata="http://evil.example"',
        'Set-Cookie': 'a=b',
        'Mcp-Session-Id': 'theirs',
        Location: 'http://evil.example'
      })
      // The server's own error for a bad request would be passed on; of what says nothing, the status is explained.
      response.end(
        status < 400
          ? ''
          : JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], error: { code: -32001, message: 'no' } })
      )
    }
  for (const [status, reason] of [
    [401, 'upstream_unavailable'],
    [403, 'upstream_unavailable'],
    [500, 'upstream_unavailable'],
    [503, 'upstream_unavailable'],
    [307, 'upstream_protocol']
  ] as const) {
    const before = sentTo(web, 'echo')
    web.override(isCall('echo'), refuse(status))
    const answer = await call(client, 'web__echo')
    t.equal(answer.status, 200, `${status} of an upstream is an error of this call alone`)
    t.match(answer.json.error, { code: -32603, data: { reason, status, upstream: 'web' } })
    for (const header of ['www-authenticate', 'set-cookie', 'mcp-session-id', 'location'])
      t.notOk(answer.headers[header], `${status}: none of its ${header}`)
    t.equal(sentTo(web, 'echo'), before + 1, 'it was sent once')
  }
  const ours = await send(acme.url(), {
    headers: { ...jsonHeaders, authorization: 'Bearer gh_wrong_key_0123456789' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
  })
  t.equal(ours.status, 401, 'our own 401 is one')
  t.match(ours.headers['www-authenticate'], /^Bearer .*realm="API key"/)
})

t.test('an upstream that refuses its very handshake with 401 is left out, and the endpoint works', async (t) => {
  const good = await upstream(t)
  const locked = await upstream(t)
  locked.override(
    () => true,
    (response) => {
      response.writeHead(401, { 'WWW-Authenticate': 'Bearer' }).end()
    },
    Infinity
  )
  const acme = await gateway(t, { upstreams: { good: { url: good.url }, locked: { url: locked.url } } })
  const client = await legacyClient(acme.url(), key)
  t.equal(client.initialized.status, 200)
  t.ok((await toolsOf(client)).every((name) => name.startsWith('good__')))
  t.equal(textOf(await call(client, 'good__grow')), 'grown')
})

t.test('a call whose server sends progress without end ends after maxTimeoutMs, and is cancelled there', async (t) => {
  const web = await upstream(t)
  const acme = await gateway(t, {
    upstreams: { web: { url: web.url, maxTimeoutMs: 1_500 }, other: { url: web.url } }
  })
  const client = await legacyClient(acme.url(), key)
  const _meta = { progressToken: 1 }
  const endless = (name: string): Promise<Answer> =>
    client.request('tools/call', { name, arguments: { endless: true }, _meta })
  const usual = endless('other__slow')
  t.match((await endless('web__slow')).json.error, {
    code: -32603,
    message: 'did not answer within 1.5 s (maxTimeoutMs)',
    data: { reason: 'upstream_timeout', outcome: 'unknown' }
  })
  await until('the cancellation at the upstream', () => web.seen.some(isMethod('notifications/cancelled')))
  t.equal(sentTo(web, 'slow'), 2)
  t.match((await call(client, 'web__echo', { a: 1 })).json.result.structuredContent.arguments, { a: 1 })
  t.equal(web.seen.filter(isMethod('notifications/cancelled')).length, 1, 'the usual time is longer')
  await client.end()
  await usual
})

t.test(
  'an upstream that says nothing for timeoutMs: the call ends, the upstream is told, the next one works',
  async (t) => {
    const web = await upstream(t)
    const acme = await gateway(t, { upstreams: { web: { url: web.url, timeoutMs: 1_500 } } })
    const client = await legacyClient(acme.url(), key)
    t.match((await call(client, 'web__slow')).json.error, {
      code: -32603,
      data: { reason: 'upstream_timeout', outcome: 'unknown' }
    })
    await until('the cancellation at the upstream', () => web.seen.some(isMethod('notifications/cancelled')))
    t.equal(sentTo(web, 'slow'), 1)
    // A machine that stands still for so long makes another one late.
    const next = await until('the next one works', async () => (await call(client, 'web__echo', { a: 1 })).json.result)
    t.match(next.structuredContent.arguments, { a: 1 })
  }
)
