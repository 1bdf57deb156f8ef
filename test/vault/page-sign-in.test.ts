// Signing in on the page of one's connections: at the login front of the tenant, or at its provider; and what of a
// sign-in is worth nothing to anybody else.

import { moveClock } from '../kit/moving-clock.ts'
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { browser } from '../kit/browser.ts'
import { legacyClient } from '../kit/client.ts'
import { linkToSignIn as linkOf, submit } from '../kit/connect-page.ts'
import { forgingIssuer } from '../kit/forging-issuer.ts'
import { freePort } from '../kit/free-port.ts'
import { gateway } from '../kit/gateway.ts'
import { identityProvider, providerClient } from '../kit/identity-provider.ts'
import { startUpstream } from '../kit/upstream.ts'
import { logIn, loginGateway } from '../login/kit.ts'

const upstream = await startUpstream()
t.teardown(() => upstream.close())
const up = { type: 'http', url: upstream.url, auth: { type: 'userSecret', header: 'X-Api-Key', prefix: '' } }
const vault = { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] }
const withPages = { elicitation: { url: {} } }
const echo = { name: 'up__echo', arguments: { text: 'hello' } }

/** Where the call of somebody leads who has not connected. */
async function linkFor(endpoint: string, token: string): Promise<string> {
  const client = await legacyClient(endpoint, token, '2025-11-25', withPages)
  const { json } = await client.request('tools/call', { name: 'up__connect_up', arguments: {} })
  return json.error.data.elicitations[0].url
}

const answerOf = async (endpoint: string, token: string) =>
  (await (await legacyClient(endpoint, token)).request('tools/call', echo)).json

t.test('who signs in at the login front is the person whose hosts call', async (t) => {
  const made = await loginGateway(t, {
    upstreams: { up },
    endpoints: { default: { upstreams: ['up'] } },
    top: { vault }
  })
  const endpoint = `${made.origin}/t/acme/mcp`
  made.provider.person = 'ada'
  const { body } = await logIn(made, endpoint)
  const tab = browser()
  const page = await tab.go(await linkFor(endpoint, body.access_token), 'none')
  t.match(page.html, /Sign in at Acme Corporation/)
  const shown = await tab.go(linkOf(page), 'none')
  t.equal(shown.status, 200)
  t.equal(shown.url.pathname, '/t/acme/connections')
  t.match(shown.html, /You are <strong>ada@example\.com</)
  t.match((await submit(tab, shown, 'secret', { secret: 'the-secret-of-ada' })).html, />connected</)
  t.ok((await answerOf(endpoint, body.access_token)).result.content)
  t.equal(upstream.seen.at(-1)?.headers['x-api-key'], 'the-secret-of-ada')

  // A second page of the same browser: the login front knows who it is.
  const asked = made.provider.tokenRequests
  const out = await submit(tab, shown, 'sign-out')
  t.match((await tab.go(linkOf(out), 'none')).html, /You are <strong>ada@example\.com</)
  t.equal(made.provider.tokenRequests, asked, 'nobody is sent to the provider again')

  made.provider.person = 'bob'
  const other = browser()
  const refused = await other.go(linkOf(await other.go(page.url.href, 'none')), 'none')
  t.equal(refused.status, 400)
  t.match(refused.html, /made for somebody else/)

  made.provider.person = undefined
  const nobody = browser()
  t.match((await nobody.go(linkOf(await nobody.go(page.url.href, 'none')), 'none')).html, /did not let you in/)
})

t.test('a way back from the login front is good once, in the browser that asked', async (t) => {
  const made = await loginGateway(t, {
    upstreams: { up },
    endpoints: { default: { upstreams: ['up'] } },
    top: { vault }
  })
  const back = `${made.origin}/t/acme/connections/signed-in`
  const page = `${made.origin}/t/acme/connections`
  const began = async (person: string) => {
    made.provider.person = person
    const tab = browser()
    const landing = await tab.go(linkOf(await tab.go(page, 'none')), back)
    return { tab, url: landing.url.href }
  }
  const [eve, ada] = [await began('eve'), await began('ada')]
  const pushed = await ada.tab.go(eve.url, 'none')
  t.equal(pushed.status, 400, 'eve cannot sign the browser of ada in as eve')
  t.match(pushed.html, /begun in another browser/)
  t.equal((await browser().go(ada.url, 'none')).status, 400, 'whoever sees the URL has nothing of it')
  const again = await began('ada')
  t.match((await again.tab.go(again.url, 'none')).html, /You are <strong>ada@example\.com</)
  t.equal((await again.tab.go(again.url, 'none')).status, 400, 'nor is it good a second time')
  for (const state of ['', 'short', `${'x'.repeat(42)}/`])
    t.equal((await browser().go(`${made.issuer}/connections?state=${encodeURIComponent(state)}`, 'none')).status, 400)
  t.match((await browser().go(page, 'none')).html, /Your API key, or an access token/, 'a key is taken as before')
})

t.test('whom the provider knows no more is signed out of the page; while it is away nobody is', async (t) => {
  const made = await loginGateway(t, {
    upstreams: { up },
    endpoints: { default: { upstreams: ['up'] } },
    top: { vault }
  })
  const page = `${made.origin}/t/acme/connections`
  made.provider.person = 'ada'
  const tab = browser()
  t.match((await tab.go(linkOf(await tab.go(page, 'none')), 'none')).html, /You are <strong>ada@example/)
  t.teardown(() => moveClock(0))
  moveClock(60_000)
  made.provider.down = true
  t.match((await tab.go(page, 'none')).html, /You are <strong>ada@example/)
  made.provider.down = false
  moveClock(120_000)
  t.match((await tab.go(page, 'none')).html, /You are <strong>ada@example/)
  made.provider.disabled.add('ada')
  moveClock(180_000)
  t.match((await tab.go(page, 'none')).html, /Sign in at Acme/)
})

t.test('without a login front people sign in at the provider of the tenant', async (t) => {
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const endpoint = `${origin}/t/acme/mcp`
  const provider = await identityProvider(t, `${origin}/t/acme/connections/signed-in`)
  // Access tokens of the same issuer, which the provider of the tests does not make.
  const tokens = await forgingIssuer(t, { resource: endpoint, now: Date.now() })
  const { log } = await gateway(t, {
    upstreams: { up },
    auth: {
      issuers: [{ issuer: provider.url, jwksUri: tokens.jwksUri }],
      signIn: { issuer: provider.url, ...providerClient }
    },
    top: { listen: { host: '127.0.0.1', port }, publicUrl: origin, vault }
  })
  const token = await tokens.sign({ iss: provider.url, sub: 'ada', aud: endpoint })
  const link = await linkFor(endpoint, token)
  provider.person = 'ada'
  const tab = browser()
  const page = await tab.go(link, 'none')
  t.match(page.html, new RegExp(`Sign in at ${new URL(provider.url).host}`))
  const back = await tab.go(linkOf(page), `${origin}/t/acme/connections/signed-in`)
  t.match(Object.fromEntries(back.url.searchParams), { code: /./, state: /./ })

  const stranger = await browser().go(back.url.href, 'none')
  t.equal(stranger.status, 400)
  t.match(stranger.html, /begun in another browser/)
  const shown = await tab.go(back.url.href, 'none')
  t.match(shown.html, /You are <strong>ada@example\.com</)
  t.match((await submit(tab, shown, 'secret', { secret: 'the-secret-of-ada-2' })).html, />connected</)
  t.ok((await answerOf(endpoint, token)).result.content)
  t.equal(upstream.seen.at(-1)?.headers['x-api-key'], 'the-secret-of-ada-2')
  t.equal((await tab.go(back.url.href, 'none')).status, 400, 'a code is good once')

  provider.isSecretWrong = true
  const away = browser()
  const refused = await away.go(linkOf(await away.go(link, 'none')), 'none')
  t.match(refused.html, /did not let you in, or does not answer/)
  t.notMatch(JSON.stringify(log), back.url.searchParams.get('code') ?? '', 'no code is logged')
})
