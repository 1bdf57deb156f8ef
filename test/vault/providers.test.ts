// Accounts of providers that are no MCP authorization servers: each stand-in answers in exactly the form that the
// provider documents, and refuses what the provider does not take.

import { randomBytes } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import pino from 'pino'
import t from 'tap'
import { createFetch, type FetchFor } from '../../src/egress/fetch.ts'
import { compileConfig } from '../../src/config/load.ts'
import { tenantId, upstreamName } from '../../src/protocol/messages.ts'
import { openStore } from '../../src/store/open-store.ts'
import { steadyClock, wallClock } from '../../src/time/clock.ts'
import { createGrants } from '../../src/vault/grants.ts'
import { createAccounts } from '../../src/vault/oauth/connect-account.ts'
import { createFirstIssuers } from '../../src/vault/oauth/first-issuers.ts'
import { createSealedValues } from '../../src/vault/sealed-values.ts'
import { createVaultKeys } from '../../src/vault/wrapping/vault-keys.ts'
import { keyOf } from '../kit/acme-gateway.ts'
import { legacyClient } from '../kit/client.ts'
import { connectAccount, signedIn, submit } from '../kit/connect-page.ts'
import { configOf, gateway } from '../kit/gateway.ts'
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

const checked = (what: string, given: unknown, wanted: unknown): void => {
  if (given !== wanted) throw new Error(`${what}: ${String(given)}`)
}

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
  /** Reads the token that is given back in the form that it takes. Not given: it takes none. */
  readonly takeBack?: (asked: Asked & { readonly method: string; readonly path: string }) => unknown
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
    account: [{ login: 'octocat', id: 1, name: 'The Octocat', email: null }, 'octocat'],
    takeBack: (asked) => {
      checked('place', `${asked.method} ${asked.path}`, 'DELETE /revoke/an-app')
      return basic(asked, jsonOf(asked))['access_token']
    }
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
    account: [{ sub: '1', email: 'ada@example.com', email_verified: true, name: 'Ada' }, 'ada@example.com'],
    takeBack: (asked) => inBody(formOf(asked))['token']
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
    ],
    takeBack: ({ method, headers, body }) => {
      checked('request', `${method} ${body}`, 'POST ')
      return headers.authorization?.replace('Bearer ', '')
    }
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
    ],
    takeBack: (asked) => {
      checked('notion-version', asked.headers['notion-version'], '2022-06-28')
      return basic(asked, jsonOf(asked))['token']
    }
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
    account: [{ data: { viewer: { email: 'ada@example.com', name: 'Ada' } } }, 'ada@example.com'],
    takeBack: (asked) => inBody(formOf(asked))['token']
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

async function standIn(t: Teardown, { read, give, refuse, account, takeBack }: StandIn) {
  const lists = {
    visited: [] as URLSearchParams[],
    forms: [] as Form[],
    faults: [] as string[],
    named: [] as Asked[],
    back: [] as unknown[]
  }
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
          if (at.pathname.startsWith('/revoke')) {
            const asked = { headers: request.headers, body, method: request.method ?? '', path: at.pathname }
            state.back.push(takeBack?.(asked))
            const isJson = { 'content-type': 'application/json' }
            return response
              .writeHead(request.method === 'DELETE' ? 204 : 200, isJson)
              .end(request.method === 'DELETE' ? '' : '{"ok":true}')
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
            accountUrl: `${there.url}/account`,
            ...(script.takeBack && {
              revocationUrl: `${there.url}/revoke${provider === 'github' ? '/{client_id}' : ''}`
            })
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
    const { connections } = (await state.json()) as { connections: object[] }
    t.match(connections, [
      {
        ...{ upstream: 'up', kind: 'account', state: 'connected', scopes: script.scopes, account: name },
        ...{ provider: new URL(there.url).host, connectedAt: /^\d{4}-.*Z$/, lastUsedAt: /^\d{4}-.*Z$/ }
      }
    ])
    t.notMatch(JSON.stringify(connections), /aaaa|the-secret/)

    there.refuses = true
    const answer = await call()
    t.equal(answer.error?.code, -32042, 'what is refused for good leads to the page')
    t.match(answer.error.message, /does not accept it any more/)
    t.same(there.back, [])
    t.match(
      (await submit(tab, await tab.go(`${made.publicUrl}/t/acme/connections`, 'none'), 'disconnect')).html,
      /not connected/
    )
    t.same(there.faults, [])
    // Those that were given last: of a refusal nothing is known to have ended.
    const [, given] = script.give(there.forms.length - 1)
    t.equal(there.back.length, script.takeBack === undefined ? 0 : 1)
    t.ok(there.back.every((token) => typeof token === 'string' && token !== '' && given.includes(token)))
    t.equal(made.log.filter(({ msg }) => msg === 'an account could not be given back').length, 0)
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

/** As the providers' own documentation has them: where people are sent, and what is asked for an account, in order. */
const addresses: Readonly<Record<keyof typeof accountProviders, readonly [issuer: string, page: string, ...string[]]>> =
  {
    github: [
      'https://github.com/login/oauth',
      'https://github.com/login/oauth/authorize',
      'https://github.com/login/oauth/access_token',
      'https://api.github.com/user',
      'https://api.github.com/applications/an-app/grant'
    ],
    google: [
      'https://accounts.google.com',
      'https://accounts.google.com/o/oauth2/v2/auth',
      'https://oauth2.googleapis.com/token',
      'https://openidconnect.googleapis.com/v1/userinfo',
      'https://oauth2.googleapis.com/revoke'
    ],
    slack: [
      'https://slack.com',
      'https://slack.com/oauth/v2/authorize',
      'https://slack.com/api/oauth.v2.access',
      'https://slack.com/api/auth.test',
      'https://slack.com/api/auth.revoke'
    ],
    notion: [
      'https://api.notion.com',
      'https://api.notion.com/v1/oauth/authorize',
      'https://api.notion.com/v1/oauth/token',
      'https://api.notion.com/v1/users/me',
      'https://api.notion.com/v1/oauth/revoke'
    ],
    linear: [
      'https://linear.app',
      'https://linear.app/oauth/authorize',
      'https://api.linear.app/oauth/token',
      'https://api.linear.app/graphql',
      'https://api.linear.app/oauth/revoke'
    ],
    atlassian: [
      'https://auth.atlassian.com',
      'https://auth.atlassian.com/authorize',
      'https://auth.atlassian.com/oauth/token',
      'https://api.atlassian.com/me'
    ]
  }

t.test('each provider is asked at its own addresses, up to where an account is given back', async (t) => {
  t.same(Object.keys(addresses), Object.keys(accountProviders))
  for (const [provider, [issuer, page, ...expected]] of Object.entries(addresses)) {
    const script = standIns[provider as keyof typeof standIns]
    const there = await standIn(t, script)
    const paths = ['/token', '/account', provider === 'github' ? '/revoke/an-app' : '/revoke']
    const asked: string[] = []
    const reach = createFetch()
    const fetch: FetchFor = () => (url, init) => {
      asked.push(url)
      return reach(there.url + (paths[expected.indexOf(url)] ?? '/unknown'), init)
    }
    const auth = { type: 'user', provider, ...client, ...(script.scopes.length > 0 && { scopes: ['repo', 'gist'] }) }
    const config = configOf({
      upstreams: { up: { type: 'http', url: 'https://up.example/mcp', auth } },
      auth: { keys: [{ name: 'ada', key: keyOf.ada }] },
      top: vaultOf()
    })
    const snapshot = compileConfig(JSON.stringify(config), { path: 'test.json', env: {} })
    const definition = snapshot.tenants.get(tenantId('acme'))?.upstreams.get(upstreamName('up'))
    if (definition?.type !== 'http' || definition.auth?.type !== 'user') throw new Error('no such upstream')
    const log = pino({ level: 'silent' })
    const store = await openStore({ kind: 'sqlite', path: ':memory:' }, wallClock, log)
    const epochs = { epochOf: () => Promise.resolve(0), isCurrentEpoch: () => true }
    const keys = createVaultKeys({ store, snapshot: () => snapshot, epochs, clock: steadyClock, log })
    const values = createSealedValues(store, keys, log)
    const grants = await createGrants({ store, values, epochs, upstreamsOf: () => ['up'], clock: steadyClock, log })
    t.teardown(async () => {
      await grants.close()
      await store.close()
    })
    const servers = { fetch, firstIssuers: createFirstIssuers(store, log) }
    const publicUrl = () => 'https://gateway.example'
    const accounts = createAccounts({ store, values, grants, servers, publicUrl, wall: wallClock, log })
    const ada = { tenant: tenantId('acme'), issuer: 'urn:gatehouse:key', subject: 'ada' }

    const link = new URL(await accounts.begin(definition, definition.auth, ada))
    t.equal(link.origin + link.pathname, page)
    t.equal(link.searchParams.get('redirect_uri'), 'https://gateway.example/t/acme/connections/callback')
    const back = new URLSearchParams({ code: 'a-code', state: link.searchParams.get('state') ?? '' })
    t.equal(await accounts.finish(back, ada, () => definition), 'up', there.faults.join())
    const account = (await grants.get(ada, 'up'))?.account
    t.match(account, { issuer, name: script.account[1] })
    await accounts.disconnect(definition, ada)
    t.same(asked, expected, provider)
    t.equal(there.back.length, expected.length === 3 ? 1 : 0)
    t.same(there.faults, [])
    t.equal(await grants.get(ada, 'up'), undefined)
  }
})
