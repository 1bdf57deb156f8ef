// `npm start` as a person sees it: one command, and everything that it prints works as it stands there.

import t, { type Test } from 'tap'
import { spawnSync } from 'node:child_process'
import { inspect } from './kit/inspector.ts'
import { allGone, descendants, gatehouse } from './kit/process.ts'
import { sdk32, connectSdk } from './kit/sdk.ts'
import { jsonHeaders, send } from '../kit/client.ts'
import { until } from '../kit/until.ts'

const shown = (lines: readonly string[], name: string): string =>
  lines
    .find((line) => line.startsWith(`  ${name} `))
    ?.slice(name.length + 2)
    .trim() ?? ''
const start = (t: Test, data: string) => gatehouse(t, ['quickstart', '--port', '0', '--data', data])

/** Starts it and lets a host list its tools. */
async function begin(t: Test, data: string) {
  const running = start(t, data)
  const origin = await running.ready
  await until('the banner is complete', () => running.stdout.some((line) => line.includes('"method":"initialize"')))
  const [url, key] = [shown(running.stdout, 'Endpoint'), shown(running.stdout, 'API key')]
  const { transport, client } = await connectSdk(t, sdk32, url, key)
  const { tools } = await client.listTools()
  return { running, origin, url, key, transport, client, tools }
}

const data = t.testdir()
const { running: first, origin, url, key, transport, client, tools } = await begin(t, data)

t.test('the ready line comes first, and the endpoint is below its URL', async (t) => {
  t.equal(first.stdout[0], `gatehouse listening on ${origin}`)
  t.match(origin, /^http:\/\/127\.0\.0\.1:\d+$/)
  t.equal(url, `${origin}/t/demo/mcp`)
  t.match(key, /^gh_[A-Za-z0-9_-]{43}$/)
})

t.test('a host gets its first answer after the ready line', async (t) => {
  t.match(transport.sessionId, /./)
  t.ok(tools.length > 0)
})

t.test('tools of all three upstreams are there and work', async (t) => {
  await until('all three are listed', async () => (await client.listTools()).tools.length === 35)
  t.match(await client.callTool({ name: 'everything__echo', arguments: { message: 'one' } }), {
    content: [{ text: 'Echo: one' }]
  })
  t.match(await client.callTool({ name: 'remote__echo', arguments: { message: 'two' } }), {
    content: [{ text: 'Echo: two' }]
  })
  t.match(await client.callTool({ name: 'memory__read_graph' }), { structuredContent: { entities: [] } })
})

t.test('the mcp.json snippet is all that a host needs', async (t) => {
  const text = first.stdout.join('\n')
  const {
    mcpServers: { gatehouse: server }
  } = JSON.parse(text.slice(text.indexOf('    {\n'), text.indexOf('\n    }\n') + 7)) as {
    mcpServers: { gatehouse: { type: string; url: string; headers: { Authorization: string } } }
  }
  t.equal(server.type, 'http')
  const host = await connectSdk(t, sdk32, server.url, server.headers.Authorization.replace(/^Bearer /, ''))
  t.match(await host.client.callTool({ name: 'everything__get-sum', arguments: { a: 40, b: 2 } }), {
    content: [{ text: /42/ }]
  })
})

t.test('the curl line works when pasted into a shell', async (t) => {
  const at = first.stdout.findIndex((line) => line.trimStart().startsWith('curl '))
  const line = first.stdout.slice(at, at + 2).join('\n')
  const expected = {
    jsonrpc: '2.0',
    id: 1,
    result: { protocolVersion: '2025-11-25', serverInfo: { name: 'gatehouse' } }
  }
  t.match(await sendAsCurl(line), expected, 'as curl would send it')
  const curl = spawnSync('sh', ['-c', `command -v curl >/dev/null || exit 127; ${line}`], {
    encoding: 'utf8',
    env: { ...process.env, NO_PROXY: '127.0.0.1' }
  })
  if (curl.status === 127) t.comment('no curl on this machine: its request was sent without it')
  else t.match(JSON.parse(curl.stdout), expected)
})

/** The request that the line describes, with the headers that curl adds. */
async function sendAsCurl(line: string): Promise<unknown> {
  const [, target = ''] = /curl (\S+)/.exec(line) ?? []
  const [, body = ''] = /-d '([^']*)'/.exec(line) ?? []
  const headers = Object.fromEntries(
    [...line.matchAll(/-H '([^:]+): ([^']*)'/g)].map(([, name = '', value = '']) => [name, value])
  )
  return (await send(target, { headers: { accept: '*/*', ...headers }, body })).json
}

t.test('the line for the Inspector works with the installed Inspector', async (t) => {
  const line = first.stdout.find((text) => text.includes('/inspector --cli')) ?? ''
  const [, words = ''] = /npx @modelcontextprotocol\/inspector --cli (.*)$/.exec(line) ?? []
  const args = [...words.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? '')
  const { code, stdout } = await inspect(args, t.testdir())
  t.equal(code, 0)
  t.match(stdout, '"everything__echo"')
})

t.test('without the key nobody gets in', async (t) => {
  const answer = await send(url, {
    headers: { 'content-type': 'application/json' },
    body: '{"jsonrpc":"2.0","id":1,"method":"ping"}'
  })
  t.equal(answer.status, 401)
  t.match(answer.json, { id: null, error: { message: /API key/ } })
  t.notMatch(answer.headers['www-authenticate'], 'resource_metadata=')
})

t.test('SIGTERM ends it with code 0, and no child stays behind', async (t) => {
  const children = descendants(first.pid)
  t.ok(children.length >= 3, `there were ${children.length}`)
  t.same(await first.stop(), { code: 0, signal: null })
  await allGone(children)
})

t.test('the second start shows the same key and still knows the sessions', async (t) => {
  const second = start(t, data)
  const { pathname } = new URL(url)
  const answer = await send((await second.ready) + pathname, {
    headers: { ...jsonHeaders, authorization: `Bearer ${key}`, 'mcp-session-id': transport.sessionId },
    body: '{"jsonrpc":"2.0","id":1,"method":"ping"}'
  })
  t.same([answer.status, answer.json], [200, { jsonrpc: '2.0', id: 1, result: {} }])
  t.equal(await until('the key is shown', () => shown(second.stdout, 'API key')), key)
  t.same(await second.stop(), { code: 0, signal: null })
})
