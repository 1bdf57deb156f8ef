// Whoever has not connected an upstream sees the tools that others see, where the configuration says that they are the
// same for all, and nowhere else.

import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import { legacyClient, type Answer } from '../kit/client.ts'
import { signedIn, submit } from '../kit/connect-page.ts'
import { configOf, gateway } from '../kit/gateway.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { redis } from '../kit/redis.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'

const [open, closed] = [await startUpstream(), await startUpstream()]
for (const each of [open, closed]) t.teardown(() => each.close())
const secretAuth = { type: 'userSecret', header: 'X-Api-Key', prefix: '' }
const options = {
  upstreams: {
    open: { type: 'http', url: open.url, auth: { ...secretAuth, listing: 'shared' } },
    closed: { type: 'http', url: closed.url, auth: secretAuth }
  },
  endpoints: {
    default: { upstreams: ['open', 'closed'] },
    few: { upstreams: ['open'], deny: { tools: ['open/echo'] } }
  },
  auth: { keys: ['ada', 'bob'].map((name) => ({ name, key: keyOf[name as 'ada'] })) },
  top: { vault: { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] } }
}
// Two processes, as behind a load balancer.
const { url: store } = await redis(t)
const [made, other] = [await gateway(t, { ...options, store }), await gateway(t, { ...options, store })]
const withPages = { elicitation: { url: {} } }
const toolNames = ({ json }: Answer): string[] => json.result.tools.map(({ name }: { name: string }) => name)
const call = { name: 'open__echo', arguments: { text: 'hello' } }

async function connectAs(t: Test, who: 'ada' | 'bob', upstream: string): Promise<void> {
  const { tab, page } = await signedIn(`${made.publicUrl}/t/acme/connections?upstream=${upstream}`, keyOf[who])
  const { html } = await submit(tab, page, 'secret', { secret: `the-secret-of-${who}` })
  t.match(html, />connected</)
}

t.test('the tools of somebody else are shown, and lead to the page', async (t) => {
  const bob = await legacyClient(other.url(), keyOf.bob, '2025-11-25', withPages)
  t.same(toolNames(await bob.request('tools/list')), ['open__connect_open', 'closed__connect_closed'])
  const listening = await bob.listen()
  await connectAs(t, 'ada', 'open')
  await connectAs(t, 'ada', 'closed')
  const ada = await legacyClient(made.url(), keyOf.ada)
  const ofAda = toolNames(await ada.request('tools/list'))
  t.ok(ofAda.includes('open__echo') && ofAda.includes('closed__echo'))
  await listening.next(({ method }) => method === 'notifications/tools/list_changed')
  await until('bob sees them at the other process', async () =>
    toolNames(await bob.request('tools/list')).includes('open__echo')
  )

  const ofBob = toolNames(await bob.request('tools/list'))
  t.same(
    ofBob.filter((name) => name.startsWith('open__')),
    ['open__connect_open', ...ofAda.filter((name) => name.startsWith('open__'))]
  )
  t.same(
    ofBob.filter((name) => name.startsWith('closed__')),
    ['closed__connect_closed'],
    'nothing is shown where the configuration does not say so'
  )
  const { json } = await bob.request('tools/call', call)
  t.equal(json.error.code, -32042)
  t.match(json.error.data.elicitations[0].url, /connections\?upstream=open&for=/)
  const plain = await legacyClient(other.url(), keyOf.bob)
  const told = await plain.request('tools/call', call)
  t.equal(told.json.result.isError, true)
  t.match(
    other.log.findLast(({ msg }) => msg === 'call'),
    { outcome: 'connect_required', code: undefined, error: /wants a web page/ }
  )
  t.match(told.json.result.content[0].text, /connections\?upstream=open&for=/)
  const modern = await modernRequest(other.url(), 'tools/call', call, {
    token: keyOf.bob,
    capabilities: withPages
  } as never)
  t.equal(modern.json.result.resultType, 'input_required')
  t.equal(open.server.calls('echo'), 0, 'the server is asked nothing')

  await connectAs(t, 'bob', 'open')
  await until('bob may call it', async () => (await bob.request('tools/call', call)).json.result !== undefined)
  t.equal(open.server.calls('echo'), 1)
})

t.test('what an endpoint leaves out is not shown by others either', async (t) => {
  const cyd = await legacyClient(made.url('few'), keyOf.bob)
  const names = toolNames(await cyd.request('tools/list'))
  t.notOk(names.includes('open__echo'))
  t.ok(names.length > 1)
})

t.test('where two are told different lists, those of one are shown, and not by turns', async (t) => {
  const cydsKey = 'gh_key_of_cyd_0123456789abcdef'
  const keys = [...options.auth.keys, { name: 'cyd', key: cydsKey }]
  for (const each of [made, other]) each.reload(configOf({ ...options, auth: { keys }, store }))
  const toolsOf = async (who: string) => {
    const client = await legacyClient(other.url(), who)
    return toolNames(await client.request('tools/list')).filter((name) => name.startsWith('open__'))
  }
  const before = await toolsOf(cydsKey)
  t.ok(before.includes('open__echo'))
  let ofBob = 'first_of_bob'
  open.override(
    ({ message, headers }) => message?.['method'] === 'tools/list' && headers['x-api-key'] === 'the-secret-of-bob',
    (response, { message }) => {
      const result = { tools: [{ name: ofBob, inputSchema: { type: 'object' } }] }
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result }))
    },
    Infinity
  )
  const changed = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' }
  for (const name of ['first_of_bob', 'second_of_bob']) {
    ofBob = name
    await until('bob sees it', async () => {
      open.broadcast(changed)
      return (await toolsOf(keyOf.bob)).includes(`open__${name}`)
    })
    t.same(await toolsOf(cydsKey), before)
  }
  const ada = await legacyClient(made.url(), keyOf.ada)
  t.ok((await ada.request('tools/call', { name: 'open__grow', arguments: { name: 'new' } })).json.result)
  await until('what is new to ada is shown', async () => (await toolsOf(cydsKey)).includes('open__new'))
  t.same(new Set(await toolsOf(cydsKey)), new Set([...before, 'open__new']))
})

t.test('a reload that takes the word away hides them at once', async (t) => {
  const fresh = { ...options, auth: { keys: [{ name: 'dan', key: 'gh_key_of_dan_0123456789abcdef' }] } }
  const dan = async () => {
    const client = await legacyClient(made.url(), 'gh_key_of_dan_0123456789abcdef')
    return toolNames(await client.request('tools/list'))
  }
  made.reload(configOf({ ...fresh, store }))
  await until('dan sees what others have', async () => (await dan()).includes('open__echo'))
  const own = { ...options.upstreams.open, auth: secretAuth }
  made.reload(configOf({ ...fresh, store, upstreams: { ...options.upstreams, open: own } }))
  t.same(await dan(), ['open__connect_open', 'closed__connect_closed'])
})
