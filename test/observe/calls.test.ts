// Each request leaves one line, which says who asked for what, how it ended and what it took, and never an argument.

import type { ServerResponse } from 'node:http'
import { Client, ResourceNotFoundError, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import t from 'tap'
import { acmeGateway, initializeBody, keyOf } from '../kit/acme-gateway.ts'
import { jsonHeaders, legacyClient, send } from '../kit/client.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { isCall } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'

const canary = 'canary-of-an-argument'

t.test('every way in which a call ends stands in its line, in both eras', async (t) => {
  const acme = await acmeGateway(t, {
    policy: {
      default: 'allow',
      rules: [{ name: 'no-env', effect: 'deny', what: { names: ['env'] } }]
    }
  })
  const client = await legacyClient(acme.url(), await acme.bearer('JWT'))
  const legacy = (name: string, args: object = {}) =>
    client.request('tools/call', { name, arguments: { ...args, canary }, _meta: { progressToken: 1 } })
  const modern = (name: string, args: object = {}) =>
    modernRequest(acme.url(), 'tools/call', { name, arguments: { ...args, canary } }, { token: keyOf.bob })
  const cases = [
    ['echo', {}, { outcome: 'ok', upstream: 'up', tool: 'echo' }],
    ['fail', {}, { outcome: 'tool_error', tool: 'fail' }],
    ['rpcerror', { code: 7 }, { outcome: 'rpc_error', code: 7, error: 'refused by the tool' }],
    ['env', {}, { outcome: 'denied', code: -32602, rule: 'no-env', upstream: 'up', tool: 'env' }],
    ['nobody-has-it', {}, { outcome: 'invalid_params', rule: undefined, error: 'Unknown tool: nobody-has-it' }]
  ] as const
  const who = {
    legacy: { user: 'ada', client: 'app-of-ada', revision: '2025-11-25', session: /^[\w-]{8}$/ },
    modern: { apiKey: 'bob', client: 'bob', revision: '2026-07-28', session: undefined }
  }
  for (const [era, call] of Object.entries({ legacy, modern })) {
    for (const [name, args, expected] of cases) {
      const before = acme.log.length
      const answer = await call(name, args)
      const lines = acme.log.slice(before).filter(({ msg }) => msg === 'call')
      const requestId = answer.headers['x-request-id']
      t.equal(lines.length, 1, `${era} ${name}: one line`)
      const common = { requestId, tenant: 'acme', endpoint: 'default', method: 'tools/call', address: '127.0.0.1' }
      t.match(lines[0], { level: 30, ...common, ...who[era as keyof typeof who], ...expected }, `${era} ${name}`)
      t.match(lines[0], { ms: Number, bytesIn: Number, software: /^\S+ 1$/ })
      const { error } = answer.json
      if (error !== undefined) {
        t.equal(error.data.requestId, requestId)
        t.equal(lines[0]?.['bytesOut'], Buffer.byteLength(JSON.stringify(answer.json)), 'as it was sent')
      }
      if (name === 'echo') {
        t.match(lines[0], { waitMs: Number, upstreamMs: Number })
        if (era === 'modern') t.equal(lines[0]?.['bytesOut'], Buffer.byteLength(answer.text))
      }
    }
  }
  t.notMatch(JSON.stringify(acme.log), new RegExp(canary))
})

t.test('the request id stands beside what an upstream says of its error, where there is room for it', async (t) => {
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada)
  const uri = 'file:///gone'
  for (const [code, data, shown] of [
    [7, { own: true }, (requestId: unknown) => ({ own: true, requestId })],
    [7, { requestId: 'of the upstream' }, () => ({ requestId: 'of the upstream' })],
    [7, 'in words', () => 'in words'],
    [7, ['a', 'list'], () => ['a', 'list']],
    [-32602, { argument: 'a' }, () => ({ argument: 'a' })],
    [-32602, { uri }, () => ({ uri })],
    [-32002, { uri }, () => ({ uri })]
  ] as const)
    for (const era of ['legacy', 'modern'] as const) {
      const params = { name: 'rpcerror', arguments: { code, data } }
      const answer = await (era === 'legacy'
        ? client.request('tools/call', params)
        : modernRequest(acme.url(), 'tools/call', params, { token: keyOf.bob }))
      const requestId = answer.headers['x-request-id']
      t.match(requestId, /^[\w-]+$/)
      t.same(answer.json.error.data, shown(requestId), `${era} ${code} ${JSON.stringify(data)}`)
    }
  acme.upstream.override(isCall('rpcerror'), (response, { message }) => {
    const error = { code: -32602, message: 'bare' }
    response.setHeader('Content-Type', 'application/json')
    response.end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], error }))
  })
  const bare = await client.request('tools/call', { name: 'rpcerror', arguments: {} })
  t.same(bare.json.error.data, { requestId: bare.headers['x-request-id'] })
})

t.test('the official client knows a resource that is not there, also by an error of the gateway', async (t) => {
  // What a rule hides is as unknown as what nobody has.
  const rules = [{ name: 'no-secrets', effect: 'deny', what: { names: ['nobody:*'] } }]
  const acme = await acmeGateway(t, { policy: { default: 'allow', rules } })
  const client = new Client({ name: 'official', version: '2' }, { versionNegotiation: { mode: 'auto' } })
  const requestInit = { headers: { Authorization: `Bearer ${keyOf.ada}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(acme.url()), { requestInit }))
  t.teardown(() => client.close())
  const error = await client.readResource({ uri: 'nobody://has/it' }).catch((thrown: unknown) => thrown)
  t.ok(error instanceof ResourceNotFoundError, String(error))
  t.equal((error as ResourceNotFoundError).uri, 'nobody://has/it')
  const other = await client.callTool({ name: 'nobody-has-it', arguments: {} }).catch((thrown: unknown) => thrown)
  t.notOk(other instanceof ResourceNotFoundError, 'the control')
  t.match(other, { code: -32602, data: { requestId: String } })
})

t.test('prompts and resources are named in their lines, and no URI that its caller made up', async (t) => {
  const script = {
    resources: [{ uri: 'https://user:hidden@docs.example/one?sig=hidden#hidden', name: 'one' }],
    templates: [{ uriTemplate: 'note://{box}/{?hidden}', name: 'notes' }]
  }
  const acme = await acmeGateway(t, { script })
  const upTo = { '': 'default', up__: 'files' }
  for (const [prefix, endpoint] of Object.entries(upTo)) {
    const url = acme.url(endpoint)
    const client = await legacyClient(url, keyOf.ada)
    const clients = {
      legacy: (method: string, params: Record<string, unknown>) => client.request(method, params),
      modern: (method: string, params: Record<string, unknown>) =>
        modernRequest(url, method, params, { token: keyOf.ada })
    }
    for (const [era, request] of Object.entries(clients))
      for (const [method, params, expected] of [
        ['prompts/get', { name: `${prefix}greet`, arguments: { who: canary } }, { prompt: 'greet' }],
        ['resources/read', { uri: script.resources[0]?.uri }, { resource: 'https://docs.example/one' }],
        ['resources/read', { uri: `note://${canary}/?hidden=1` }, { resource: 'note://{box}/{?hidden}' }],
        ['resources/read', { uri: `secret://${canary}` }, { resource: 'secret:…' }],
        [
          'completion/complete',
          { ref: { type: 'ref/prompt', name: `${prefix}greet` }, argument: { name: 'who', value: canary } },
          { prompt: 'greet', resource: undefined }
        ],
        [
          'completion/complete',
          {
            ref: { type: 'ref/resource', uri: 'note://{box}/{?hidden}' },
            argument: { name: 'box', value: canary }
          },
          { resource: 'note://{box}/{?hidden}' }
        ]
      ] as const) {
        const before = acme.log.length
        t.match((await request(method, params)).json, { result: {} }, JSON.stringify(params))
        const lines = acme.log.slice(before).filter(({ msg }) => msg === 'call')
        const what = `${era} ${endpoint} ${JSON.stringify(params)}`
        t.match(lines, [{ method, upstream: 'up', outcome: 'ok', tool: undefined, ...expected }], what)
      }
  }
  t.notMatch(JSON.stringify(acme.log), new RegExp(`${canary}|hidden@|sig=|#hidden`))
})

t.test('a call that was sent again, or whose answer was taken up again, says so in its line', async (t) => {
  const acme = await acmeGateway(t)
  const { upstream } = acme
  const client = await legacyClient(acme.url(), keyOf.ada)
  const line = async (name: string) => {
    t.match((await client.request('tools/call', { name, arguments: {} })).json, { result: {} })
    return acme.log.findLast((each) => each['msg'] === 'call')
  }
  t.match(await line('echo'), { tool: 'echo', attempts: undefined, again: undefined, resumed: undefined })
  upstream.sessions.clear()
  t.match(await line('echo'), { tool: 'echo', outcome: 'ok', attempts: 2, again: 'session', resumed: undefined })
  const sse = { 'content-type': 'text/event-stream' }
  upstream.override(isCall('big'), (response) => {
    response.writeHead(200, sse).end('id: s1\nretry: 1\ndata:\n\n')
  })
  upstream.override(
    ({ method, headers }) => method === 'GET' && headers['last-event-id'] === 's1',
    (response) => {
      const id = upstream.seen.findLast(isCall('big'))?.message?.['id']
      const answer = JSON.stringify({ jsonrpc: '2.0', id, result: { content: [] } })
      response.writeHead(200, sse).end(`id: s2\ndata: ${answer}\n\n`)
    }
  )
  t.match(await line('big'), { tool: 'big', outcome: 'ok', attempts: undefined, resumed: 1 })
})

t.test('initialize, what a call said meanwhile, and a cancelled call have their lines', async (t) => {
  const acme = await acmeGateway(t)
  const line = (fields: object) =>
    until(JSON.stringify(fields), () =>
      acme.log.find(
        (each) => each['msg'] === 'call' && Object.entries(fields).every(([key, value]) => each[key] === value)
      )
    )
  const client = await legacyClient(acme.url(), keyOf.ada)
  t.match(await line({ method: 'initialize' }), { outcome: 'ok', apiKey: 'ada', revision: '2025-11-25' })
  await client.request('tools/call', { name: 'progress', arguments: { steps: 4 }, _meta: { progressToken: 'p' } })
  t.match(await line({ tool: 'progress' }), { outcome: 'ok', notifications: 4 })

  const slow = client.request('tools/call', { name: 'slow', arguments: {} }, { id: 'slow' })
  await until('the call is at the upstream', () => acme.upstream.server.calls('slow') === 1)
  await client.notify('notifications/cancelled', { requestId: 'slow' })
  await slow
  t.match(await line({ tool: 'slow' }), { level: 30, outcome: 'cancelled', bytesOut: undefined })
})

t.test('a call that never came to its upstream has waited all the time', async (t) => {
  const acme = await acmeGateway(t)
  const lines = (outcome: string) => acme.log.filter((each) => each['tool'] === 'echo' && each['outcome'] === outcome)
  const first = await legacyClient(acme.url(), keyOf.ada)
  await first.request('tools/call', { name: 'echo', arguments: {} })
  const [sent] = lines('ok')
  t.ok(Number(sent?.['waitMs']) < Number(sent?.['ms']))
  const opened = Promise.withResolvers<ServerResponse>()
  acme.upstream.override(({ message }) => message?.['method'] === 'initialize', opened.resolve)
  const second = await legacyClient(acme.url(), keyOf.ada)
  const call = second.request('tools/call', { name: 'echo', arguments: {} }, { id: 'early' })
  const response = await opened.promise
  await second.notify('notifications/cancelled', { requestId: 'early' })
  await call
  const [line] = await until('its line', () => (lines('cancelled').length === 1 ? lines('cancelled') : undefined))
  t.match(line, { waitMs: Number, upstreamMs: undefined, upstream: 'up' })
  response.writeHead(500).end()
  await second.request('tools/call', { name: 'nobody-has-it', arguments: {} })
  t.equal(acme.log.findLast(({ outcome }) => outcome === 'invalid_params')?.['waitMs'], undefined, 'refused at once')
})

t.test('the length of an answer is that of its bytes, whatever it is written in', async (t) => {
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada)
  const text = 'ü€𝄞'.repeat(40)
  for (const [name, args] of [
    ['echo', { text }],
    ['rpcerror', { message: text }]
  ] as const) {
    const before = acme.log.length
    const { json } = await client.request('tools/call', { name, arguments: args })
    const sent = JSON.stringify(json)
    t.match(sent, text)
    const line = acme.log.slice(before).find(({ msg }) => msg === 'call')
    t.equal(line?.['bytesOut'], Buffer.byteLength(sent))
  }
})

t.test(
  'a request that is no call has its line, too: notifications, responses, streams, the end of a session',
  async (t) => {
    const acme = await acmeGateway(t)
    const line = (fields: object) =>
      until(JSON.stringify(fields), () =>
        acme.log.find((each) =>
          Object.entries({ msg: 'request', ...fields }).every(([key, value]) => each[key] === value)
        )
      )
    const client = await legacyClient(acme.url(), keyOf.ada)
    const common = { level: 30, apiKey: 'ada', client: 'ada', tenant: 'acme', endpoint: 'default', path: '/t/acme/mcp' }
    const session = acme.log.findLast(({ method }) => method === 'initialize')?.['session']
    const initialized = await line({ message: 'notifications/initialized' })
    t.match(initialized, { ...common, method: 'POST', status: 202, session, ms: Number, address: '127.0.0.1' })
    const stream = await client.listen()
    stream.close()
    t.match(await line({ method: 'GET' }), { ...common, status: 200, session, replayed: undefined })
    const ended = await client.end()
    t.equal(ended.status, 204)
    const removed = await line({ method: 'DELETE' })
    t.match(removed, { ...common, status: 204, session, requestId: ended.headers['x-request-id'] })
    t.equal(acme.log.filter(({ msg }) => msg === 'request').length, 3)
  }
)

t.test('what asks for no credential has its line: preflights, metadata, pages', async (t) => {
  const personal = { type: 'userSecret', header: 'X-Key' }
  const acme = await acmeGateway(t, {
    upstreams: { notes: { type: 'http', url: 'https://notes.example/mcp', auth: personal } },
    endpoints: { default: { upstreams: ['notes'] } },
    top: { vault: { keys: [{ id: '1', key: Buffer.alloc(32, 7).toString('base64') }] } }
  })
  const from = acme.log.length
  const common = { level: 30, msg: 'request', address: '127.0.0.1', ms: Number, requestId: /^[\w-]{36}$/ }
  const metadata = '/.well-known/oauth-protected-resource/t/acme/mcp'
  const preflight = 'Origin: https://evil.example\r\nAccess-Control-Request-Method: POST\r\n'
  for (const [method, path, headers, expected] of [
    ['OPTIONS', '/t/acme/mcp', '', { status: 204, tenant: 'acme' }],
    ['GET', metadata, '', { status: 200, tenant: 'acme' }],
    ['GET', '/', '', { status: 200, tenant: undefined }],
    ['GET', '/t/acme/connections', '', { status: 200, tenant: 'acme' }],
    // Refused: one line, too, with the reason.
    ['OPTIONS', '/t/acme/mcp', preflight, { msg: 'refused', status: 403, reason: 'forbidden_origin' }],
    ['GET', '/.well-known/nothing', '', { msg: 'refused', status: 404, reason: 'not_found' }],
    ['POST', metadata, '', { msg: 'refused', status: 405, reason: 'method_not_allowed' }]
  ] as const) {
    const before = acme.log.length
    const host = new URL(acme.url()).host
    const bytes = `${method} ${path}?code=${canary} HTTP/1.1\r\nHost: ${host}\r\n${headers}Connection: close\r\n\r\n`
    const answer = await acme.exchange(bytes)
    t.equal(answer.status, expected.status)
    await until('its line', () => acme.log.length > before)
    t.match(acme.log.slice(before), [{ ...common, method, path, ...expected }], `${method} ${path}`)
    t.equal(acme.log.length, before + 1)
  }
  const probed = acme.log.length
  t.equal((await fetch(new URL('/health/live', acme.url()))).status, 200)
  t.equal((await fetch(new URL('/', acme.url()))).status, 200)
  await until('a line after the probe', () => acme.log.length > probed)
  t.match(acme.log.slice(probed), [{ path: '/' }], 'probes have none')
  t.notMatch(JSON.stringify(acme.log.slice(from)), new RegExp(canary))
})

t.test('a call can be cancelled from its first moment, also while its arguments are read for its record', async (t) => {
  const acme = await acmeGateway(t, { top: { audit: {} } })
  const { headers } = await legacyClient(acme.url(), keyOf.ada, '2025-03-26')
  const params = { name: 'slow', arguments: { text: 'x'.repeat(2_000_000) } }
  const batch = [
    { jsonrpc: '2.0', id: 'long', method: 'tools/call', params },
    { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'long' } }
  ]
  // `slow` never answers by itself: the batch is answered only where the cancellation found the call.
  await send(acme.url(), { headers: { ...jsonHeaders, ...headers }, body: JSON.stringify(batch) })
  const lines = () => acme.log.filter(({ msg, method }) => msg === 'call' && method === 'tools/call')
  await until('its line', () => lines().length > 0)
  t.match(lines(), [{ outcome: 'cancelled' }])
  t.equal(acme.upstream.server.calls('slow'), 0)
})

t.test('a name that looks like lines of a log stands inside its line', async (t) => {
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada)
  const name = 'nope\n{"level":60}'
  await client.request('tools/call', { name, arguments: {} })
  const line = acme.log.findLast(({ msg }) => msg === 'call')
  t.match(line, { level: 30, outcome: 'invalid_params', error: `Unknown tool: ${name}` })
})

t.test('a refused request leaves one line, with its real path and the name that was refused', async (t) => {
  const acme = await acmeGateway(t)
  const secret = 'token-in-a-query'
  const usual = acme.post(initializeBody())
  for (const [bytes, expected] of [
    [
      usual.replace(keyOf.ada, 'wrong'),
      { reason: 'unauthenticated', status: 401, cause: { reason: 'unknown_key' }, ms: Number, tenant: 'acme' }
    ],
    [usual.replace(/Host: [^\r]+/, 'Host: evil.example'), { reason: 'forbidden_host', host: 'evil.example' }],
    [
      acme.post(initializeBody(), 'Origin: https://evil.example\r\n'),
      { reason: 'forbidden_origin', origin: 'https://evil.example' }
    ],
    [acme.post(initializeBody(), '', '/t/acme/nowhere/mcp'), { reason: 'not_found', path: '/t/acme/nowhere/mcp' }],
    [acme.post('{}', 'Mcp-Session-Id: nobody\r\n', `/t/acme/mcp?access_token=${secret}`), { path: '/t/acme/mcp' }],
    [acme.post('no JSON'), { reason: 'parse_error', status: 400, ms: Number, apiKey: 'ada', client: 'ada' }]
  ] as const) {
    const before = acme.log.length
    const answer = await acme.exchange(bytes)
    const lines = acme.log.slice(before).filter(({ level }) => Number(level) >= 30)
    t.equal(lines.length, 1, JSON.stringify(lines))
    const requestId = /x-request-id: (\S+)/i.exec(answer.text)?.[1]
    t.match(lines[0], { level: 30, msg: 'refused', method: 'POST', address: '127.0.0.1', requestId, ...expected })
    t.match(answer.text, `"requestId":"${requestId}"`)
  }
  t.notMatch(JSON.stringify(acme.log), new RegExp(secret))
})

t.test('what cannot be read as a request leaves its line, and its answer has the id', async (t) => {
  const acme = await acmeGateway(t)
  for (const [bytes, status, reason] of [
    [acme.post('{}', `X-Long: ${'x'.repeat(33_000)}\r\n`), 431, 'headers_too_large'],
    ['NO REQUEST\r\n\r\n', 400, 'invalid_request']
  ] as const) {
    const before = acme.log.length
    const answer = await acme.exchange(bytes)
    t.equal(answer.status, status)
    const requestId = /x-request-id: (\S+)/i.exec(answer.text)?.[1]
    const lines = acme.log.slice(before).filter(({ level }) => Number(level) >= 30)
    t.match(lines, [{ level: 30, msg: 'refused', reason, requestId, address: '127.0.0.1' }])
    t.equal(lines.length, 1)
    t.match(answer.text, `"requestId":"${requestId}"`)
  }
})
