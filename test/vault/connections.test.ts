// Each person's own secret or account at an upstream: given once on their page, used for their calls alone.

import { randomBytes } from 'node:crypto'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import { signedIn, submit } from '../kit/connect-page.ts'
import { legacyClient, send, type Answer } from '../kit/client.ts'
import { configOf, gateway, type TestGateway } from '../kit/gateway.ts'
import type { Teardown } from '../kit/listen.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { repeatingHeader } from '../kit/protected-upstream.ts'
import { isCall, startUpstream, type HttpUpstream, type Seen } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'

const vaultKeys = { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] }
const auth = {
  keys: [
    { name: 'ada', key: keyOf.ada },
    { name: 'bob', key: keyOf.bob }
  ]
}
const withPages = { elicitation: { url: {} } }
const echo = { name: 'up__echo', arguments: { text: 'hello' } }

const withKeys = ({ url }: HttpUpstream) => ({
  type: 'http',
  url,
  auth: { type: 'userSecret', header: 'X-Api-Key', prefix: 'key ' }
})

async function setup(t: Teardown, store = 'memory:'): Promise<{ upstream: HttpUpstream; made: TestGateway }> {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const made = await gateway(t, { upstreams: { up: withKeys(upstream) }, auth, store, top: { vault: vaultKeys } })
  return { upstream, made }
}

const pageOf = (made: TestGateway): string => `${made.publicUrl}/t/acme/connections`
const lastCall = ({ log }: TestGateway) => log.findLast(({ msg }) => msg === 'call')
const toolNames = ({ json }: Answer): string[] => json.result.tools.map(({ name }: { name: string }) => name)

t.test('a person enters a secret on their page, and it is used for their calls alone', async (t) => {
  const { upstream, made } = await setup(t)
  const [ada, bob] = await Promise.all([
    legacyClient(made.url(), keyOf.ada, '2025-11-25', withPages),
    legacyClient(made.url(), keyOf.bob, '2025-11-25', withPages)
  ])
  t.same(toolNames(await ada.request('tools/list')), ['up__connect_up'])
  const listening = await ada.listen()
  const { json } = await ada.request('tools/call', { name: 'up__connect_up', arguments: {} })
  t.match(json.error, { code: -32042, data: { reason: 'connect_required', requestId: String } })
  t.match(lastCall(made), { outcome: 'connect_required', code: -32042, error: json.error.message.slice(0, 100) })
  const [{ url, mode }] = json.error.data.elicitations
  t.equal(mode, 'url')
  t.ok(url.startsWith(`${pageOf(made)}?upstream=up&for=`))
  t.equal(upstream.seen.length, 0, 'the server is not asked for people who have given nothing')

  const { tab, page } = await signedIn(url, keyOf.ada)
  t.match(page.html, /not connected/)
  const after = await submit(tab, page, 'secret', { secret: 'the-secret-of-ada' })
  t.match(after.html, />connected</)
  t.notMatch(after.html, /the-secret-of-ada/)
  await listening.next(({ method }) => method === 'notifications/tools/list_changed')

  t.ok(toolNames(await ada.request('tools/list')).includes('up__echo'))
  t.ok((await ada.request('tools/call', echo)).json.result)
  t.same([...new Set(upstream.seen.map(({ headers }) => headers['x-api-key']))], ['key the-secret-of-ada'])
  t.same(toolNames(await bob.request('tools/list')), ['up__connect_up'], 'bob has given nothing')
  const refused = await bob.request('tools/call', echo)
  t.equal(refused.json.error.code, -32042, 'a tool that bob knows by name leads him to the page, too')
  t.equal(upstream.server.calls('echo'), 1)

  t.match((await submit(tab, after, 'disconnect')).html, /not connected/)
  await until('ada sees it', async () => toolNames(await ada.request('tools/list')).join() === 'up__connect_up')
  t.equal((await ada.request('tools/call', echo)).json.error.code, -32042)
  t.equal(upstream.server.calls('echo'), 1)

  // What is configured later can be connected by whom this process knows already.
  const upstreams = { up: withKeys(upstream), two: withKeys(upstream) }
  made.reload(configOf({ upstreams, auth, top: { vault: vaultKeys } }))
  const echoOfTwo = { ...echo, name: 'two__echo' }
  const unconnected = await ada.request('tools/call', echoOfTwo)
  t.equal(unconnected.json.error?.code, -32042, unconnected.text)
  const link = unconnected.json.error.data.elicitations[0].url
  t.match((await submit(tab, await tab.go(link, 'none'), 'secret', { secret: 'of two' })).html, />connected</)
  const connected = await ada.request('tools/call', echoOfTwo)
  t.ok(connected.json.result, connected.text)
  t.equal(upstream.seen.at(-1)?.headers['x-api-key'], 'key of two')
  t.ok(toolNames(await ada.request('tools/list')).includes('two__echo'))
})

t.test('a server that repeats what a person entered shows it to nobody', async (t) => {
  const { upstream, made } = await setup(t)
  const word = 'wonderland'
  // A name and a word by which nothing would be taken for a secret.
  const own = { type: 'http', url: upstream.url, auth: { type: 'userSecret', header: 'X-Place', prefix: 'in ' } }
  made.reload(configOf({ upstreams: { up: own }, auth, top: { vault: vaultKeys } }))
  const { tab, page } = await signedIn(pageOf(made), keyOf.ada)
  t.match((await submit(tab, page, 'secret', { secret: word })).html, />connected</)
  const ada = await legacyClient(made.url(), keyOf.ada)
  t.ok((await ada.request('tools/call', echo)).json.result)
  repeatingHeader(upstream, 'x-place')
  for (let n = 0; n < 3; n++) {
    const { text } = await ada.request('tools/call', echo)
    t.equal(upstream.seen.findLast(isCall('echo'))?.headers['x-place'], `in ${word}`)
    t.match(text, /I was shown (?:in )?\*\*\*/)
    t.notMatch(text, word)
  }
  t.notMatch(JSON.stringify(made.log), word)
})

t.test('clients that cannot be sent to a page get the link in words, and those of 2026-07-28 are asked', async (t) => {
  const { made } = await setup(t)
  const plain = await legacyClient(made.url(), keyOf.ada)
  const { json } = await plain.request('tools/call', { name: 'up__connect_up', arguments: {} })
  t.equal(json.result.isError, true)
  const words: string = json.result.content[0].text
  t.match(
    words,
    new RegExp(`^Upstream up wants .*:\nConnect .* first: ${pageOf(made)}\\?upstream=up&for=[\\w-]+\nVisit it`)
  )
  t.equal(words.split(pageOf(made)).length, 2, 'once')
  t.match(lastCall(made), { outcome: 'connect_required', code: undefined, error: /^Upstream up wants a web page/ })
  for (const capabilities of [{}, { elicitation: {} }, { elicitation: { form: {} } }])
    for (const name of ['up__connect_up', 'up__echo']) {
      const modern = { token: keyOf.ada, capabilities } as never
      const { status, json, text } = await modernRequest(made.url(), 'tools/call', { name, arguments: {} }, modern)
      t.match([status, json.result?.resultType, json.result?.isError], [200, 'complete', true], text)
      const [said] = json.result.content as Array<{ type: string; text: string }>
      t.match(said, { type: 'text', text: /^Connect your account of up first: http\S+$/ })
      t.match(lastCall(made), { outcome: 'connect_required', code: undefined, error: /^Connect your account of up/ })
      t.match(said?.text, new RegExp(`${pageOf(made)}\\?upstream=up&for=`))
    }
  const asked = await modernRequest(made.url(), 'tools/call', { name: 'up__connect_up', arguments: {} }, {
    token: keyOf.ada,
    capabilities: withPages
  } as never)
  t.equal(asked.json.result?.resultType, 'input_required')
  const [{ params }] = Object.values(asked.json.result.inputRequests) as [{ params: { url: string } }]
  t.ok(params.url.startsWith(pageOf(made)))
  const { tab, page } = await signedIn(params.url, keyOf.ada)
  await submit(tab, page, 'secret', { secret: 'the-secret-of-ada' })
  const { requestState, inputRequests } = asked.json.result
  const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((key) => [key, { action: 'accept' }]))
  const again = await modernRequest(
    made.url(),
    'tools/call',
    { name: 'up__connect_up', arguments: {}, requestState, inputResponses },
    { token: keyOf.ada, capabilities: withPages } as never
  )
  t.match(again.json.result.content[0].text, /up is connected/)
})

t.test('a key that the server does not accept is entered again, and what it may not do is said', async (t) => {
  const { upstream, made } = await setup(t)
  const presents =
    (secret: string) =>
    ({ headers }: Seen): boolean =>
      headers['x-api-key'] === `key ${secret}`
  const mayNot = (seen: Seen): boolean => presents('that may not')(seen) && isCall('echo')(seen)
  upstream.override(presents('the wrong one'), (response) => response.writeHead(401).end(), Infinity)
  upstream.override(mayNot, (response) => response.writeHead(403).end(), Infinity)
  const { tab, page } = await signedIn(pageOf(made), keyOf.ada)
  let shown = await submit(tab, page, 'secret', { secret: 'the wrong one' })
  t.match(shown.html, />connected</)
  const ada = await legacyClient(made.url(), keyOf.ada, '2025-11-25', withPages)
  const refused = await ada.request('tools/call', echo)
  t.equal(refused.json.error?.code, -32042, refused.text)
  shown = await tab.go(refused.json.error.data.elicitations[0].url, 'none')
  t.match(shown.html, /has to be connected again[^]*Up does not accept it \(HTTP 401\)/)
  const asked = upstream.seen.length
  t.equal((await ada.request('tools/call', echo)).json.error.code, -32042)
  t.equal(upstream.seen.length, asked, 'it is shown to the server no more')

  shown = await submit(tab, shown, 'secret', { secret: 'that may not' })
  const forbidden = await ada.request('tools/call', echo)
  t.match(forbidden.json.error.message, /it does not let your key do this. Another one you can enter at http/)
  t.match((await tab.go(pageOf(made), 'none')).html, />connected</, '403 may be for this call alone')

  shown = await submit(tab, shown, 'secret', { secret: 'the right one' })
  t.ok((await ada.request('tools/call', echo)).json.result)
  // One that held until now.
  upstream.override(presents('the right one'), (response) => response.writeHead(401).end(), Infinity)
  const last = await ada.request('tools/call', echo)
  t.match(last.json.error.message, /^Your key of up has to be entered again: up does not accept it \(HTTP 401\)/)
})

t.test('a link that was made for somebody else shows nothing and connects nothing', async (t) => {
  const { made } = await setup(t)
  const ada = await legacyClient(made.url(), keyOf.ada, '2025-11-25', withPages)
  const { json } = await ada.request('tools/call', { name: 'up__connect_up', arguments: {} })
  const { page } = await signedIn(json.error.data.elicitations[0].url, keyOf.bob)
  t.equal(page.status, 400)
  t.match(page.html, /made for somebody else/)
  const forged = await signedIn(`${pageOf(made)}?upstream=up&for=AAAA`, keyOf.ada)
  t.match(forged.page.html, /made for somebody else, or is too old/)
})

t.test('forms count only from a page of the same session and origin', async (t) => {
  const { made } = await setup(t)
  const { tab, page } = await signedIn(pageOf(made), keyOf.ada)
  const post = (fields: Record<string, string>, origin: string | undefined) =>
    tab.go(pageOf(made), 'none', {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...(origin && { origin }) },
      body: String(new URLSearchParams(fields))
    })
  const hidden = (name: string): string => new RegExp(`name="${name}" value="([^"]*)"`).exec(page.html)?.[1] ?? ''
  const fields = { action: 'secret', upstream: 'up', server: hidden('server'), secret: 'of an attacker' }
  const csrf = hidden('csrf')
  t.equal((await post(fields, made.publicUrl)).status, 400, 'without what the page holds')
  t.equal((await post({ ...fields, csrf: 'x'.repeat(43) }, made.publicUrl)).status, 400)
  t.equal((await post({ ...fields, csrf }, undefined)).status, 400, 'from nowhere')
  t.equal((await post({ ...fields, csrf }, 'https://evil.example')).status, 403)
  t.match((await tab.go(pageOf(made), 'none')).html, /not connected/)
  t.match((await post({ ...fields, csrf }, made.publicUrl)).html, />connected</, 'and this is how it works')
  t.equal((await signedIn(pageOf(made), 'gh_key_of_nobody_0123456789')).page.status, 403)
  const { headers } = page
  t.match(headers.get('content-security-policy') ?? '', /default-src 'none'.*frame-ancestors 'none'/)
  t.equal(headers.get('cache-control'), 'no-store')
})

t.test('what was entered on a page from before the upstream was another server is not kept', async (t) => {
  const { upstream, made } = await setup(t)
  const other = await startUpstream()
  t.teardown(() => other.close())
  const { tab, page } = await signedIn(pageOf(made), keyOf.ada)
  made.reload(configOf({ upstreams: { up: withKeys(other) }, auth, top: { vault: vaultKeys } }))
  const refused = await submit(tab, page, 'secret', { secret: 'the-secret-of-ada' })
  t.equal(refused.status, 400)
  t.match(refused.html, /up is another server now. Nothing was kept/)
  const shown = await tab.go(pageOf(made), 'none')
  t.match(shown.html, /not connected/)
  t.equal(other.seen.length + upstream.seen.length, 0)
  t.notMatch(shown.html, new URL(other.url).host, 'people are told no address of a server')
  t.match((await submit(tab, shown, 'secret', { secret: 'the-secret-of-ada' })).html, />connected</)
})

t.test('hosts see the state as JSON, and never a secret; nor does the store hold one in the clear', async (t) => {
  const folder = t.testdir()
  const { upstream, made } = await setup(t, `file:${join(folder, 'gatehouse.db')}`)
  const { tab, page } = await signedIn(pageOf(made), keyOf.ada)
  const secret = 'canary-secret-of-ada-0123456789'
  await submit(tab, page, 'secret', { secret })
  const ada = await legacyClient(made.url(), keyOf.ada)
  t.ok((await ada.request('tools/call', echo)).json.result)
  const answer = await send(pageOf(made), { method: 'GET', headers: { authorization: `Bearer ${keyOf.ada}` } })
  const own = { upstream: 'up', kind: 'secret', state: 'connected', lastUsedAt: /^\d{4}-.*Z$/ }
  t.match(answer.json, { connections: [own] })
  t.notMatch(answer.text, secret)
  t.equal((await send(pageOf(made), { method: 'GET', headers: { authorization: 'Bearer wrong' } })).status, 401)
  t.notMatch(JSON.stringify(made.log), secret)
  await made.close()
  const kept = readdirSync(folder).map((name) => readFileSync(join(folder, name)))
  t.ok(kept.length > 0)
  t.notOk(kept.some((bytes) => bytes.includes(secret)))

  // Another key under the same id opens nothing of it: said at once, and upstreams that need nothing of it go on.
  const vault = { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] }
  const upstreams = { up: withKeys(upstream), plain: { type: 'http', url: upstream.url } }
  const options = { upstreams, auth, store: `file:${join(folder, 'gatehouse.db')}` }
  const mistaken = await gateway(t, { ...options, top: { vault } })
  await until('the log says it', () => JSON.stringify(mistaken.log).includes('cannot open the key of a tenant'))
  const same = await legacyClient(mistaken.url(), keyOf.ada)
  t.ok((await same.request('tools/call', { ...echo, name: 'plain__echo' })).json.result)
  const asked = upstream.seen.length
  const refused = await same.request('tools/call', echo)
  t.match(refused.json.error?.message ?? refused.text, /Upstream up/)
  t.equal(upstream.seen.length, asked)
  t.match(JSON.stringify(mistaken.log), /the vault cannot open what this caller has given for it/)
  mistaken.reload(configOf({ ...options, top: { vault: vaultKeys } }))
  const isBack = async () => (await same.request('tools/call', echo)).json.result !== undefined
  await until('the right key opens it', isBack)
})
