// Attack: a reload opens what a start would refuse. The rules are judged by the address in the file, but the gateway
// keeps listening on the one that it has.

import t from 'tap'
import { compileConfig } from '../../src/config/load.ts'
import {
  changedFixedSettings,
  fixedSettingsOf,
  type FixedSettings,
  withFixedSettings
} from '../../src/config/reload/fixed-settings.ts'
import { jsonHeaders, send } from '../kit/client.ts'
import { configOf, gateway, key } from '../kit/gateway.ts'
import { startUpstream } from '../kit/upstream.ts'

const initialize = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } }
})

t.test('authentication cannot be reloaded away while the gateway has a public name', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const upstreams = { one: { url: upstream.url } }
  const publicUrl = 'https://mcp.example.com'
  const acme = await gateway(t, { upstreams, top: { publicUrl } })
  const url = `${acme.listening}/t/acme/mcp`
  const call = (token?: string) =>
    send(url, {
      headers: {
        ...jsonHeaders,
        host: 'mcp.example.com',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` })
      },
      body: initialize
    })
  t.equal((await call()).status, 401)
  t.throws(() => acme.reload(configOf({ upstreams, auth: 'none' })), /auth: none.*beyond this machine/)
  t.equal((await call()).status, 401, 'the configuration before stays in use')
  t.equal((await call(key)).status, 200)
  acme.reload(configOf({ upstreams, top: { publicUrl } }))
  t.equal((await call(key)).status, 200, 'and another reload is taken')
})

t.test('on a gateway of loopback only it can', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const upstreams = { one: { url: upstream.url } }
  const acme = await gateway(t, { upstreams })
  const call = () => send(acme.url(), { headers: jsonHeaders, body: initialize })
  t.equal((await call()).status, 401)
  acme.reload(configOf({ upstreams, auth: 'none' }))
  t.equal((await call()).status, 200)
})

t.test('a worker that starts later is judged by the address that the gateway has, not by that of the file', (t) => {
  const context = { path: '/gatehouse.json', env: {} }
  const compile = (top: Record<string, unknown>, auth?: 'none') =>
    compileConfig(JSON.stringify(configOf({ upstreams: {}, top, ...(auth && { auth }) })), context)
  const started = compile({ publicUrl: 'https://mcp.example.com' })
  const fixed = JSON.parse(JSON.stringify(fixedSettingsOf(started))) as FixedSettings
  t.throws(() => withFixedSettings(compile({}, 'none'), fixed), /auth: none.*beyond this machine/)
  t.equal(withFixedSettings(compile({}), fixed).publicUrl, 'https://mcp.example.com')
  t.equal(withFixedSettings(compile({}, 'none'), fixedSettingsOf(compile({}))).tenants.size, 1)
  t.same(changedFixedSettings(started, withFixedSettings(compile({ limits: { bodyBytes: 2_048 } }), fixed)), [])
  t.end()
})
