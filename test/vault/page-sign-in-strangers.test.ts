// Strangers before the sign-in to the page of one's connections: they keep nobody out, and hold up nobody; and whom the
// provider knows and the tenant does not want stays out.

import { moveClock } from '../kit/moving-clock.ts'
import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import t, { type Test } from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import { browser } from '../kit/browser.ts'
import { linkToSignIn } from '../kit/connect-page.ts'
import { freePort } from '../kit/free-port.ts'
import { configOf, gateway } from '../kit/gateway.ts'
import { identityProvider, providerClient } from '../kit/identity-provider.ts'
import { listen } from '../kit/listen.ts'
import { until } from '../kit/until.ts'
import { loginGateway } from '../login/kit.ts'

const up = { type: 'http', url: 'http://127.0.0.1:1/mcp', auth: { type: 'userSecret', header: 'X-Api-Key' } }
const vault = { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] }

/** A tenant whose people sign in at a provider of their own. */
async function rig(t: Test, signIn: object = {}) {
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const page = `${origin}/t/acme/connections`
  const [provider, other] = [
    await identityProvider(t, `${page}/signed-in`),
    await identityProvider(t, `${page}/signed-in`)
  ]
  const optionsAt = (issuer: string) => ({
    upstreams: { up },
    auth: {
      keys: [{ name: 'ada', key: keyOf.ada }],
      issuers: [...new Set([provider.url, other.url, issuer])].map((each) => ({ issuer: each })),
      signIn: { issuer, ...providerClient, ...signIn }
    },
    // As from behind a proxy, which says where a request comes from.
    top: { listen: { host: '127.0.0.1', port }, publicUrl: origin, trustedProxies: ['127.0.0.0/8'], vault }
  })
  const made = await gateway(t, optionsAt(provider.url))
  const from = (address: string): RequestInit => ({ headers: { 'x-forwarded-for': address } })
  /** A browser that comes back from the provider next. */
  async function cameBack(person: string) {
    provider.person = person
    const tab = browser()
    const { url } = await tab.go(linkToSignIn(await tab.go(page, 'none')), `${page}/signed-in`)
    return { tab, url: url.href, enter: (address: string) => tab.go(url.href, 'none', from(address)) }
  }
  const signInAt = (issuer: string) => made.reload(configOf(optionsAt(issuer)))
  return { ...made, origin, page, provider, other, from, cameBack, signInAt }
}

t.test('a stranger stops the sign-ins of nobody', async (t) => {
  const { page, origin, provider, from, cameBack } = await rig(t)
  const ada = await cameBack('ada')
  const asked = provider.tokenRequests
  const statusesOf = async (count: number, one: () => Promise<{ readonly status: number }>) => [
    ...new Set((await Promise.all(Array.from({ length: count }, one))).map(({ status }) => status))
  ]
  const plain = `${page}/signed-in?code=made-up&state=${'x'.repeat(43)}`
  t.same(await statusesOf(150, () => fetch(plain, from('203.0.113.7'))), [400], 'without a cookie, ever again')
  t.same(await statusesOf(150, () => fetch(`${page}/sign-in`, { ...from('203.0.113.7'), redirect: 'manual' })), [303])
  const keys = { method: 'POST', body: new URLSearchParams({ action: 'sign-in', key: 'wrong' }) }
  t.same(await statusesOf(150, () => fetch(page, { ...keys, headers: { origin } })), [403])
  const good = new URLSearchParams({ action: 'sign-in', key: keyOf.ada })
  t.equal((await fetch(page, { ...keys, body: good, headers: { origin }, redirect: 'manual' })).status, 303)
  t.equal(provider.tokenRequests, asked, 'the provider heard of none of it')

  // One who begins, and comes back with codes that they have made up, each time from another address of their network.
  async function madeUp(address: string): Promise<number> {
    const { headers } = await fetch(`${page}/sign-in`, { redirect: 'manual' })
    const state = new URL(String(headers.get('location'))).searchParams.get('state')
    const cookie = String(headers.get('set-cookie')).split(';')[0] ?? ''
    const back = { headers: { 'x-forwarded-for': address, cookie }, redirect: 'manual' } as const
    return (await fetch(`${page}/signed-in?code=made-up&state=${state}`, back)).status
  }
  let address = 0
  const statuses = new Set<number>()
  const flood = (count: number) =>
    Array.from({ length: count }, async () => statuses.add(await madeUp(`2001:db8:0:7::${(address++).toString(16)}`)))
  await until('they are refused', async () => {
    await Promise.all(flood(150))
    return statuses.has(429)
  })
  const more = flood(200)
  await Promise.all(more.slice(0, 100))
  t.match((await ada.enter('2001:db8:0:8::1')).html, /You are <strong>ada@example\.com</, 'in the midst of them')
  await Promise.all(more)
  t.same(statuses, new Set([400, 429]))
})

t.test('a sign-in has the provider asked once, whatever codes come with it', async (t) => {
  const { page, provider, cameBack } = await rig(t)
  const [eve, ada] = [await cameBack('eve'), await cameBack('ada')]
  const { searchParams } = new URL(eve.url)
  const asked = provider.tokenRequests
  for (let n = 0; n < 5; n++) {
    searchParams.set('code', `made-up-${n}`)
    t.equal((await eve.tab.go(`${page}/signed-in?${String(searchParams)}`, 'none')).status, 400)
    t.equal(provider.tokenRequests, asked + 1)
  }
  t.match((await ada.enter('198.51.100.7')).html, /You are <strong>ada@example\.com</)
  t.equal(provider.tokenRequests, asked + 2)
})

t.test('a provider that hangs is asked by eight at a time; the others wait, and are let in', async (t) => {
  const { page, provider, cameBack } = await rig(t)
  const people = []
  for (const n of Array.from({ length: 12 }, (_, n) => n)) people.push(await cameBack(`person-${n}`))
  const before = provider.tokenRequests
  const { promise, resolve } = Promise.withResolvers<void>()
  provider.held = promise
  const entering = people.map(({ enter }, n) => enter(`198.51.100.${n}`))
  await until('eight are asked about', () => provider.tokenRequests - before === 8)
  t.equal((await fetch(page)).status, 200, 'the page is there meanwhile')
  t.equal(provider.tokenRequests - before, 8)
  resolve()
  for (const [n, { html }] of (await Promise.all(entering)).entries())
    t.match(html, new RegExp(`You are <strong>person-${n}@example\\.com<`))
})

t.test('while a provider is away, strangers have it asked, and told in the log, once in two seconds', async (t) => {
  t.teardown(() => moveClock(0))
  const { log, page, provider, signInAt } = await rig(t)
  let asked = 0
  const away = createServer((_request, response) => {
    asked++
    response.writeHead(503).end()
  })
  signInAt(await listen(t, away))
  const begin = async () => (await fetch(`${page}/sign-in`, { redirect: 'manual' })).status
  const told = () => log.filter(({ msg }) => msg === 'a sign-in to the page of connections failed').length
  for (let n = 0; n < 5; n++) t.equal(await begin(), 400)
  t.same([asked, told()], [2, 1], 'for its metadata by both names')
  moveClock(2_100)
  t.equal(await begin(), 400)
  t.same([asked, told()], [4, 2])
  signInAt(provider.url)
  t.equal(await begin(), 303)
})

t.test('a sign-in that was begun at one provider is finished at no other one', async (t) => {
  const { provider, other, cameBack, signInAt } = await rig(t)
  const ada = await cameBack('ada')
  signInAt(other.url)
  const refused = await ada.enter('198.51.100.7')
  t.equal(refused.status, 400)
  t.match(refused.html, /begun in another browser/)
  t.equal(other.tokenRequests, 0, 'the code goes nowhere')
  signInAt(provider.url)
  t.match((await ada.enter('198.51.100.7')).html, /You are <strong>ada@example\.com</)
})

t.test('requiredClaims keeps out whom the provider knows and the tenant does not want', async (t) => {
  const { log, provider, cameBack } = await rig(t, { requiredClaims: { groups: ['engineering', 'support'] } })
  provider.groups.set('ada', ['staff', 'engineering'])
  t.match((await (await cameBack('ada')).enter('198.51.100.7')).html, /You are <strong>ada@example\.com</)
  const refused = await (await cameBack('bob')).enter('198.51.100.7')
  t.equal(refused.status, 400)
  t.match(refused.html, /not all of its people may come in here/)
  t.ok(log.some(({ reason }) => /Its claim groups has no value of requiredClaims/.test(String(reason))))
  provider.userinfoOnly.add('groups')
  t.match((await (await cameBack('ada')).enter('198.51.100.7')).html, /You are <strong>ada@/, 'userinfo says it, too')
  t.equal((await (await cameBack('bob')).enter('198.51.100.7')).status, 400)
})

t.test('of what a browser brings to the login front nothing but its state goes along', async (t) => {
  const made = await loginGateway(t, {
    upstreams: { up },
    endpoints: { default: { upstreams: ['up'] } },
    top: { vault }
  })
  const state = randomBytes(32).toString('base64url')
  const tab = browser()
  const begun = `${made.issuer}/connections?state=${state}&more=${'x'.repeat(5_000)}`
  const back = await tab.go(begun, `${made.issuer}/callback`)
  t.match(back.url.searchParams.get('code'), /./)
  t.equal((await tab.go(back.url.href, `${made.issuer}/connections`)).url.search, `?state=${state}`)
  const odd = await browser().go(`${made.issuer}/connections?state=${state}.`, 'none')
  t.equal(odd.status, 400, 'and what is no state goes nowhere')
})
