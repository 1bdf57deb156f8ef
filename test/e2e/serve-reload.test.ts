// A running gateway takes a changed configuration without losing a session, and refuses a broken one.

import t from 'tap'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { legacyClient, send } from '../kit/client.ts'
import { until } from '../kit/until.ts'
import { gatehouse } from './kit/process.ts'
import { everythingOverStdio } from './kit/real-servers.ts'
import { scripted } from './kit/scripted.ts'
import { sdk32, connectSdk } from './kit/sdk.ts'

const folder = t.testdir()
const file = join(folder, 'gatehouse.json')
const keyFile = join(folder, 'key.txt')
const oldKey = 'the-key-of-before-the-rotation'
const newKey = 'the-key-of-after-the-rotation'

const { upstreams } = await scripted(t)
/** In one step: half a file would be refused. */
async function configure(more: Record<string, unknown> = {}): Promise<void> {
  const next = `${file}.next`
  await writeFile(
    next,
    JSON.stringify({
      store: 'memory:',
      limits: { coldStartMs: 30_000 },
      tenants: {
        acme: {
          auth: { keys: [{ name: 'host', key: '${file:key.txt}' }] },
          upstreams: { plain: upstreams['plain'], local: upstreams['local'], ...more }
        }
      }
    })
  )
  await rename(next, file)
}

await Promise.all([configure(), writeFile(keyFile, oldKey)])
const gateway = gatehouse(t, ['serve', '--config', file, '--port', '0'])
const url = `${await gateway.ready}/t/acme/mcp`
const host = await connectSdk(t, sdk32, url, oldKey)
const raw = await legacyClient(url, oldKey)
const stream = await raw.listen()
t.teardown(() => stream.close())

const toolNames = async (): Promise<string[]> => (await host.client.listTools()).tools.map(({ name }) => name)
const pid = async (): Promise<unknown> =>
  (await raw.request('tools/call', { name: 'local__pid' })).json.result.content[0].text
const toolsChanged = () => {
  const already = stream.messages.length
  return stream.next(
    (message) => stream.messages.indexOf(message) >= already && message.method === 'notifications/tools/list_changed'
  )
}
const taken = (): number => gateway.stderr.filter((line) => line.includes('"configuration taken"')).length
const pidAtFirst = await pid()

t.test('an upstream that is added appears in sessions of before, which are told', async (t) => {
  t.notOk((await toolNames()).includes('added__echo'))
  const [told, heard] = [
    toolsChanged(),
    host.next('the list of tools changed', ({ method }) => method === 'notifications/tools/list_changed')
  ]
  await configure({ added: everythingOverStdio })
  await Promise.all([told, heard])
  await until('its tools are listed', async () => (await toolNames()).includes('added__echo'))
  t.match(await host.client.callTool({ name: 'added__echo', arguments: { message: 'new' } }), {
    content: [{ text: 'Echo: new' }]
  })
  t.match(await host.client.callTool({ name: 'plain__echo', arguments: {} }), { structuredContent: {} })
})

t.test('the processes of what did not change go on', async (t) => {
  t.equal(await pid(), pidAtFirst)
})

t.test('an upstream that is removed disappears from them', async (t) => {
  const told = toolsChanged()
  await configure()
  await told
  await until('its tools are gone', async () => !(await toolNames()).includes('added__echo'))
  await t.rejects(host.client.callTool({ name: 'added__echo', arguments: { message: 'gone' } }), {
    code: -32602,
    message: /Unknown tool/
  })
  t.match(await host.client.callTool({ name: 'plain__echo', arguments: {} }), { structuredContent: {} })
})

t.test('a broken file is refused with the reason in the log, and what was in force stays so', async (t) => {
  const before = taken()
  await configure({ broken: { comand: 'node' } })
  const line = await gateway.logged('the refusal', ({ msg }) => String(msg).includes('refused'))
  t.equal(line['level'], 50)
  t.match(JSON.stringify(line['problems']), 'tenants.acme.upstreams.broken')
  t.match(await host.client.callTool({ name: 'plain__echo', arguments: {} }), { structuredContent: {} })
  t.equal(await pid(), pidAtFirst)
  t.equal((await raw.request('ping')).status, 200)
  t.equal(taken(), before)
})

t.test('once it is repaired it is taken', async (t) => {
  const told = toolsChanged()
  await configure({ repaired: everythingOverStdio })
  await told
  await until('its tools are listed', async () => (await toolNames()).includes('repaired__echo'))
  t.equal(await pid(), pidAtFirst)
})

const askWith = (key: string, method: string, params: object = {}) =>
  send(url, {
    headers: { ...raw.headers, authorization: `Bearer ${key}` },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
  })
const ping = (key: string) => askWith(key, 'ping')

t.test('a key file that is written again is taken by itself: the rotated key keeps its sessions', async (t) => {
  t.same([(await ping(oldKey)).status, (await ping(newKey)).status], [200, 401])
  await writeFile(keyFile, newKey)
  await until('the new key is taken', async () => (await ping(newKey)).status === 200)
  t.equal((await ping(oldKey)).status, 401)
  const { json } = await askWith(newKey, 'tools/call', { name: 'local__pid' })
  t.equal(json.result.content[0].text, pidAtFirst)
})

t.test('SIGHUP reads the file again, and what is in use already is not taken for a change', async (t) => {
  const readAgain = 'it is the one in use'
  const count = (): number => gateway.stderr.filter((line) => line.includes(readAgain)).length
  const hangUp = async (): Promise<void> => {
    const already = count()
    gateway.signal('SIGHUP')
    await until('it is read again', () => count() > already)
  }
  // The line of the key that was rotated comes before this one.
  await hangUp()
  const before = taken()
  await hangUp()
  t.equal(taken(), before)
  await configure({ changed: everythingOverStdio })
  gateway.signal('SIGHUP')
  await until('it is taken', () => taken() > before)
  await hangUp()
  // The watch has seen that change by the time that it sees this one.
  await configure()
  await until('the next one is taken', () => taken() > before + 1)
  await hangUp()
  t.equal(taken(), before + 2)
})

t.test('after all this it ends as ever', async (t) => {
  t.same(await gateway.stop(), { code: 0, signal: null })
})
