// The admin API of the gateway as a process: with the key and the lines that the command prints, on a port of its own.

import t from 'tap'
import { createServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { parse } from 'yaml'
import { runAdminKey } from '../../src/cli/admin-key.ts'
import { configOf, key as apiKey } from '../kit/gateway.ts'
import { serve, start } from '../kit/process.ts'
import { send } from '../kit/client.ts'
import { until } from '../kit/until.ts'

function madeKey() {
  const [out, err]: [string[], string[]] = [[], []]
  const options = { name: 'ops', role: 'platform-admin' }
  runAdminKey(options, { write: (text) => out.push(text) }, { write: (text) => err.push(text) })
  const text = err.join('')
  const { admin } = parse(text.slice(text.indexOf('admin:'))) as { admin: object }
  return { key: out.join('').trim(), admin }
}

t.test('the key that the command prints opens the admin API, and nothing of the key is logged', async (t) => {
  const { key, admin } = madeKey()
  const config = configOf({ upstreams: {}, top: { admin: { ...admin, listen: { port: 0 } } } })
  const gateway = await serve(t, config)
  const { adminUrl } = await until('the admin API is named in the log', () =>
    gateway.log().find((line) => line['adminUrl'] !== undefined)
  )
  const tenants = (bearer: string) =>
    send(`${String(adminUrl)}/v1/tenants`, { method: 'GET', headers: { authorization: `Bearer ${bearer}` } })
  t.match((await tenants(key)).json, { items: [{ id: 'acme' }] })
  t.equal((await tenants(apiKey)).status, 401)
  const elsewhere = { method: 'GET', headers: { authorization: `Bearer ${key}` } }
  t.equal((await send(`${gateway.url}/v1/tenants`, elsewhere)).status, 404, 'the port of MCP clients does not have it')
  t.notOk(JSON.stringify(gateway.log()).includes(key))
})

t.test('a port of the admin API that is in use is named with its key in the configuration', async (t) => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => other.close())
  const { port } = other.address() as AddressInfo
  const config = configOf({ upstreams: {}, top: { admin: { ...madeKey().admin, listen: { port } } } })
  const gateway = await start(t, config)
  await t.rejects(gateway.ready, { message: new RegExp(`127\\.0\\.0\\.1:${port} is in use.*admin\\.listen\\.port`) })
})
