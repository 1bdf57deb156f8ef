// Keycloak met in both ways that the documents name: as the provider behind the login front, with the realm and the
// gateway of the profile `idp` of docker-compose.yml; and as the issuer itself, set up as docs/providers/keycloak.md says.

import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { decodeJwt } from 'jose'
import { parse, stringify } from 'yaml'
import { gatehouse } from '../../e2e/kit/process.ts'
import { legacyClient } from '../../kit/client.ts'
import { freePort } from '../../kit/free-port.ts'
import { until, type Teardown } from '../../kit/until.ts'
import { logIn, pkce, redirectUri, refresh, use } from '../../login/kit.ts'
import { within, type Outcome } from './foreign.ts'
import { ada, administration, clientSecret, startKeycloak } from './keycloak.ts'

const root = join(import.meta.dirname, '..', '..', '..')
const nowhere = 'no redirect is left out'

type Holds = (step: string, isSo: boolean) => void

/** The gateway of the profile, with the provider where it is here, and beside it a tenant without login front. */
async function startGateway(t: Teardown, port: number, keycloak: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const upstreams = {
    notes: { command: process.execPath, args: [join(root, 'deploy/compose/example-server.mjs')] }
  }
  const { tenants } = parse(readFileSync(join(root, 'deploy/compose/idp/gatehouse.yaml'), 'utf8')) as {
    tenants: { keycloak: { auth: { login: { provider: { issuer: string; clientSecret: string } } } } }
  }
  const { auth } = tenants.keycloak
  const { provider } = auth.login
  Object.assign(provider, { issuer: provider.issuer.replace(/^http:\/\/[^/]+/, keycloak), clientSecret })
  // The shorter tokens live, the more often they may be refreshed.
  Object.assign(auth.login, { tokenSeconds: 60 })
  const direct = {
    requiredScopes: ['mcp'],
    // The roles of the realm are in the same client scope as the mapper that puts this into `aud`.
    issuers: [{ provider: 'keycloak', issuer: `${keycloak}/realms/acme`, otherAudiences: ['account'] }]
  }
  const policy = {
    default: 'deny',
    rules: [{ name: 'readers', effect: 'allow', who: { roles: ['reader'] }, what: { names: ['echo'] } }]
  }
  await writeFile(
    join(folder, 'gatehouse.yaml'),
    stringify({
      listen: { host: '127.0.0.1', port },
      publicUrl: `http://localhost:${port}`,
      hosts: [`127.0.0.1:${port}`],
      store: 'memory:',
      tenants: { keycloak: { auth, upstreams }, direct: { auth: direct, upstreams, policy } }
    })
  )
  const running = gatehouse(t, ['serve', '--config', join(folder, 'gatehouse.yaml')])
  await running.ready
  return `http://localhost:${port}`
}

interface Met {
  /** Of the gateway, and of Keycloak. */
  readonly origin: string
  readonly keycloak: string
  readonly admin: ReturnType<typeof administration>
  readonly holds: Holds
}

async function behindTheFront({ origin, admin, holds }: Met): Promise<void> {
  const front = { issuer: `${origin}/login/keycloak` }
  const url = `${origin}/t/keycloak/mcp`
  const stranger = await logIn(front, url, ada('a wrong password')).catch((error: unknown) => String(error))
  holds('a wrong password leads nowhere', typeof stranger === 'string' && /no form for .allow/.test(stranger))
  const person = ada()
  const host = await logIn(front, url, person)
  holds('a person signs in, and a host gets a token', host.status === 200)
  const said = decodeJwt(host.body.access_token)
  holds('the token is for the endpoint', said.aud === url)
  holds('it has the groups that Keycloak says', JSON.stringify(said['groups']) === '["developers"]')
  const client = await legacyClient(url, host.body.access_token)
  const { text } = await client.request('tools/call', { name: 'notes__echo', arguments: { text: 'hello' } })
  holds('a tool is called with it', text.includes('hello'))
  await logIn(front, url, person)
  holds('who has signed in is not asked again', person.asked() === 1)

  const [ofAda] = await admin('GET', '/users?username=ada&exact=true')
  const [developers] = await admin('GET', '/groups?search=developers')
  const path = `/users/${String(ofAda?.['id'])}`
  await admin('DELETE', `${path}/groups/${String(developers?.['id'])}`)
  // What Keycloak said is good for half a minute.
  let last = host.body
  const refreshed = async (): Promise<boolean> => {
    const { status, body } = await refresh(front, { ...host, body: last })
    if (status === 429) throw new Error('the front was asked too often')
    if (status === 200) last = body
    return status === 200
  }
  await until('a refreshed token has the groups of now', async () => {
    if (!(await refreshed())) throw new Error('the refresh was refused')
    return JSON.stringify(decodeJwt(last.access_token)['groups']) === '[]'
  })
  holds('a refreshed token has the groups of now', true)
  await admin('PUT', path, { ...ofAda, enabled: false })
  await until('who is disabled there is out here', async () => !(await refreshed()))
  holds('who is disabled there is out here', true)
  await admin('PUT', path, { ...ofAda, enabled: true })

  const other = ada()
  await logIn(front, url, other)
  const page = await other.go(`${front.issuer}/session/end`, nowhere)
  const xsrf = /name="xsrf" value="([^"]+)"/.exec(page.html)?.[1] ?? ''
  const end = await other.go(`${front.issuer}/session/end/confirm`, nowhere, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', origin },
    body: new URLSearchParams({ xsrf, logout: 'yes' }).toString()
  })
  holds('who signs out comes back to the front', end.url.href.startsWith(`${front.issuer}/session/end/success`))
  await logIn(front, url, other)
  holds('and is asked by Keycloak the next time', other.asked() === 2)
}

/** As the steps of docs/providers/keycloak.md have an administrator do it. */
async function setUp(admin: Met['admin'], url: string): Promise<void> {
  const audience = {
    name: 'endpoint',
    protocol: 'openid-connect',
    protocolMapper: 'oidc-audience-mapper',
    config: { 'included.custom.audience': url, 'access.token.claim': 'true', 'id.token.claim': 'false' }
  }
  await admin('POST', '/client-scopes', {
    name: 'mcp',
    protocol: 'openid-connect',
    attributes: { 'include.in.token.scope': 'true' },
    protocolMappers: [audience]
  })
  await admin('POST', '/roles', { name: 'reader' })
  const [role] = await admin('GET', '/roles/reader')
  const [ofAda] = await admin('GET', '/users?username=ada&exact=true')
  await admin('POST', `/users/${String(ofAda?.['id'])}/role-mappings/realm`, [role as object])
  for (const [clientId, scopes] of [
    ['host', ['basic', 'mcp', 'roles']],
    ['elsewhere', ['basic', 'roles']]
  ] as const)
    await admin('POST', '/clients', {
      clientId,
      publicClient: true,
      redirectUris: [redirectUri],
      defaultClientScopes: scopes,
      attributes: { 'pkce.code.challenge.method': 'S256' }
    })
}

/** @returns the access token that a host gets at Keycloak itself */
async function tokenFor(keycloak: string, clientId: string): Promise<string> {
  const endpoints = `${keycloak}/realms/acme/protocol/openid-connect`
  const { verifier, challenge } = pkce()
  const parameters = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    scope: 'openid',
    code_challenge: challenge,
    code_challenge_method: 'S256'
  }
  const { url } = await ada().go(`${endpoints}/auth?${String(new URLSearchParams(parameters))}`, redirectUri)
  const answer = await fetch(`${endpoints}/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      client_id: clientId,
      redirect_uri: redirectUri,
      code: url.searchParams.get('code') ?? '',
      code_verifier: verifier
    })
  })
  return ((await answer.json()) as { access_token: string }).access_token
}

async function asIssuer({ origin, keycloak, admin, holds }: Met): Promise<void> {
  const url = `${origin}/t/direct/mcp`
  await setUp(admin, url)
  const token = await tokenFor(keycloak, 'host')
  holds('a token of Keycloak itself is taken', (await use(url, token)) === 200)
  const client = await legacyClient(url, token)
  const { text } = await client.request('tools/list', {})
  holds('and its roles are those of policies', text.includes('notes__echo') && !text.includes('notes__where'))
  holds('one that is not for the endpoint is not', (await use(url, await tokenFor(keycloak, 'elsewhere'))) === 401)
}

/** Each step is a promise; the first that does not hold ends them. @param home where Keycloak is installed */
export function meetKeycloak(peer: string, home: string): Promise<Outcome[]> {
  return within(async (t) => {
    const outcomes: Outcome[] = []
    const holds: Holds = (step, isSo) => {
      outcomes.push({ peer, step, failure: isSo ? undefined : 'it does not' })
    }
    const run = async (): Promise<void> => {
      const port = await freePort()
      const keycloak = await startKeycloak(t, home, port)
      const origin = await startGateway(t, port, keycloak)
      const met = { origin, keycloak, admin: administration(keycloak), holds }
      await behindTheFront(met)
      await asIssuer(met)
    }
    await run().catch((error: unknown) => {
      outcomes.push({ peer, step: 'runs to its end', failure: String(error) })
    })
    return outcomes
  })
}
