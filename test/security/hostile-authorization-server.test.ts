// What an authorization server says of itself, and how its token endpoint answers, where an upstream chose it: nobody is
// sent anywhere but to a web page of https, and nothing that it gives is taken for more than it is.

import { moveClock } from '../kit/moving-clock.ts'
import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import t from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import { browser } from '../kit/browser.ts'
import { signedIn, submit } from '../kit/connect-page.ts'
import { gateway } from '../kit/gateway.ts'
import { listen } from '../kit/listen.ts'
import { startUpstream } from '../kit/upstream.ts'

type Json = Record<string, unknown>
const keyOfOther = 'gh_key_of_ada_elsewhere_0123456789'

/** A server of its own words; what a test changes stands over what is right. */
async function setup(t: Parameters<typeof gateway>[0]) {
  const said = { metadata: {} as Json, token: {} as Json | string, tokenStatus: 200, tokenType: 'application/json' }
  const seen = { paths: [] as string[], bodies: [] as URLSearchParams[], revocations: [] as string[] }
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const url: string = await listen(
    t,
    createServer((request, response) => {
      const path = request.url ?? ''
      seen.paths.push(path)
      let body = ''
      request.setEncoding('utf8').on('data', (text: string) => {
        body += text
      })
      request.on('end', () => {
        const json = (value: unknown): void =>
          void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value))
        // It is an upstream, too, that says nothing of who gives tokens for it.
        if (path.startsWith('/.well-known/oauth-protected-resource')) return void response.writeHead(404).end()
        if (path === '/revoke') {
          const basic = request.headers.authorization?.replace('Basic ', '') ?? ''
          seen.revocations.push(atob(basic) || String(new URLSearchParams(body).get('client_id')))
          return void response.writeHead(200).end()
        }
        if (path !== '/token')
          return json({
            issuer: url,
            authorization_endpoint: `${url}/authorize`,
            token_endpoint: `${url}/token`,
            response_types_supported: ['code'],
            code_challenge_methods_supported: ['S256'],
            authorization_response_iss_parameter_supported: true,
            ...said.metadata
          })
        seen.bodies.push(new URLSearchParams(body))
        const { token, tokenStatus, tokenType } = said
        response.writeHead(tokenStatus, { 'content-type': tokenType, location: `${url}/elsewhere` })
        response.end(
          typeof token === 'string'
            ? token
            : JSON.stringify({ access_token: 'good-token-of-ada', token_type: 'Bearer', expires_in: 600, ...token })
        )
      })
    })
  )
  const upstreams = {
    up: {
      type: 'http',
      url: upstream.url,
      auth: { type: 'user', issuer: url, clientId: 'gatehouse', clientSecret: 'secret-of-the-client', scopes: ['read'] }
    },
    // Whose authorization server is the one that it names itself.
    vague: { type: 'http', url: `${url}/mcp`, auth: { type: 'user', clientId: 'gatehouse' } }
  }
  const auth = { keys: Object.entries(keyOf).map(([name, key]) => ({ name, key })) }
  const top = {
    vault: { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] },
    egress: { allow: ['127.0.0.0/8'] }
  }
  const tenants = { other: { auth: { keys: [{ name: 'ada', key: keyOfOther }] }, upstreams } }
  const made = await gateway(t, { upstreams, auth, tenants, top })
  /** @param changed of the definition that names its client */
  const rename = (changed: object): void => {
    const up = { ...upstreams.up, auth: { ...upstreams.up.auth, ...changed } }
    const acme = { auth, upstreams: { ...upstreams, up } }
    made.reload({ listen: { host: '127.0.0.1', port: 0 }, store: 'memory:', ...top, tenants: { ...tenants, acme } })
  }
  const pages = `${made.publicUrl}/t/acme/connections`
  const [ada, bob] = [await signedIn(pages, keyOf.ada), await signedIn(pages, keyOf.bob)]
  let turn = 0
  /** Each may begin thirty in ten minutes. */
  async function begin(upstream = 'up') {
    const { tab, page } = turn++ % 2 === 0 ? ada : bob
    const { html } = await submit(tab, page, 'connect', { upstream })
    const href = /<a class="primary" href="([^"]+)"/.exec(html)?.[1]?.replaceAll('&#38;', '&').replaceAll('&amp;', '&')
    return { tab, html, link: href === undefined ? undefined : new URL(href) }
  }
  async function finish(change: (back: URLSearchParams) => void = () => {}) {
    const { tab, link } = await begin()
    const back = new URLSearchParams({ code: 'a-code', state: link?.searchParams.get('state') ?? '', iss: url })
    change(back)
    const address = `${pages}/callback?${String(back)}`
    return { tab, address, html: (await tab.go(address, 'none')).html }
  }
  return { url, said, seen, made, pages, ada, rename, begin, finish }
}

t.test(
  'metadata that names another issuer, no PKCE, or what is no web page of https leads nobody anywhere',
  async (t) => {
    const { url, said, made, begin } = await setup(t)
    const bad: Json[] = [
      { issuer: `${url}/` },
      { issuer: url.toUpperCase() },
      { issuer: 'https://other.example' },
      { issuer: undefined },
      { code_challenge_methods_supported: undefined },
      { code_challenge_methods_supported: ['plain'] },
      // Nor is anything of an account sent without TLS.
      { token_endpoint: 'http://as.example/token' },
      { registration_endpoint: 'http://as.example/register' },
      { revocation_endpoint: 'http://as.example/revoke' },
      { userinfo_endpoint: 'http://as.example:443/userinfo' },
      ...[
        ...[
          'javascript:alert(1)',
          'data:text/html,x',
          'file:///etc/passwd',
          'vbscript:x',
          'http://as.example/authorize'
        ],
        ...['https://a$(calc).evil', "https://a'b.evil/authorize", 'https://a&calc.evil/', 'https://a`b`.evil/'],
        ...['https://a$(calc).evil\r\nX: y', 'https://as.example/a\nb', 'https://user:pass@as.example/', 'no url', ''],
        ...[`https://as.example/${'x'.repeat(100_000)}`, 'HTTPS://as.example', 'https://as.example/\u202e']
      ].map((each) => ({ authorization_endpoint: each }))
    ]
    for (const metadata of bad) {
      said.metadata = metadata
      const { html, link } = await begin()
      t.equal(link, undefined, JSON.stringify(metadata).slice(0, 80))
      t.match(html, /Not connected/)
    }
    for (const host of ['xn--bcher-kva.example', '[2001:db8::1]', 'A-1.example.']) {
      said.metadata = { authorization_endpoint: `https://${host}/authorize` }
      t.equal((await begin()).link?.hostname, host.toLowerCase(), 'names and addresses as they are')
    }
    said.metadata = { authorization_endpoint: 'https://as.example/authorize?a=b' }
    const { html, link } = await begin()
    t.match(html, /You go on at <strong>as\.example<\/strong>/, 'where it leads is shown before anybody goes there')
    const asked = Object.fromEntries(link?.searchParams ?? [])
    t.match(asked, { a: 'b', code_challenge_method: 'S256', resource: /\/mcp$/, client_id: 'gatehouse' })
    t.match(asked['code_challenge'], /^[\w-]{43}$/)
    t.notMatch(JSON.stringify([html, made.log]), /secret-of-the-client/)
  }
)

t.test('whoever comes back with an answer of another server, or none, sends no code anywhere', async (t) => {
  const { url, seen, begin, finish, pages } = await setup(t)
  const bad: Record<string, (back: URLSearchParams) => void> = {
    'no iss, where it is announced': (back) => back.delete('iss'),
    'iss of another server': (back) => back.set('iss', 'https://other.example'),
    'iss with a slash': (back) => back.set('iss', `${back.get('iss')}/`),
    'no state': (back) => back.delete('state'),
    'another state': (back) => back.set('state', 'x'.repeat(43)),
    'an error of another server': (back) => {
      back.set('iss', 'https://other.example')
      back.delete('code')
      back.set('error', 'visit_evil_example')
    }
  }
  for (const [what, change] of Object.entries(bad)) {
    const { html } = await finish(change)
    t.match(html, /Not connected/, what)
    t.notMatch(html, /visit_evil_example/)
  }
  t.equal(seen.bodies.length, 0)
  const { html, tab, address } = await finish()
  t.match(html, /up is connected/, 'and this is how it works')
  t.match(seen.bodies[0]?.get('resource') ?? '', /\/mcp$/)
  t.match((await tab.go(address, 'none')).html, /finished already/, 'a state is good once')
  t.match((await browser().go(address, 'none')).html, /not signed in/, 'and in one browser')

  const elsewhere = pages.replace('/acme/', '/other/')
  const { tab: otherTab } = await signedIn(elsewhere, keyOfOther)
  const { link } = await begin()
  const query = new URLSearchParams({ code: 'a-code', state: link?.searchParams.get('state') ?? '', iss: url })
  const before = seen.bodies.length
  t.match(
    (await otherTab.go(`${elsewhere}/callback?${String(query)}`, 'none')).html,
    /too long ago/,
    'or another tenant'
  )
  const late = await begin()
  query.set('state', late.link?.searchParams.get('state') ?? '')
  t.teardown(() => moveClock(0))
  moveClock(11 * 60_000)
  t.match(
    (await late.tab.go(`${pages}/callback?${String(query)}`, 'none')).html,
    /too long ago/,
    'or after ten minutes'
  )
  t.equal(seen.bodies.length, before)
})

t.test('a token endpoint that answers wrongly connects nothing, and wider scopes are noted and not used', async (t) => {
  const { said, seen, finish, made, pages } = await setup(t)
  const bad: Array<[what: string, Partial<typeof said>]> = [
    ['a redirect', { tokenStatus: 302 }],
    ['a page', { tokenType: 'text/html', token: '<!doctype html><title>Sign in</title>' }],
    ['ten megabytes', { token: JSON.stringify({ access_token: 'x'.repeat(10_000_000), token_type: 'bearer' }) }],
    ['another type of token', { token: { token_type: 'mac' } }],
    ['no token', { token: { access_token: undefined } }],
    ['a token that ends a header', { token: { access_token: 'a\r\nX-Evil: 1' } }],
    ['a token that has ended before it was given', { token: { expires_in: -5 } }],
    ['a long refresh token', { token: { refresh_token: 'x'.repeat(20_000) } }]
  ]
  for (const [what, answer] of bad) {
    Object.assign(said, { token: {}, tokenStatus: 200, tokenType: 'application/json' }, answer)
    t.match((await finish()).html, /Not connected/, what)
  }
  t.notOk(seen.paths.includes('/elsewhere'), 'no redirect is followed')
  Object.assign(said, { token: { scope: 'read write admin', expires_in: undefined }, tokenStatus: 200 })
  const { html, tab } = await finish()
  t.match(html, /up is connected/)
  t.match((await tab.go(pages, 'none')).html, /read, write, admin/, 'what was given is shown')
  t.notMatch(JSON.stringify(made.log), /secret-of-the-client|good-token-of-ada|a-code/)
})

t.test('a server that the upstream chose sends nobody to the page of another one (RFC 9700 section 4.4)', async (t) => {
  const { url, said, begin } = await setup(t)
  const elsewhere = { authorization_endpoint: 'https://honest.example/authorize' }
  said.metadata = { ...elsewhere, authorization_response_iss_parameter_supported: undefined }
  const { html, link } = await begin('vague')
  t.equal(link, undefined)
  t.match(html, /sends people to https:\/\/honest\.example/)
  t.match(html, new RegExp(`issuer: ${url}`), 'and what to write where the page is its own')
  t.equal((await begin('up')).link?.hostname, 'honest.example', 'as the operator has')
  said.metadata = elsewhere
  t.equal((await begin('vague')).link?.hostname, 'honest.example', 'or its answers say whose they are')
  said.metadata = { authorization_response_iss_parameter_supported: undefined }
  t.equal((await begin('vague')).link?.origin, url, 'or the page is its own')
})

t.test(
  'the secret of a client is for that client at its server, also where the definition names others now',
  async (t) => {
    const { url, said, seen, ada, rename, finish } = await setup(t)
    said.metadata = { revocation_endpoint: `${url}/revoke` }
    const disconnect = async () =>
      void (await submit(ada.tab, ada.page, 'connect', { action: 'disconnect', upstream: 'up' }))
    const changes = [
      {},
      { clientId: 'another-client', clientSecret: 'another-secret' },
      { issuer: 'https://other.example', clientSecret: 'another-secret' }
    ]
    for (const change of changes) {
      rename({})
      const { html, tab } = await finish()
      t.match(html, /up is connected/)
      if (tab !== ada.tab) t.match((await finish()).html, /up is connected/)
      rename(change)
      await disconnect()
    }
    t.same(seen.revocations, ['gatehouse:secret-of-the-client', 'gatehouse', 'gatehouse'], 'who gave back')
  }
)
