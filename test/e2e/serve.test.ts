// `serve` from outside: what stands on which stream, where it listens, how it ends, and what it says when it cannot
// start.

import t, { type Test } from 'tap'
import { existsSync } from 'node:fs'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { jsonHeaders, legacyClient, open } from '../kit/client.ts'
import { listen } from '../kit/listen.ts'
import { until } from '../kit/until.ts'
import { allGone, descendants, gatehouse, logLine } from './kit/process.ts'
import { everythingOverStdio, memoryOverStdio } from './kit/real-servers.ts'
import { scripted } from './kit/scripted.ts'
import { sdk32, connectSdk } from './kit/sdk.ts'

const key = 'a-key-of-this-very-test'
const { upstreams, plain } = await scripted(t)

/** @returns the path of a configuration in YAML */
async function configured(t: Test, top = ''): Promise<string> {
  const file = join(t.testdir(), 'gatehouse.yaml')
  await writeFile(
    file,
    `${top}
tenants:
  acme:
    auth:
      keys: [{ name: host, key: "\${ACME_KEY}" }]
    upstreams:
      plain: { type: http, url: "${plain.url}" }
      local: ${JSON.stringify(upstreams['local'])}
`
  )
  return file
}

const serve = (t: Test, ...args: string[]) => gatehouse(t, ['serve', ...args], { env: { ACME_KEY: key } })

t.test('standard output carries the ready line and nothing else; standard error lines of JSON', async (t) => {
  const gateway = serve(t, '--config', await configured(t, 'store: "memory:"\nlogLevel: debug'), '--port', '0')
  const url = await gateway.ready
  const client = await legacyClient(`${url}/t/acme/mcp`, key)
  t.match((await client.request('tools/call', { name: 'local__echo', arguments: { a: 1 } })).json, { result: {} })
  t.same(await gateway.stop(), { code: 0, signal: null })
  t.same(gateway.stdout, [`gatehouse listening on ${url}`])
  t.ok(gateway.stderr.length > 2)
  for (const line of gateway.stderr) t.match(logLine(line), { level: Number, time: Number, msg: String }, line)
  t.notMatch(gateway.stderr.join('\n'), key, 'no key in the log')
  t.notMatch(gateway.stderr.join('\n'), client.sessionId, 'no session id in the log')
})

t.test('--host, --port and --data win over the file', async (t) => {
  const data = join(t.testdir(), 'elsewhere')
  const config = await configured(
    t,
    'publicUrl: https://mcp.example.com\nlisten: { host: 0.0.0.0, port: 1 }\nstore: "file:./here.db"'
  )
  const gateway = serve(t, '--config', config, '--port', '0', '--host', '127.0.0.1', '--data', data)
  t.match(await gateway.ready, /^http:\/\/127\.0\.0\.1:\d{2,}$/)
  t.ok(existsSync(join(data, 'gatehouse.db')))
  t.notOk(existsSync(join(config, '..', 'here.db')))
  t.same(await gateway.stop(), { code: 0, signal: null })
})

t.test('--mcp-json serves the file of another host as it is, with a key that is kept', async (t) => {
  const folder = t.testdir()
  const file = join(folder, 'mcp.json')
  await writeFile(
    file,
    `{
  // as an editor writes it
  "mcpServers": {
    "everything": ${JSON.stringify(everythingOverStdio)},
    "My Memory": ${JSON.stringify({ type: 'stdio', ...memoryOverStdio(folder) })},
    "far": { "type": "http", "url": "${plain.url}", "headers": { "X-Api-Key": "secret of the file" } },
    "tracker": { "url": "https://tracker.example.com/mcp", "oauth": { "scopes": ["read"] } },
  }
}`
  )
  const start = () => gatehouse(t, ['serve', '--mcp-json', file, '--port', '0', '--data', join(folder, 'data')])
  const gateway = start()
  const url = `${await gateway.ready}/t/demo/mcp`
  const { apiKeyIs } = await gateway.logged('where the key is', ({ apiKeyIs }) => apiKeyIs !== undefined)
  const keptIn = String(apiKeyIs).replace(/^in /, '')
  const keptKey = async () => (await readFile(keptIn, 'utf8')).trim()
  const key = await keptKey()
  const host = await connectSdk(t, sdk32, url, key)
  const names = ['everything__echo', 'My-Memory__read_graph', 'far__echo', 'tracker__connect_tracker']
  await until('all four are listed', async () => {
    const listed = new Set((await host.client.listTools()).tools.map(({ name }) => name))
    return listed.isSupersetOf(new Set(names))
  })
  t.match(await host.client.callTool({ name: 'My-Memory__read_graph' }), { structuredContent: { entities: [] } })
  t.match(await host.client.callTool({ name: 'far__echo', arguments: { a: 1 } }), {
    structuredContent: { arguments: { a: 1 } }
  })
  const connected = await host.client.callTool({ name: 'tracker__connect_tracker' })
  t.match(JSON.stringify(connected), `${await gateway.ready}/t/demo/connections`)
  const vaultKey = await readFile(join(folder, 'data', 'vault-key'), 'utf8')
  t.equal((await stat(join(folder, 'data', 'vault-key'))).mode & 0o777, 0o600)
  t.ok(plain.seen.some(({ headers }) => headers['x-api-key'] === 'secret of the file'))
  t.same(gateway.stdout, [`gatehouse listening on ${await gateway.ready}`])
  await gateway.stop()
  const again = start()
  await again.ready
  t.equal(await keptKey(), key)
  t.equal(await readFile(join(folder, 'data', 'vault-key'), 'utf8'), vaultKey)
  t.notOk(gateway.stderr.join('\n').includes(key), 'a log is no place for a key')
})

t.test('a port in use is named, with what to do, and the exit code is 1', async (t) => {
  const { port } = new URL(await listen(t, createServer()))
  const gateway = serve(t, '--config', await configured(t, 'store: "memory:"'), '--port', port)
  t.same(await gateway.ended, { code: 1, signal: null })
  t.same(gateway.stdout, [])
  t.match(gateway.stderr.join('\n'), new RegExp(`127\\.0\\.0\\.1:${port} is in use by another program.*--port`))
})

t.test('a gateway that has the port is named as one, also where it is slow to answer', async (t) => {
  const holder = createServer((_request, response) => {
    setTimeout(() => response.end('{"status":"live"}'), 1_500)
  })
  const { port } = new URL(await listen(t, holder))
  const config = await configured(t, 'store: "memory:"')
  // A machine that stands still makes the answer later than is waited for.
  await until('it is named', async () => {
    const gateway = serve(t, '--config', config, '--port', port)
    t.same(await gateway.ended, { code: 1, signal: null })
    return gateway.stderr.join('\n').includes(`127.0.0.1:${port} is in use by another gateway`)
  })
})

t.test('a configuration with mistakes does not start; each is told with its place', async (t) => {
  const gateway = serve(t, '--config', await configured(t, 'stroe: "memory:"\nlimits: { drainMs: soon }'))
  t.same(await gateway.ended, { code: 1, signal: null })
  t.same(gateway.stdout, [])
  const said = gateway.stderr.join('\n')
  t.match(said, /stroe.*store/, 'what may have been meant')
  t.match(said, 'limits.drainMs')
})

t.test('a second signal ends it at once, in the middle of a call, and takes the children along', async (t) => {
  const gateway = serve(
    t,
    '--config',
    await configured(t, 'store: "memory:"\nlimits: { drainMs: 3600000 }'),
    '--port',
    '0'
  )
  const url = `${await gateway.ready}/t/acme/mcp`
  const client = await legacyClient(url, key)
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'local__slow', _meta: { progressToken: 1 } }
  })
  const call = await open(url, { method: 'POST', headers: { ...client.headers, ...jsonHeaders }, body })
  t.equal(call.statusCode, 200, 'the call runs')
  call.on('error', () => {}) // It is cut off below, as it must be.
  const children = descendants(gateway.pid)
  t.ok(children.length > 0)
  gateway.signal('SIGTERM')
  await gateway.logged('that it is stopping', ({ msg }) => String(msg).startsWith('stopping'))
  gateway.signal('SIGINT')
  t.same(await gateway.ended, { code: 130, signal: null })
  await allGone(children)
})
