// What people do with URLs: they open them in a browser, and paste them with a slash at their end.

import t from 'tap'
import { legacyClient, send } from '../kit/client.ts'
import { gateway, key } from '../kit/gateway.ts'
import { startUpstream } from '../kit/upstream.ts'

t.test('/ says what this is, without naming a tenant, and runs nothing', async (t) => {
  const made = await gateway(t, { upstreams: {} })
  const answer = await fetch(`${made.publicUrl}/`)
  t.equal(answer.status, 200)
  t.match(answer.headers.get('content-type'), 'text/html')
  t.match(answer.headers.get('content-security-policy'), "default-src 'none'")
  const html = await answer.text()
  t.match(html, /This is an MCP gateway[^]*\/t\/<em>TENANT<\/em>\/mcp/)
  t.notMatch(html, 'acme')
  t.notMatch(html, '<script')
  t.equal((await send(`${made.publicUrl}/`, { method: 'POST', body: '{}' })).status, 404)
  t.equal((await send(`${made.publicUrl}/`, { method: 'GET', headers: { host: 'evil.example' } })).status, 403)
  t.equal((await send(`${made.publicUrl}/else`, { method: 'GET' })).status, 404)
})

t.test('an endpoint is the same with a slash at the end of its URL', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const made = await gateway(t, { upstreams: { up: { url: upstream.url } }, endpoints: { a: { upstreams: ['up'] } } })
  const client = await legacyClient(`${made.url('a')}/`, key)
  t.match((await client.request('tools/call', { name: 'up__echo', arguments: {} })).json, { result: {} })
  const refused = await send(`${made.url('a')}/`, { body: '{"jsonrpc":"2.0","id":1,"method":"ping"}' })
  t.equal(refused.status, 401)
})
