// Tenants that have API keys and no issuer: nobody is sent to an authorization server that does not exist.

import t from 'tap'
import { acmeGateway, initializeBody, keyOf } from '../kit/acme-gateway.ts'
import { jsonHeaders, send } from '../kit/client.ts'
import { gateway, key, type TestGateway } from '../kit/gateway.ts'

const scoped = {
  keys: [
    { name: 'full', key, scopes: ['mcp'] },
    { name: 'poor', key: keyOf.bob }
  ],
  requiredScopes: ['mcp']
}

/** What looks like a token of somebody else's identity provider. */
const foreignToken = ['{"alg":"RS256","typ":"at+jwt"}', '{"iss":"https://idp.example"}', 'signature']
  .map((part) => Buffer.from(part).toString('base64url'))
  .join('.')

const present = (made: TestGateway, authorization?: string) =>
  send(made.url(), {
    headers: { ...jsonHeaders, ...(authorization === undefined ? {} : { authorization }) },
    body: initializeBody()
  })

const wellKnown = (made: TestGateway): string => made.url().replace('/t/', '/.well-known/oauth-protected-resource/t/')

t.test('a 401 of a tenant with keys only says that an API key is needed, and names no metadata', async (t) => {
  const made = await gateway(t, { upstreams: {} })
  for (const [authorization, text] of [
    [undefined, /API key.*Authorization: Bearer/],
    ['Bearer gh_nobodys_key_0123456789', /not an API key of the tenant/],
    [`Bearer ${foreignToken}`, /not an API key of the tenant/]
  ] as const) {
    const { status, headers, json } = await present(made, authorization)
    t.equal(status, 401)
    t.match(json.error, { message: text, data: { reason: 'unauthenticated' } })
    const challenge = headers['www-authenticate'] ?? ''
    t.match(challenge, /^Bearer /, 'RFC 9110 section 15.5.2: a 401 has a challenge')
    t.notMatch(challenge, 'resource_metadata')
    t.notMatch(json.error.message, 'resource_metadata')
    if (authorization !== undefined) t.match(challenge, 'error="invalid_token"')
  }
  t.equal((await present(made, `Bearer ${key}`)).status, 200)
})

t.test('nor does a key without a needed scope lead to metadata', async (t) => {
  const made = await gateway(t, { upstreams: {}, auth: scoped })
  const { status, headers, json } = await present(made, `Bearer ${keyOf.bob}`)
  t.equal(status, 403)
  t.match(json.error.message, /key needs all of these scopes: mcp/)
  t.match(headers['www-authenticate'], /error="insufficient_scope".*scope="mcp"/)
  t.notMatch(headers['www-authenticate'], 'resource_metadata')
  t.equal((await present(made, `Bearer ${key}`)).status, 200)
})

t.test('its metadata is not there, because it would name no authorization server', async (t) => {
  const made = await gateway(t, { upstreams: {} })
  const { status, json } = await send(wellKnown(made), { method: 'GET' })
  t.equal(status, 404)
  t.match(json.error.message, /no authorization server/)
})

t.test('a tenant with an issuer names its metadata, and has it', async (t) => {
  const acme = await acmeGateway(t)
  const { status, headers, json } = await present(acme)
  t.equal(status, 401)
  t.equal(headers['www-authenticate'], `Bearer resource_metadata="${wellKnown(acme)}"`)
  t.match(json.error.message, /Follow resource_metadata to get one, or send an API key of the tenant\.$/)
  t.match(await send(wellKnown(acme), { method: 'GET' }), {
    status: 200,
    json: { authorization_servers: [acme.issuer.issuer] }
  })
})

t.test(
  'who looks for an authorization server at the root of the origin is answered in the words of OAuth',
  async (t) => {
    const keysOnly = await gateway(t, { upstreams: {} })
    const withIssuer = await acmeGateway(t)
    const other = { auth: { keys: [{ name: 'ci', key: 'q7Xw2Zr9Lk4Vb8Nt' }] }, upstreams: {} }
    const both = await acmeGateway(t, { tenants: { other } })
    for (const [made, advice] of [
      [keysOnly, /Its endpoints take API keys\. Send one as "Authorization: Bearer KEY"\./],
      [withIssuer, /here\. The 401 of an endpoint names its metadata [^.]*\.$/],
      [both, /Where people sign in the 401 of an endpoint names its metadata.*Where it names none.*API keys/]
    ] as const) {
      for (const [path, method, body] of [
        ['/register', 'POST', '{"redirect_uris":["https://host.example/cb"]}'],
        ['/token', 'POST', 'grant_type=authorization_code&code=x'],
        ['/authorize?client_id=x', 'GET', undefined]
      ] as const) {
        const type = body?.startsWith('{') === true ? 'application/json' : 'application/x-www-form-urlencoded'
        const { status, headers, json } = await send(made.publicUrl + path, {
          method,
          ...(body !== undefined && { headers: { 'content-type': type }, body })
        })
        t.match({ status, json }, { status: 400, json: { error: 'invalid_request', error_description: advice } }, path)
        t.equal(headers['cache-control'], 'no-store')
      }
      t.equal((await send(`${made.publicUrl}/token`, { method: 'GET' })).status, 405)
    }
  }
)
