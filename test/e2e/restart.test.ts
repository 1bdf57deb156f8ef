// Sessions outlive the process that made them, as real processes show: the same port again, another process on the same
// Redis.

import t, { type Test } from 'tap'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { legacyClient, send } from '../kit/client.ts'
import { issuer } from '../kit/issuer.ts'
import { isMethod } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'
import { storeOf } from './kit/stores-and-sdks.ts'
import { freePort } from '../kit/free-port.ts'
import { gatehouse } from './kit/process.ts'
import { memoryOverStdio } from './kit/real-servers.ts'
import { scripted } from './kit/scripted.ts'
import { sdk13, sdk32, connectSdk } from './kit/sdk.ts'

const key = 'a-key-of-this-very-test'
const strangersKey = 'the-key-of-somebody-else'
const { upstreams, plain } = await scripted(t)

/** @returns the path of a configuration file */
async function configured(t: Test, store: string, more: { auth?: object; top?: object } = {}): Promise<string> {
  const folder = t.testdir()
  const file = join(folder, 'gatehouse.json')
  await writeFile(
    file,
    JSON.stringify({
      store,
      ...more.top,
      limits: { coldStartMs: 30_000 },
      tenants: {
        acme: {
          auth: more.auth ?? {
            keys: [
              { name: 'host', key },
              { name: 'stranger', key: strangersKey }
            ]
          },
          upstreams: { plain: upstreams['plain'], memory: memoryOverStdio(folder) }
        }
      }
    })
  )
  return file
}

for (const kind of ['file:', 'redis:'] as const) {
  t.test(`a session of before a restart works after it, with ${kind}`, async (t) => {
    const config = await configured(t, await storeOf(t, kind))
    const port = await freePort()
    const start = () => gatehouse(t, ['serve', '--config', config, '--port', String(port)])
    const first = start()
    const url = `${await first.ready}/t/acme/mcp`
    const [host, old, raw, over] = await Promise.all([
      connectSdk(t, sdk32, url, key),
      connectSdk(t, sdk13, url, key),
      legacyClient(url, key),
      legacyClient(url, key)
    ])
    const id = host.transport.sessionId
    const tools = await host.client.listTools()
    const entity = { name: 'Grace', entityType: 'person', observations: ['found a bug'] }
    await host.client.callTool({ name: 'memory__create_entities', arguments: { entities: [entity] } })
    await raw.request('logging/setLevel', { level: 'warning' })
    const mark = { name: 'plain__echo', arguments: { mark: `of ${kind}` } }
    await raw.request('tools/call', mark)
    await over.end()
    t.same(await first.stop(), { code: 0, signal: null })
    await t.rejects(fetch(url), 'nobody answers meanwhile')

    const second = start()
    t.equal(`${await second.ready}/t/acme/mcp`, url)
    await t.test('for both SDKs, which notice nothing', async (t) => {
      t.same(await host.client.listTools(), tools)
      t.match(await host.client.callTool({ name: 'memory__open_nodes', arguments: { names: ['Grace'] } }), {
        structuredContent: { entities: [entity] }
      })
      t.equal(host.transport.sessionId, id)
      t.match(await old.client.callTool({ name: 'plain__echo', arguments: { n: 1 } }), {
        structuredContent: { arguments: { n: 1 } }
      })
    })
    await t.test('in the session at the server over HTTP that it had', async (t) => {
      await raw.request('tools/call', mark)
      const marked = plain.seen.filter(({ message }) => JSON.stringify(message?.['params'])?.includes(`of ${kind}`))
      t.equal(marked.length, 2)
      t.equal(new Set(marked.map(({ headers }) => headers['mcp-session-id'])).size, 1)
    })
    await t.test('with the log level that was set', async (t) => {
      const quiet = await raw.request('tools/call', { name: 'plain__log' })
      t.equal(quiet.messages.length, 1, 'a line of level info is not told')
      await raw.request('logging/setLevel', { level: 'info' })
      t.equal(
        (await raw.request('tools/call', { name: 'plain__log' })).messages.length,
        2,
        'and told where it is wanted'
      )
    })
    await t.test('for nobody else, and not if it had ended', async (t) => {
      const foreign = await send(url, {
        headers: { ...raw.headers, authorization: `Bearer ${strangersKey}` },
        body: '{"jsonrpc":"2.0","id":1,"method":"ping"}'
      })
      t.equal(foreign.status, 404)
      t.equal((await over.request('ping')).status, 404)
      t.equal((await raw.request('ping')).status, 200)
    })
    t.same(await second.stop(), { code: 0, signal: null })
  })
}

t.test('with memory: a restart ends all sessions, and clients are told to begin anew', async (t) => {
  const config = await configured(t, 'memory:')
  const port = await freePort()
  const start = () => gatehouse(t, ['serve', '--config', config, '--port', String(port)])
  const first = start()
  const url = `${await first.ready}/t/acme/mcp`
  const raw = await legacyClient(url, key)
  t.equal((await raw.request('ping')).status, 200)
  await first.stop()
  const second = start()
  await second.ready
  const answer = await raw.request('ping')
  t.match([answer.status, answer.json.error.data], [404, { reason: 'session_unknown' }])
  t.equal((await (await legacyClient(url, key)).request('ping')).status, 200)
})

t.test('a session made at one process works at another on the same Redis', async (t) => {
  const provider = await issuer(t)
  const config = await configured(t, await storeOf(t, 'redis:'), {
    auth: { issuers: [{ issuer: provider.url }] },
    top: { publicUrl: 'https://mcp.example.com' }
  })
  const start = () => gatehouse(t, ['serve', '--config', config, '--port', '0'])
  const [here, there] = [start(), start()]
  const [one, two] = [`${await here.ready}/t/acme/mcp`, `${await there.ready}/t/acme/mcp`]
  const token = await provider.token({ resource: 'https://mcp.example.com/t/acme/mcp' })
  const raw = await legacyClient(one, token)
  let id = 0
  const at = (url: string, method: string, params?: object) =>
    send(url, { headers: raw.headers, body: JSON.stringify({ jsonrpc: '2.0', id: ++id, method, params }) })

  await t.test('calls by turns are made in one session of the upstream', async (t) => {
    const before = plain.seen.length
    for (const url of [one, two, one, two]) {
      t.match((await at(url, 'tools/call', { name: 'plain__echo', arguments: { url } })).json, {
        result: { structuredContent: { arguments: { url } } }
      })
    }
    const calls = plain.seen.slice(before).filter(isMethod('tools/call'))
    t.equal(calls.length, 4)
    t.equal(new Set(calls.map(({ headers }) => headers['mcp-session-id'])).size, 1)
  })

  await t.test('a log level that was set at one is in force at the other', async (t) => {
    const lines = async () => (await at(two, 'tools/call', { name: 'plain__log' })).messages.length - 1
    t.equal(await lines(), 1)
    await at(one, 'logging/setLevel', { level: 'error' })
    await until('the other has heard of it', async () => (await lines()) === 0)
  })

  await t.test('a session that ended at one has ended at the other', async (t) => {
    t.equal((await send(one, { method: 'DELETE', headers: raw.headers })).status, 204)
    t.equal((await at(one, 'ping')).status, 404)
    await until('the other has heard of it', async () => (await at(two, 'ping')).status === 404)
  })
})
