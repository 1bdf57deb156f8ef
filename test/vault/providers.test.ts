// Accounts of providers that are no MCP authorization servers: each stand-in answers in exactly the form that the
// provider documents, and refuses what the provider does not take.

import { randomBytes } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import t from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import { legacyClient } from '../kit/client.ts'
import { connectAccount, signedIn, submit } from '../kit/connect-page.ts'
import { gateway } from '../kit/gateway.ts'
import { freePort } from '../kit/free-port.ts'
import { identityProvider, providerClient } from '../kit/identity-provider.ts'
import { listen, type Teardown } from '../kit/listen.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'
import { type AccountProvider, accountProviders } from '../../src/config/auth/account-providers.ts'

const vaultOf = () => ({ vault: { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] } })
const client = { clientId: 'an-app', clientSecret: 'the-secret-of-the-app' }
const echo = { name: 'up__echo', arguments: { text: 'hello' } }

interface Asked {
  readonly headers: IncomingHttpHeaders
  readonly body: string
}
type Form = Readonly<Record<string, string>>

interface StandIn {
  /** What a token request has to look like. */
  readonly read: (asked: Asked) => Form
  /** @param number of the tokens that are given */
  readonly give: (number: number) => readonly [type: string, body: string]
  readonly refuse: () => readonly [status: number, body: object]
  readonly authorize: Form
  readonly scopes: readonly string[]
  /** What it answers to whoever asks for the account, and what that is called. */
  readonly account: readonly [answer: object, name: string]
}

const formOf = ({ headers, body }: Asked): Form => {
  if (headers['content-type']?.startsWith('application/x-www-form-urlencoded') !== true) throw new Error('no form')
  return Object.fromEntries(new URLSearchParams(body))
}
const jsonOf = ({ headers, body }: Asked): Form => {
  if (headers['content-type'] !== 'application/json') throw new Error('no JSON')
  return JSON.parse(body) as Form
}
const json = (value: object) => ['application/json; charset=utf-8', JSON.stringify(value)] as const
const inBody = (form: Form): Form => {
  if (form['client_id'] !== client.clientId || form['client_secret'] !== client.clientSecret) throw new Error('client')
  return form
}
const basic = (asked: Asked, form: Form): Form => {
  const expected = `Basic ${btoa(`${client.clientId}:${client.clientSecret}`)}`
  if (asked.headers.authorization !== expected) throw new Error('client')
  return form
}

const standIns: Readonly<Record<keyof typeof accountProviders, StandIn>> = {
  github: {
    read: (asked) => inBody(formOf(asked)),
    give: (n) => [
      'application/x-www-form-urlencoded; charset=utf-8',
      `access_token=ghu_${n}aaaaaaaaaaaa&expires_in=0&refresh_token=ghr_${n}&refresh_token_expires_in=15897600&scope=repo%2Cgist&token_type=bearer`
    ],
    refuse: () => [200, { error: 'bad_refresh_token', error_description: 'The refresh token passed is incorrect.' }],
    authorize: { scope: 'repo gist', code_challenge_method: 'S256' },
    scopes: ['repo', 'gist'],
    account: [{ login: 'octocat', id: 1, name: 'The Octocat', email: null }, 'octocat']
  },
  google: {
    read: (asked) => inBody(formOf(asked)),
    give: (n) =>
      json({
        access_token: `ya29.${n}aaaaaaaaaaaa`,
        expires_in: 0,
        refresh_token: `1//${n}`,
        scope: 'repo gist',
        token_type: 'Bearer'
      }),
    refuse: () => [400, { error: 'invalid_grant', error_description: 'Token has been expired or revoked.' }],
    authorize: { scope: 'repo gist', access_type: 'offline', prompt: 'consent' },
    scopes: ['repo', 'gist'],
    account: [{ sub: '1', email: 'ada@example.com', email_verified: true, name: 'Ada' }, 'ada@example.com']
  },
  slack: {
    read: (asked) => basic(asked, formOf(asked)),
    give: (n) => {
      const own = {
        access_token: `xoxe.xoxp-${n}aaaaaaaaaaaa`,
        expires_in: 0,
        refresh_token: `xoxe-${n}`,
        token_type: 'user'
      }
      const scope = 'repo,gist'
      const bot = { access_token: 'xoxb-the-bot-of-the-workspace', token_type: 'bot', scope: 'commands' }
      return json(
        n === 1
          ? { ok: true, app_id: 'A1', ...bot, authed_user: { id: 'U1234', scope, ...own }, team: { id: 'T1' } }
          : { ok: true, app_id: 'A1', ...own, scope, team: { id: 'T1' } }
      )
    },
    refuse: () => [200, { ok: false, error: 'invalid_refresh_token' }],
    authorize: { user_scope: 'repo,gist' },
    scopes: ['repo', 'gist'],
    account: [
      { ok: true, url: 'https://acme.slack.com/', team: 'Acme', user: 'ada', team_id: 'T1', user_id: 'U1234' },
      'ada'
    ]
  },
  notion: {
    read: (asked) => basic(asked, jsonOf(asked)),
    give: (n) =>
      json({
        access_token: `ntn_${n}aaaaaaaaaaaa`,
        token_type: 'bearer',
        refresh_token: `nrt_${n}`,
        bot_id: 'b',
        owner: { type: 'user' },
        expires_in: 0
      }),
    refuse: () => [400, { error: 'invalid_grant', error_description: 'Invalid refresh token' }],
    authorize: { owner: 'user' },
    scopes: [],
    account: [
      { object: 'user', type: 'bot', bot: { owner: { type: 'user', user: { name: 'Ada', person: {} } } } },
      'Ada'
    ]
  },
  linear: {
    read: (asked) => inBody(formOf(asked)),
    give: (n) =>
      json({
        access_token: `lin_${n}aaaaaaaaaaaa`,
        token_type: 'Bearer',
        expires_in: 0,
        refresh_token: `lrt_${n}`,
        scope: 'repo,gist'
      }),
    refuse: () => [400, { error: 'invalid_grant' }],
    authorize: { scope: 'repo,gist' },
    scopes: ['repo', 'gist'],
    account: [{ data: { viewer: { email: 'ada@example.com', name: 'Ada' } } }, 'ada@example.com']
  },
  atlassian: {
    read: (asked) => inBody(jsonOf(asked)),
    give: (n) =>
      json({
        access_token: `atl_${n}aaaaaaaaaaaa`,
        expires_in: 0,
        refresh_token: `art_${n}`,
        scope: 'repo gist offline_access',
        token_type: 'Bearer'
      }),
    refuse: () => [403, { error: 'invalid_grant', error_description: 'Unknown or invalid refresh token.' }],
    authorize: { scope: 'repo gist offline_access', audience: 'api.atlassian.com', prompt: 'consent' },
    scopes: ['repo', 'gist', 'offline_access'],
    account: [{ account_type: 'atlassian', account_id: '1', name: 'Ada', email: 'ada@example.com' }, 'ada@example.com']
  }
}

async function standIn(t: Teardown, { read, give, refuse, account }: StandIn) {
  const lists = { visited: [] as URLSearchParams[], forms: [] as Form[], faults: [] as string[], named: [] as Asked[] }
  /** `held`: an account is named when this is over. */
  const state = { ...lists, refuses: false, held: undefined as Promise<unknown> | undefined }
  const url = await listen(
    t,
    createServer((request, response) => {
      const at = new URL(request.url ?? '', 'http://stand.in')
      if (at.pathname === '/authorize') {
        state.visited.push(at.searchParams)
        const back = new URL(at.searchParams.get('redirect_uri') ?? '')
        back.searchParams.set('code', 'a-code')
        back.searchParams.set('state', at.searchParams.get('state') ?? '')
        return void response.writeHead(302, { location: back.href }).end()
      }
      let body = ''
      request.on('data', (chunk: Buffer) => (body += chunk.toString()))
      request.on('end', () => {
        try {
          if (at.pathname === '/account') {
            state.named.push({ headers: request.headers, body })
            const name = (): void =>
              void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(account[0]))
            return void (state.held ?? Promise.resolve()).then(name)
          }
          const form = read({ headers: request.headers, body })
          if ('resource' in form) throw new Error('resource')
          state.forms.push(form)
          if (state.refuses) {
            const [status, said] = refuse()
            return response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(said))
          }
          const [type, text] = give(state.forms.length)
          return response.writeHead(200, { 'content-type': type }).end(text)
        } catch (error) {
          state.faults.push(String(error))
          return response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"invalid_request"}')
        }
      })
    })
  )
  return Object.assign(state, { url })
}

for (const [provider, script] of Object.entries(standIns)) {
  t.test(`an account of ${provider} is connected, renewed and asked for again`, async (t) => {
    const [there, up] = [await standIn(t, script), await startUpstream()]
    t.teardown(() => up.close())
    const known: AccountProvider = accountProviders[provider as keyof typeof accountProviders]
    const made = await gateway(t, {
      upstreams: {
        up: {
          type: 'http',
          url: up.url,
          auth: {
            type: 'user',
            provider,
            ...client,
            ...(script.scopes.length > 0 && { scopes: ['repo', 'gist'] }),
            authorizationUrl: `${there.url}/authorize`,
            tokenUrl: `${there.url}/token`,
            accountUrl: `${there.url}/account`
          }
        }
      },
      auth: { keys: [{ name: 'ada', key: keyOf.ada }] },
      top: vaultOf()
    })
    const { tab, page } = await signedIn(`${made.publicUrl}/t/acme/connections`, keyOf.ada)
    const connected = await connectAccount(tab, page)
    t.match(connected.html, /up is connected/, there.faults.join())
    const [, name] = script.account
    t.match((await tab.go(`${made.publicUrl}/t/acme/connections`, 'none')).html, `<dt>Account</dt><dd>${name}</dd>`)
    const { headers, body = '' } = known.account ?? {}
    t.match(there.named, [{ headers: { ...headers, authorization: /aaaa$/, 'user-agent': /./ }, body }])
    t.equal(there.named.length, 1)
    const visited = Object.fromEntries(there.visited[0] ?? [])
    t.match(visited, { client_id: client.clientId, response_type: 'code', ...script.authorize })
    t.equal('resource' in visited, false)
    if (known.scopeParameter !== undefined) t.equal('scope' in visited, false)
    t.match(there.forms[0], { grant_type: 'authorization_code', code: 'a-code', code_verifier: /.{43}/ })

    const ada = await legacyClient(made.url(), keyOf.ada, '2025-11-25', { elicitation: { url: {} } })
    const call = async () => (await ada.request('tools/call', echo)).json
    // It is over as soon as it is given, and renewed before each request.
    t.ok((await call()).result)
    t.match(there.forms[1], { grant_type: 'refresh_token' })
    const shown = new Set(up.seen.map(({ headers }) => String(headers.authorization)))
    t.ok(shown.size >= 1)
    t.ok(
      [...shown].every((each) => /^Bearer (?!xoxb)\S+aaaaaaaaaaaa$/.test(each)),
      [...shown].join()
    )
    const state = await fetch(`${made.publicUrl}/t/acme/connections`, {
      headers: { authorization: `Bearer ${keyOf.ada}` }
    })
    const [connection] = ((await state.json()) as { connections: Array<{ scopes: string[] }> }).connections
    t.same(connection?.scopes, script.scopes)

    there.refuses = true
    const answer = await call()
    t.equal(answer.error?.code, -32042, 'what is refused for good leads to the page')
    t.match(answer.error.message, /does not accept it any more/)
    t.same(there.faults, [])
    t.match(
      (await submit(tab, await tab.go(`${made.publicUrl}/t/acme/connections`, 'none'), 'disconnect')).html,
      /not connected/
    )
  })
}

t.test('the token of a bot is nobody’s account', async (t) => {
  const script = {
    ...standIns.slack,
    give: () =>
      json({
        ok: true,
        access_token: 'xoxb-the-bot-of-the-workspace',
        token_type: 'bot',
        scope: 'commands',
        authed_user: { id: 'U1' }
      })
  }
  const [there, up] = [await standIn(t, script), await startUpstream()]
  t.teardown(() => up.close())
  const endpoints = { authorizationUrl: `${there.url}/authorize`, tokenUrl: `${there.url}/token` }
  const made = await gateway(t, {
    upstreams: {
      up: { type: 'http', url: up.url, auth: { type: 'user', provider: 'slack', ...client, ...endpoints } }
    },
    auth: { keys: [{ name: 'ada', key: keyOf.ada }] },
    top: vaultOf()
  })
  const { tab, page } = await signedIn(`${made.publicUrl}/t/acme/connections`, keyOf.ada)
  t.match((await connectAccount(tab, page)).html, /Not connected/)
  t.equal(there.forms.length, 1)
})

t.test('an account is called what its ID token says', async (t) => {
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const [idp, up] = [await identityProvider(t, `${origin}/t/acme/connections/callback`), await startUpstream()]
  t.teardown(() => up.close())
  const endpoints = { issuer: idp.url, authorizationUrl: `${idp.url}/auth`, tokenUrl: `${idp.url}/token` }
  const account = { ...providerClient, ...endpoints, scopes: ['openid', 'email'], resource: 'none' }
  await gateway(t, {
    upstreams: { up: { type: 'http', url: up.url, auth: { type: 'user', ...account } } },
    auth: { keys: [{ name: 'ada', key: keyOf.ada }] },
    top: { ...vaultOf(), listen: { host: '127.0.0.1', port }, publicUrl: origin }
  })
  idp.person = 'ada.lovelace'
  const { tab, page } = await signedIn(`${origin}/t/acme/connections`, keyOf.ada)
  t.match((await connectAccount(tab, page)).html, /up is connected/)
  const shown = await tab.go(`${origin}/t/acme/connections`, 'none')
  t.match(shown.html, '<dt>Account</dt><dd>ada.lovelace@example.com</dd>')
})

t.test('an account is connected before its provider is asked for its name', async (t) => {
  const [there, up] = [await standIn(t, standIns.github as StandIn), await startUpstream()]
  t.teardown(() => up.close())
  const endpoints = { authorizationUrl: `${there.url}/authorize`, tokenUrl: `${there.url}/token` }
  const account = { type: 'user', provider: 'github', ...client, ...endpoints, accountUrl: `${there.url}/account` }
  const made = await gateway(t, {
    upstreams: { up: { type: 'http', url: up.url, auth: account } },
    auth: { keys: [{ name: 'ada', key: keyOf.ada }] },
    top: vaultOf()
  })
  const own = `${made.publicUrl}/t/acme/connections`
  const { tab, page } = await signedIn(own, keyOf.ada)
  const { promise, resolve } = Promise.withResolvers<void>()
  there.held = promise
  const connecting = connectAccount(tab, page)
  await until('it is asked', () => there.named.length === 1)
  const ada = await legacyClient(made.url(), keyOf.ada, '2025-11-25', { elicitation: { url: {} } })
  t.ok((await ada.request('tools/call', echo)).json.result, 'a provider that hangs keeps nobody from their account')
  t.notMatch((await tab.go(own, 'none')).html, '<dt>Account</dt>')
  resolve()
  t.match((await connecting).html, /up is connected/)
  t.match((await tab.go(own, 'none')).html, `<dt>Account</dt><dd>${(standIns.github as StandIn).account[1]}</dd>`)
  t.ok((await ada.request('tools/call', echo)).json.result, 'and its connections go on')
})

t.test('what others call an account is shown as text, and its lack is no fault', async (t) => {
  for (const [said, shown] of [
    [
      { login: `<b onclick="x">\u202Eevil\n${'x'.repeat(10_000)}` },
      /<dd>&#60;b onclick=&#34;x&#34;&#62;evilx{230,240}<\/dd>/
    ],
    [{ login: ' \u200B' }, undefined],
    [{ login: { toString: 'x' } }, undefined],
    [['octocat'], undefined]
  ] as const) {
    const [there, up] = [await standIn(t, { ...standIns.github, account: [said, ''] }), await startUpstream()]
    t.teardown(() => up.close())
    const endpoints = { authorizationUrl: `${there.url}/authorize`, tokenUrl: `${there.url}/token` }
    const account = { type: 'user', provider: 'github', ...client, ...endpoints, accountUrl: `${there.url}/account` }
    const made = await gateway(t, {
      upstreams: { up: { type: 'http', url: up.url, auth: account } },
      auth: { keys: [{ name: 'ada', key: keyOf.ada }] },
      top: vaultOf()
    })
    const { tab, page } = await signedIn(`${made.publicUrl}/t/acme/connections`, keyOf.ada)
    t.match((await connectAccount(tab, page)).html, /up is connected/)
    const { html } = await tab.go(`${made.publicUrl}/t/acme/connections`, 'none')
    t.match(html, />connected</)
    if (shown === undefined) t.notMatch(html, '<dt>Account</dt>')
    else t.match(html, shown)
    t.equal(there.named.length, 1)
  }
})
