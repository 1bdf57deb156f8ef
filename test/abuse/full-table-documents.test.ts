// Attack: no file descriptor is left at one of two replicas when a document of the admin API changes that names a file.
// Nothing but that document waits: a kill switch is taken, other documents are, and it is itself when there are some.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { adminCall, adminKeys, adminSection } from '../kit/admin.ts'
import { jsonHeaders, type Sent } from '../kit/client.ts'
import type { Served } from '../kit/process.ts'
import { replicas } from '../kit/replicas.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'
import { descriptorTable, heldConnection } from './descriptor-table.ts'

const keyNamed = (name: string): string => `gh_key_of_${name}_0123456789`
const named = (name: string) => ({ name, key: keyNamed(name) })
/** An answered connection that closes would give its descriptor back. */
const staysOpen = { connection: 'keep-alive' }
const initialize = (key: string): Sent => ({
  method: 'POST',
  headers: { ...jsonHeaders, ...staysOpen, authorization: `Bearer ${keyNamed(key)}` },
  body: JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } }
  })
})
const asPlatform = (method: string): Sent => ({
  method,
  headers: { ...staysOpen, authorization: `Bearer ${adminKeys.platform}` }
})

t.test('a document that meets no descriptor holds up no kill switch, and is read again', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const { nodes } = await replicas(t, { upstreams: {}, top: { admin: adminSection } }, [{}, {}])
  const [full, other] = nodes as [Served, Served]
  const adminOf = async (node: Served): Promise<string> =>
    String((await node.logged('the admin API', (line) => 'adminUrl' in line))['adminUrl'])
  const [fullAdmin, otherAdmin] = [await adminOf(full), await adminOf(other)]
  const file = join(t.testdir(), 'key')
  writeFileSync(file, keyNamed('file'))
  const inFile = { name: 'file', key: `\${file:${file}}` }
  const upstreams = { up: { url: upstream.url } }
  const put = async (tenant: string, keys: object[]) => {
    const options = { body: { auth: { keys }, upstreams }, headers: { 'If-Match': '*' } }
    const path = `/v1/tenants/${tenant}`
    const first = await adminCall(otherAdmin, 'PUT', path, { body: options.body })
    return first.status === 412 || first.status === 428 ? await adminCall(otherAdmin, 'PUT', path, options) : first
  }
  const statusOf = async (tenant: string, key: string): Promise<number> =>
    (await (await heldConnection(t, full.url))(`/t/${tenant}/mcp`, initialize(key))).status
  t.equal((await put('filed', [inFile])).status, 201)
  t.equal((await put('plain', [named('plain')])).status, 201)
  await until('both serve', async () =>
    [await statusOf('filed', 'file'), await statusOf('plain', 'plain')].every((status) => status === 200)
  )

  const hold = (origin: string) => heldConnection(t, origin)
  const [kill, shown] = [await hold(fullAdmin), await hold(fullAdmin)]
  const [filed, plain] = [await hold(full.url), await hold(full.url)]
  const table = descriptorTable(full.pid)
  table.fill()
  t.equal((await put('filed', [inFile, named('more')])).status, 200)
  const said = () =>
    full.log().filter(({ msg }) => String(msg).startsWith('the document of a tenant cannot be read now'))
  await until('it is told', () => said().length > 0)
  t.match(said(), [{ tenant: 'filed', problems: [{ message: /no file descriptor left/ }] }])
  t.equal((await filed('/t/filed/mcp', initialize('file'))).status, 200, 'the tenant is as it was')
  t.match(JSON.parse((await shown('/v1/tenants/filed', asPlatform('GET'))).text), {
    problems: [{ message: /cannot be read now/ }]
  })
  t.equal((await put('plain', [named('plain'), named('next')])).status, 200)
  // What it stops closes its sockets, and so gives descriptors back.
  const killed = await kill('/v1/tenants/plain/kills/upstreams/up', asPlatform('PUT'))
  t.equal(killed.status, 201, killed.text)
  await until('the other has it', async () =>
    (await adminCall(otherAdmin, 'GET', '/v1/tenants/plain/kills')).text.includes('"upstream":"up"')
  )
  t.equal((await plain('/t/plain/mcp', initialize('next'))).status, 200, 'another document is taken')

  table.empty()
  await until('it is read', async () => (await statusOf('filed', 'more')) === 200)
  t.match((await adminCall(fullAdmin, 'GET', '/v1/tenants/filed')).json, { problems: [] })
  t.equal(said().length, 1, 'the log says it once')
})
