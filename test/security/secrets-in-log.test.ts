// Attack: the log is read by whoever should not, or shown at a terminal. At level `trace` none of a hundred secrets is
// in it, whichever way each came: credentials of callers, administrators and upstreams, arguments, results, what is
// asked and answered, ids of sessions. Names that others choose stay inside their line, and command no terminal.

import { randomBytes } from 'node:crypto'
import t from 'tap'
import { adminCall, adminKeys, adminSection } from '../kit/admin.ts'
import { legacyClient, send } from '../kit/client.ts'
import { openEvents } from '../kit/events.ts'
import { configOf } from '../kit/gateway.ts'
import { httpSseClient } from '../kit/http-sse-client.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { startModern } from '../kit/modern-server.ts'
import { serve } from '../kit/process.ts'
import { isServerRequest, post, type Json } from '../kit/server-request.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'

const secrets = new Map<string, string>()
function secret(what: string): string {
  const made = `canary${randomBytes(12).toString('hex')}`
  secrets.set(made, what)
  return made
}
/** That the gateway made. */
const kept = (what: string, value: unknown): void => void secrets.set(String(value), what)

const isGood = (what: string, { status, text }: { status: number; text: string }): void => {
  if (status >= 300 || text.includes('"error"')) throw new Error(`${what}: ${status} ${text}`)
}

t.test('none of a hundred secrets is in the log at level trace', async (t) => {
  const key = `gh_${secret('API key')}`
  const old = await startUpstream()
  const modern = await startModern()
  t.teardown(() => Promise.all([old.close(), modern.close()]))
  const script = new URL('../kit/stdio-server.ts', import.meta.url).pathname
  const config = configOf({
    auth: { keys: [{ name: 'ada', key }] },
    upstreams: {
      old: { type: 'http', url: old.url, headers: { 'X-Api-Key': secret('header of an upstream') } },
      modern: { type: 'http', url: `${modern.url}?code=${secret('query of an upstream')}` },
      local: { command: process.execPath, args: [script], env: { TOKEN: secret('variable of a process') } }
    },
    top: { admin: adminSection, logLevel: 'trace' }
  })
  const gateway = await serve(t, config)
  const { adminUrl } = await gateway.logged('it listens', ({ msg }) => msg === 'listening')
  const url = `${gateway.url}/t/acme/mcp`
  const ping = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })

  for (const [what, headers, query = ''] of [
    ['wrong key', { authorization: `Bearer gh_${secret('a wrong key')}` }],
    ['another scheme', { authorization: `Basic ${secret('a password')}` }],
    ['JWT', { authorization: `Bearer eyJhbGciOiJFUzI1NiJ9.${secret('claims')}.${secret('a signature')}` }],
    ['key of an administrator', { authorization: `Bearer gha_${secret('an admin key').padEnd(43, 'x')}` }],
    ['in the URL', {}, `?access_token=${secret('a token in a URL')}&key=${secret('a key in a URL')}`],
    ['cookie', { cookie: `session=${secret('a cookie')}` }],
    ['another header', { 'x-api-key': secret('a key in another header') }],
    ['proxy', { 'proxy-authorization': `Bearer ${secret('a token for a proxy')}` }],
    ['proof', { authorization: `DPoP ${secret('a bound token')}`, dpop: `a.${secret('a proof')}.b` }]
  ] as ReadonlyArray<readonly [string, Record<string, string>, string?]>) {
    const { status } = await send(url + query, {
      headers: { 'content-type': 'application/json', ...headers },
      body: ping
    })
    t.equal(status, 401, what)
  }

  // Each kind of server, from each kind of client: what they send and what servers say.
  const session = await legacyClient(url, key, '2025-11-25', { elicitation: {} })
  kept('id of a session', session.headers['mcp-session-id'])
  const sse = await httpSseClient(url, key)
  kept('id of a session of HTTP+SSE', new URL(sse.messagesUrl).searchParams.get('sessionId') ?? sse.messagesUrl)
  const clients: Record<string, (method: string, params: Json) => Promise<{ status: number; text: string }>> = {
    legacy: (method, params) => session.request(method, params),
    modern: (method, params) => modernRequest(url, method, params, { token: key }),
    sse: async (method, params) => ({ status: 200, text: JSON.stringify(await sse.request(method, params)) })
  }
  for (const [client, request] of Object.entries(clients))
    for (const upstream of ['old', 'modern', 'local']) {
      const of = `${client} to ${upstream}`
      const echo = { name: `${upstream}__echo`, arguments: { deep: [{ password: secret(`an argument, ${of}`) }] } }
      isGood(of, await request('tools/call', { ...echo, _meta: { progressToken: secret(`a progress token, ${of}`) } }))
      // What a server says is wrong is in the line of its call (docs/logging.md); what it adds is not.
      const failing = { message: 'it is wrong', data: { why: secret(`data of an error, ${of}`) } }
      t.match((await request('tools/call', { name: `${upstream}__rpcerror`, arguments: failing })).text, /"error"/, of)
      const prompt = { name: `${upstream}__greet`, arguments: { who: secret(`an argument of a prompt, ${of}`) } }
      isGood(of, await request('prompts/get', prompt))
      const uri = `gatehouse://${upstream}/test://item/${secret(`a part of a URI, ${of}`)}`
      await request('resources/read', { uri })
      const argument = { name: 'who', value: secret(`what is completed, ${of}`) }
      await request('completion/complete', { ref: { type: 'ref/prompt', name: `${upstream}__greet` }, argument })
      await request('tools/call', { name: `${upstream}__echo`, arguments: secret(`no arguments, ${of}`) })
      await request('tools/list', { cursor: secret(`a cursor, ${of}`) })
    }
  const asking = { name: 'old__elicit', arguments: {} }
  const stream = await openEvents(url, {
    method: 'POST',
    headers: session.headers,
    body: JSON.stringify({ jsonrpc: '2.0', id: 'asks', method: 'tools/call', params: asking })
  })
  const asked = (await stream.next('a question', isServerRequest)) as Json
  const content = { name: secret('an answer of a person') }
  await post(url, session, { id: asked['id'], result: { action: 'accept', content } })
  await stream.ended
  t.match(stream.text(), content.name)
  const needs = { name: 'modern__ask', arguments: { a: secret('an argument of a call that asks') } }
  const meant = { token: key, capabilities: { elicitation: { form: {} } } }
  const first = await modernRequest(url, 'tools/call', needs, meant)
  const { requestState, inputRequests } = first.json.result
  kept('the state of a request', requestState)
  const responses = Object.keys(inputRequests as object).map((name) => [
    name,
    { action: 'accept', content: { name: secret('an answer of 2026-07-28') } }
  ])
  const retry = { ...needs, requestState, inputResponses: Object.fromEntries(responses) }
  isGood('retry', await modernRequest(url, 'tools/call', retry, meant))
  // What cannot be read.
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  await send(url, { headers, body: `{"jsonrpc":"2.0","id":1,"params":"${secret('broken JSON')}` })
  await send(url, { headers: { ...headers, 'mcp-session-id': secret('an unknown session') }, body: ping })
  await send(url, { method: 'GET', headers: { ...headers, 'last-event-id': secret('an unknown event') } })

  const admin = String(adminUrl)
  kept('key of an administrator', adminKeys.platform)
  const made = { auth: { keys: [{ name: 'k', key: `gh_${secret('a key that is made')}` }] }, upstreams: {} }
  t.equal((await adminCall(admin, 'PUT', '/v1/tenants/initech', { body: made })).status, 201)
  const upstream = { url: old.url, headers: { Authorization: `Bearer ${secret('a header that is made')}` } }
  t.equal((await adminCall(admin, 'PUT', '/v1/tenants/initech/upstreams/up', { body: upstream })).status, 201)
  const newKey = await adminCall(admin, 'POST', '/v1/tenants/initech/keys', { body: { name: 'ci' } })
  kept('a key that the gateway made', (newKey.json as { key: string }).key)
  const wrong = { auth: { keys: [{ name: 'k', key: secret('a refused key'), more: secret('an unknown member') }] } }
  t.equal((await adminCall(admin, 'PUT', '/v1/tenants/hooli', { body: wrong })).status, 422)
  await adminCall(admin, 'GET', `/v1/limits?key=${secret('an admin key in a URL')}`, { key: null })

  sse.close()
  await session.end()
  await gateway.stop()
  t.ok(secrets.size >= 100, `${secrets.size} secrets`)
  const log = gateway.stderr.join('\n')
  t.same(
    [...secrets].filter(([value]) => log.includes(value)).map(([, what]) => what),
    []
  )
  // Otherwise it would show nothing.
  const lines = gateway.log()
  t.ok(
    lines.some(({ level }) => Number(level) < 30),
    'what is said at debug and trace is there'
  )
  t.ok(lines.filter(({ outcome }) => outcome === 'ok').length > 30)
  t.ok(log.split('unauthenticated').length > 5, 'refusals are there')
  t.match(log, 'it is wrong')
  t.match(log, '"tool":"echo"')
})

t.test('names that others choose stay inside their line, without a character that a terminal obeys', async (t) => {
  const names = [
    'a\n{"level":60,"msg":"forged"}',
    'b\u001b[2J',
    'c\u009b2J',
    'd\u202egnp',
    'e\u2066x',
    'f\u{e0041}',
    'g\u2028h'
  ]
  const tool = (name: string) => ({ name, description: name, inputSchema: { type: 'object' } })
  const script = JSON.stringify({ name: `server ${names.join()}`, tools: ['echo', ...names].map(tool) })
  const stdio = {
    command: process.execPath,
    args: [new URL('../kit/stdio-server.ts', import.meta.url).pathname, script]
  }
  const key = 'gh_key_of_names_0123456789'
  const gateway = await serve(t, configOf({ auth: { keys: [{ name: 'ada', key }] }, upstreams: { up: stdio } }))
  const client = await legacyClient(`${gateway.url}/t/acme/mcp`, key)
  for (const name of names) {
    await client.request('tools/call', { name: `up__${name}`, arguments: {} })
    await client.request('tools/call', { name, arguments: {} })
  }
  await until(
    'the calls are logged',
    () => gateway.log().filter(({ msg }) => msg === 'call').length >= names.length * 2
  )
  await gateway.stop()
  t.same(
    gateway.stderr.filter((line) => /[^\P{C}]|[\p{Zl}\p{Zp}]/u.test(line)),
    []
  )
  t.equal(gateway.log().length, gateway.stderr.length, 'each line is JSON')
  t.notOk(gateway.log().some(({ msg }) => msg === 'forged'))
  for (const name of names)
    t.ok(
      gateway.log().some((line) => JSON.stringify(line).includes(JSON.stringify(name).slice(1, -1))),
      `the name can be read: ${encodeURIComponent(name)}`
    )
})
