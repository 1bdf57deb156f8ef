// Providers that people sign in at and that differ from OpenID Connect: which one an issuer is of, and what it is asked.

import t from 'tap'
import type { createFetch } from '../../src/egress/fetch.ts'
import { productOf, providerPresets } from '../../src/config/auth/providers/presets.ts'
import { createSignIn } from '../../src/login/people/sign-in.ts'
import { tenantId } from '../../src/protocol/messages.ts'
import { base, compiled, withValue } from '../config/kit.ts'

t.test('an issuer says which product it is of', (t) => {
  for (const [name, { behindLogin }] of Object.entries(providerPresets)) {
    const [, issuer = ''] = /issuer: (\S+)/.exec(behindLogin.example) ?? []
    t.equal(productOf(issuer), name, issuer)
  }
  for (const issuer of [
    'https://accounts.google.com.evil.example',
    'https://okta.example.com',
    'http://127.0.0.1:1234'
  ])
    t.equal(productOf(issuer), 'generic', issuer)
  t.end()
})

t.test('where people sign in may be a reference, as every text of the configuration', (t) => {
  const front = (issuer: string) => {
    const provider = { issuer, clientId: 'gatehouse', clientSecret: 'at-that-provider' }
    const config = withValue(['tenants', 'acme', 'auth', 'login'], { provider }, base())
    return withValue(['publicUrl'], 'https://mcp.example.com', config)
  }
  const folder = t.testdir({ issuer: 'https://accounts.google.com\n', 'two-parts': '{tenantid}' })
  const options = { path: `${folder}/c.json`, env: { IDP: 'https://idp.example.com' } }
  const issuerOf = (issuer: string) =>
    compiled(front(issuer), options).tenants.get(tenantId('acme'))?.auth.login?.provider.issuer
  t.equal(issuerOf('${IDP}'), 'https://idp.example.com')
  t.equal(issuerOf('${IDP}/realms/a'), 'https://idp.example.com/realms/a')
  t.equal(issuerOf('${file:issuer}'), 'https://accounts.google.com')
  t.throws(() => issuerOf('https://idp.example.com/${file:two-parts}'), /people sign in at one provider/)
  t.throws(() => issuerOf('${NOT_SET}'), /NOT_SET, which is not set/)
  t.end()
})

/** What a browser that is sent there is sent with. */
async function askedOf(issuer: string, prompt?: string, scopes?: readonly string[]) {
  const provider = { issuer, clientId: 'gatehouse', clientSecret: 'at-that-provider', ...(scopes && { scopes }) }
  const config = withValue(['tenants', 'acme', 'auth', 'login'], { provider }, base())
  const { login } =
    compiled(withValue(['publicUrl'], 'https://mcp.example.com', config)).tenants.get(tenantId('acme'))?.auth ?? {}
  if (login === undefined) throw new Error('there is no login front')
  const metadata = {
    issuer,
    authorization_endpoint: 'https://at.example/authorize',
    token_endpoint: 'https://at.example'
  }
  const fetch: ReturnType<typeof createFetch> = async () => Response.json(metadata)
  const uris = { redirectUri: `${login.issuer}/callback`, signedOutUri: '' }
  const signIn = createSignIn({ provider: login.provider, ...uris }, fetch, { now: () => 0 })
  const { url } = await signIn.begin('uid', prompt)
  return Object.fromEntries(new URL(url).searchParams)
}

t.test('Google gives refresh tokens for parameters of its own, and knows no scope for them', async (t) => {
  const google = 'https://accounts.google.com'
  const usual = { scope: 'openid profile email', access_type: 'offline' }
  t.match(await askedOf(google), { ...usual, prompt: 'consent' })
  t.match(await askedOf(google, 'login'), { ...usual, prompt: 'consent select_account' })
  const asked = await askedOf(google, undefined, ['openid', 'email'])
  t.equal(asked['scope'], 'openid email')
  t.notOk('access_type' in asked, 'who asks for none gets none')
})

t.test('Cognito gives them unasked, and others for the scope of OpenID Connect', async (t) => {
  const cognito = await askedOf('https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_AbCdEfGhI')
  t.match([cognito['scope'], cognito['prompt']], ['openid profile email', undefined])
  const other = await askedOf('https://acme.okta.com', 'login')
  t.match(other, { scope: 'openid profile email offline_access', prompt: 'login' })
})
