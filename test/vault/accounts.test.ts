// `auth: user`: each person connects an account of their own by OAuth, once, and each call carries its own token.

import { moveClock } from '../kit/moving-clock.ts'
import { randomBytes } from 'node:crypto'
import { decodeJwt } from 'jose'
import { Redis } from 'ioredis'
import t from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import { authorizationServer, type AuthorizationServerOptions } from '../kit/authorization-server.ts'
import { connectAccount, signedIn, submit } from '../kit/connect-page.ts'
import { legacyClient } from '../kit/client.ts'
import { configOf, gateway, type TestGateway } from '../kit/gateway.ts'
import type { Teardown } from '../kit/listen.ts'
import { protectedUpstream, repeatingHeader, repeatingLate } from '../kit/protected-upstream.ts'
import { redis } from '../kit/redis.ts'
import { until } from '../kit/until.ts'
import { isCall } from '../kit/upstream.ts'

const top = {
  vault: { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] },
  egress: { allow: ['127.0.0.0/8'] }
}
const auth = {
  keys: [
    { name: 'ada', key: keyOf.ada },
    { name: 'bob', key: keyOf.bob }
  ]
}
const withPages = { elicitation: { url: {} } }
const echo = { name: 'up__echo', arguments: { text: 'hello' } }

async function peers(t: Teardown, options: AuthorizationServerOptions = {}) {
  const server = await authorizationServer(t, { registration: true, ...options })
  return { server, upstream: await protectedUpstream(t, server) }
}

const gatewayAt = (t: Teardown, url: string, store = 'memory:'): Promise<TestGateway> =>
  gateway(t, { upstreams: { up: { type: 'http', url, auth: { type: 'user' } } }, auth, store, top })

const pageOf = (made: TestGateway): string => `${made.publicUrl}/t/acme/connections`

async function connect(made: TestGateway, key: string) {
  const { tab, page } = await signedIn(pageOf(made), key)
  return await connectAccount(tab, page)
}

const clientOf = (made: TestGateway, key: string) => legacyClient(made.url(), key, '2025-11-25', withPages)

t.test('two people connect, and each call carries the token of its own person', async (t) => {
  const { server, upstream } = await peers(t)
  const made = await gatewayAt(t, upstream.url)
  for (const person of ['ada', 'bob'] as const) {
    server.person = person
    const landing = await connect(made, keyOf[person])
    t.match(landing.html, /up is connected/)
  }
  t.equal(server.registrations, 1, 'the gateway registers itself once')
  const [ada, bob] = await Promise.all([clientOf(made, keyOf.ada), clientOf(made, keyOf.bob)])
  for (const client of [ada, bob]) t.ok((await client.request('tools/call', echo)).json.result)
  const before = upstream.seen.length
  await Promise.all(Array.from({ length: 40 }, (_, n) => (n % 2 === 0 ? ada : bob).request('tools/call', echo)))
  // Not of the streams that their connections open meanwhile.
  const calls = upstream.seen.slice(before).filter(isCall('echo'))
  const subjects = calls.map(({ headers }) => decodeJwt(String(headers.authorization).slice('Bearer '.length)).sub)
  t.equal(subjects.filter((sub) => sub === 'ada').length, 20)
  t.equal(subjects.filter((sub) => sub === 'bob').length, 20)
  t.ok(upstream.admitted.every(({ aud }) => aud === upstream.url))
  t.notOk(upstream.presented.some((text) => text.includes(keyOf.ada) || text.includes(keyOf.bob)))

  repeatingHeader(upstream)
  for (let n = 0; n < 3; n++) {
    const { text } = await ada.request('tools/call', echo)
    t.match(text, /I was shown Bearer \*\*\*/)
    t.notOk(server.issued.some(({ access }) => text.includes(access)))
  }

  const { tab, page } = await signedIn(pageOf(made), keyOf.ada)
  t.equal(server.revocations, 0)
  t.match((await submit(tab, page, 'disconnect')).html, /not connected/)
  t.equal(server.revocations, 1, 'what ada disconnects is given back to its provider')
  t.equal((await ada.request('tools/call', echo)).json.error.code, -32042)
  t.ok((await bob.request('tools/call', echo)).json.result, 'and that of bob goes on')
})

t.test('new tokens that the store does not take are used once it has them, and not lost', async (t) => {
  const { server, upstream } = await peers(t)
  const store = await redis(t)
  const made = await gatewayAt(t, upstream.url, store.url)
  await connect(made, keyOf.ada)
  const ada = await clientOf(made, keyOf.ada)
  t.ok((await ada.request('tools/call', echo)).json.result)
  const raw = new Redis(store.url)
  t.teardown(() => raw.disconnect())
  const presents = (token = ''): boolean => upstream.presented.includes(`Bearer ${token}`)
  t.ok(presents(server.issued.at(-1)?.access))
  for (const token of upstream.presented) upstream.withdrawn.add(token.replace('Bearer ', ''))
  // Of a full store every write is refused, and what is there can be read.
  server.beforeTokens = async () => void (await raw.config('SET', 'maxmemory', '1'))
  const issued = server.issued.length
  const refused = await ada.request('tools/call', echo)
  t.ok(refused.json.error, refused.text)
  t.equal(server.issued.length, issued + 1, 'the provider has given new tokens for the old ones')
  t.notOk(presents(server.issued.at(-1)?.access), 'and nobody is shown what is not in the store')

  await raw.config('SET', 'maxmemory', '0')
  const isLater = ({ code }: { code?: number } = {}): boolean => code !== undefined && code > 0
  const answer = await until('the store takes them', async () => {
    const { json } = await ada.request('tools/call', echo)
    return isLater(json.error) ? undefined : json
  })
  t.ok(answer.result, JSON.stringify(answer))
  t.equal(server.issued.length, issued + 1, 'they are the same ones')
  t.ok(presents(server.issued.at(-1)?.access))
  for (const token of upstream.presented) upstream.withdrawn.add(token.replace('Bearer ', ''))
  t.teardown(() => moveClock(0))
  moveClock(11_000)
  t.ok((await ada.request('tools/call', echo)).json.result, 'and they can be renewed')
  t.equal(server.issued.length, issued + 2)
})

t.test('an answer that repeats the token of before a renewal does not show it', async (t) => {
  const { upstream } = await peers(t)
  const made = await gatewayAt(t, upstream.url)
  await connect(made, keyOf.ada)
  const ada = await clientOf(made, keyOf.ada)
  const answer = repeatingLate(upstream)
  const held = ada.request('tools/call', echo)
  const shown = (await answer.held()).replace('Bearer ', '')
  upstream.withdrawn.add(shown)
  t.ok((await ada.request('tools/call', echo)).json.result)
  t.not(upstream.presented.at(-1), `Bearer ${shown}`, 'it was renewed meanwhile')
  answer.release()
  const { json, text } = await held
  t.equal(json.result?.content[0].text, 'I was shown Bearer ***', text)
})

t.test('an account that its provider has ended has to be connected again, and nothing loops', async (t) => {
  const { server, upstream } = await peers(t)
  const made = await gatewayAt(t, upstream.url)
  await connect(made, keyOf.ada)
  const ada = await clientOf(made, keyOf.ada)
  t.ok((await ada.request('tools/call', echo)).json.result)
  server.revoke('ada')
  const asked = server.tokenRequests.length
  for (const token of upstream.presented) upstream.withdrawn.add(token.replace('Bearer ', ''))
  const first = await ada.request('tools/call', echo)
  t.equal(first.json.error?.code, -32042, first.text)
  t.match(first.json.error.message, /connected/)
  for (let n = 0; n < 3; n++) t.equal((await ada.request('tools/call', echo)).json.error.code, -32042)
  t.ok(server.tokenRequests.length - asked <= 1, 'the provider is asked once')
  t.equal(upstream.server.calls('echo'), 1)
  t.match((await connect(made, keyOf.ada)).html, /up is connected/)
  t.ok((await ada.request('tools/call', echo)).json.result)
})

t.test('a gateway that its provider has forgotten registers itself anew for whoever connects again', async (t) => {
  const { server, upstream } = await peers(t)
  const made = await gatewayAt(t, upstream.url)
  await connect(made, keyOf.ada)
  const ada = await clientOf(made, keyOf.ada)
  t.ok((await ada.request('tools/call', echo)).json.result)
  await server.forget(server.clientIds.at(-1) ?? '')
  for (const token of upstream.presented) upstream.withdrawn.add(token.replace('Bearer ', ''))
  const first = await ada.request('tools/call', echo)
  t.equal(first.json.error?.code, -32042, first.text)
  t.match(first.json.error.message, /its provider does not know this gateway any more/)
  const why = { msg: 'a provider does not know the gateway any more', answer: 'invalid_client', upstream: 'up' }
  t.ok(made.log.some((line) => Object.entries(why).every(([member, value]) => line[member] === value)))
  t.match((await connect(made, keyOf.ada)).html, /up is connected/)
  t.equal(server.registrations, 2)
  t.ok((await ada.request('tools/call', echo)).json.result)

  // In the same way while somebody is on the way.
  server.person = 'bob'
  const { tab, page } = await signedIn(pageOf(made), keyOf.bob)
  const back = await connectAccount(tab, page, `${pageOf(made)}/callback`)
  await server.forget(server.clientIds.at(-1) ?? '')
  t.match((await tab.go(back.url.href, 'none')).html, /did not know this gateway any more/)
  t.match((await connect(made, keyOf.bob)).html, /up is connected/)
  t.equal(server.registrations, 3)
})

t.test('who connects first after a provider has forgotten the gateway meets no error page', async (t) => {
  const { server, upstream } = await peers(t)
  const made = await gatewayAt(t, upstream.url)
  await connect(made, keyOf.ada)
  const { tab, page } = await signedIn(pageOf(made), keyOf.ada)
  await submit(tab, page, 'disconnect')
  await server.forget(server.clientIds.at(-1) ?? '')
  server.person = 'bob'
  t.match((await connect(made, keyOf.bob)).html, /up is connected/)
  t.equal(server.registrations, 2)
  t.match((await connect(made, keyOf.bob)).html, /up is connected/)
  t.equal(server.registrations, 2, 'one that it knows stays')
  t.ok(made.log.some(({ msg, issuer }) => /does not know the gateway/.test(String(msg)) && issuer === server.url))
})

t.test('a permission that is missing is asked for besides those that there are', async (t) => {
  const { upstream } = await peers(t, { scopes: ['read', 'write', 'delete'] })
  const made = await gatewayAt(t, upstream.url)
  await connect(made, keyOf.ada)
  const ada = await clientOf(made, keyOf.ada)
  t.ok((await ada.request('tools/call', echo)).json.result)
  upstream.scopes = ['write']
  const refused = await ada.request('tools/call', echo)
  t.equal(refused.json.error?.code, -32042, refused.text)
  t.match(refused.json.error.message, /lacks a permission \(write\)/)
  upstream.scopes = ['delete']
  t.match((await ada.request('tools/call', echo)).json.error.message, /lacks a permission \(delete\)/)
  const { tab, page } = await signedIn(pageOf(made), keyOf.ada)
  t.match(page.html, /It lacks a permission: write, delete/)
  const away = await connectAccount(tab, page, 'none')
  t.match(away.html, /up is connected/)
  t.ok((await ada.request('tools/call', echo)).json.result)
  t.same(String(upstream.admitted.at(-1)?.['scope']).split(' ').toSorted(), ['delete', 'read', 'write'])
  // One that names others without end is not noted without end.
  for (let n = 0; n < 3; n++) {
    upstream.scopes = Array.from({ length: 20 }, (_, each) => `more-${n}-${each}`)
    t.match((await ada.request('tools/call', echo)).json.error.message, new RegExp(`more-${n}-0`))
  }
  const { html } = (await signedIn(pageOf(made), keyOf.ada)).page
  t.match(html, /more-1-11/)
  t.notMatch(html, /more-1-12|more-2/)
})

t.test('whoever comes back for somebody else, twice, or with a forged answer connects nothing', async (t) => {
  const { server, upstream } = await peers(t)
  const made = await gatewayAt(t, upstream.url)
  const callback = `${pageOf(made)}/callback`
  const ada = await signedIn(pageOf(made), keyOf.ada)
  const bob = await signedIn(pageOf(made), keyOf.bob)
  const back = await connectAccount(ada.tab, ada.page, callback)
  t.match((await bob.tab.go(back.url.href, 'none')).html, /begun by somebody else/)
  const used = await ada.tab.go(back.url.href, 'none')
  t.match(used.html, /finished already/, 'what bob tried was all that it was good for')
  const second = await connectAccount(ada.tab, ada.page, callback)
  const wrong = new URL(second.url)
  wrong.searchParams.set('iss', 'https://evil.example')
  const requests = server.tokenRequests.length
  t.match((await ada.tab.go(wrong.href, 'none')).html, /Not connected/)
  t.equal(server.tokenRequests.length, requests, 'its code is not sent anywhere')
  const logged = made.log.filter(({ msg }) => msg === 'an account could not be connected')
  t.match(logged, [{ upstream: 'up', tenant: 'acme', apiKey: 'ada', requestId: /./ }])
  const third = await connectAccount(ada.tab, ada.page, callback)
  t.match((await ada.tab.go(third.url.href, 'none')).html, /up is connected/, 'and this is how it works')
  t.match((await ada.tab.go(third.url.href, 'none')).html, /finished already/)
  server.person = undefined
  t.match((await connect(made, keyOf.bob)).html, /access_denied/)
})

t.test('whoever comes back once the upstream is another server has connected nothing', async (t) => {
  const { server, upstream } = await peers(t)
  const other = await peers(t)
  const made = await gatewayAt(t, upstream.url)
  const moveTo = (url: string) =>
    made.reload(configOf({ upstreams: { up: { type: 'http', url, auth: { type: 'user' } } }, auth, top }))
  const { tab, page } = await signedIn(pageOf(made), keyOf.ada)
  const back = await connectAccount(tab, page, `${pageOf(made)}/callback`)
  moveTo(other.upstream.url)
  const landing = await tab.go(back.url.href, 'none')
  t.match(landing.html, /Not connected[^]*up is at another place now/)
  t.equal(server.tokenRequests.length + other.server.tokenRequests.length, 0, 'the code is sent nowhere')
  const ada = await clientOf(made, keyOf.ada)
  t.equal((await ada.request('tools/call', echo)).json.error?.code, -32042)
  t.equal(other.upstream.presented.length, 0)
  t.match((await tab.go(pageOf(made), 'none')).html, /not connected/)

  moveTo(upstream.url)
  const again = await connectAccount(tab, page, `${pageOf(made)}/callback`)
  moveTo(`${upstream.url}?same=server`)
  t.match((await tab.go(again.url.href, 'none')).html, /up is connected/, 'of the same origin it is the same server')
  t.equal(server.tokenRequests.at(-1)?.get('code'), again.url.searchParams.get('code'))
})

t.test('a grant goes to the server that it was given for, and to no other of the same name', async (t) => {
  const { server, upstream } = await peers(t)
  const other = await peers(t)
  const made = await gatewayAt(t, upstream.url)
  await connect(made, keyOf.ada)
  t.ok((await (await clientOf(made, keyOf.ada)).request('tools/call', echo)).json.result)
  made.reload({
    listen: { host: '127.0.0.1', port: 0 },
    store: 'memory:',
    ...top,
    tenants: { acme: { auth, upstreams: { up: { type: 'http', url: other.upstream.url, auth: { type: 'user' } } } } }
  })
  const answer = await (await clientOf(made, keyOf.ada)).request('tools/call', echo)
  t.equal(answer.json.error?.code, -32042, answer.text)
  t.equal(other.upstream.presented.length, 0)
  // It is still there, and its person can end it.
  const { tab, page } = await signedIn(pageOf(made), keyOf.ada)
  t.match(page.html, /not in use/)
  t.match(page.html, new RegExp(`It was given for ${new URL(upstream.url).host}, or in another way`))
  t.match((await submit(tab, page, 'disconnect')).html, /not connected/)
  t.equal(server.revocations, 1)
})
