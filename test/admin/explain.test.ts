// What `explain` answers is what lists and calls do: also where the words of a server, a limit of the endpoint, the
// endpoints of a key or a kill switch decide.

import t from 'tap'
import { adminGateway } from '../kit/admin.ts'
import { legacyClient } from '../kit/client.ts'
import { isMethod, startUpstream } from '../kit/upstream.ts'

const keys = { all: 'gh_key_for_all_0123456789abc', one: 'gh_key_for_one_0123456789abc' }
const tool = (name: string, destructiveHint: boolean) => ({
  name,
  inputSchema: { type: 'object' },
  annotations: { destructiveHint }
})

t.test('explain says of a tool what its list and a call say', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const tools = [tool('echo', false), tool('erase', true), tool('pid', false)]
  upstream.override(
    isMethod('tools/list'),
    (response, { message }) => {
      response.writeHead(200, { 'Content-Type': 'application/json' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result: { tools } }))
    },
    Infinity
  )
  const made = await adminGateway(t, {
    upstreams: { up: { url: upstream.url, trustAnnotations: true } },
    endpoints: {
      default: { upstreams: ['up'], prefix: '' },
      small: { upstreams: ['up'], prefix: '', maxTools: 1, order: ['up/echo', 'up/pid'] }
    },
    auth: {
      keys: [
        { name: 'all', key: keys.all },
        { name: 'one', key: keys.one, endpoints: ['small'] }
      ]
    },
    policy: { default: 'allow', rules: [{ name: 'keep', effect: 'deny', what: { tags: ['destructive'] } }] }
  })
  const explain = async (endpoint: string, name: string, caller: object = { key: 'all' }) =>
    (await made.call('POST', `/v1/tenants/acme/endpoints/${endpoint}/explain`, { body: { name, caller } })).json
  for (const endpoint of ['default', 'small']) {
    const client = await legacyClient(made.url(endpoint), keys.all)
    const listed = (await client.request('tools/list')).json.result?.tools as Array<{ name: string }>
    for (const { name } of tools) {
      const isListed = listed.some((each) => each.name === name)
      const { json } = await client.request('tools/call', { name, arguments: {} })
      const { outcome } = (await explain(endpoint, `up/${name}`)) as { outcome: string }
      t.equal(outcome === 'allowed', isListed, `${endpoint} ${name}: ${outcome}`)
      t.equal(json.error === undefined, isListed, `${endpoint} ${name} is called as it is listed`)
    }
  }
  t.match(await explain('default', 'up/erase'), { outcome: 'denied', rules: [{ name: 'keep', applies: true }] })
  t.match(await explain('small', 'up/pid'), { outcome: 'not-offered', sentence: /its catalog is limited/ })
  t.match(await explain('default', 'up/nothing'), { outcome: 'not-offered', sentence: /list of up has no such tool/ })
  const sentence = /the API key one is not for the endpoint \/t\/acme\/mcp/
  t.match(await explain('default', 'up/echo', { key: 'one' }), { outcome: 'denied', sentence })
  t.match(await explain('small', 'up/echo', { key: 'one' }), { outcome: 'allowed' })
  t.equal((await made.call('PUT', '/v1/tenants/acme/kills/keys/one')).status, 201)
  const stopped = await explain('small', 'up/echo', { key: 'one' })
  t.match(stopped, { outcome: 'denied', sentence: /kill switch has stopped the key one/ })
})
