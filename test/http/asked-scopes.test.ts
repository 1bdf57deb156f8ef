// What hosts are told to ask for may be called otherwise than what a token has to have.

import t from 'tap'
import { acmeGateway, initializeBody } from '../kit/acme-gateway.ts'
import { jsonHeaders, send } from '../kit/client.ts'
import { forgingIssuer, type ForgingIssuer } from '../kit/forging-issuer.ts'

const authOf = (idp: ForgingIssuer, more: object = {}, tenant: object = {}) => ({
  issuers: [{ issuer: idp.issuer, jwksUri: idp.jwksUri, ...more }],
  requiredScopes: ['mcp'],
  ...tenant
})

const present = (url: string, token?: string) =>
  send(url, {
    headers: { ...jsonHeaders, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
    body: initializeBody()
  })
const wellKnown = (url: string): string => url.replace('/t/', '/.well-known/oauth-protected-resource/t/')

t.test('a prefix stands in metadata and challenges, and is taken off the scopes of tokens', async (t) => {
  const idp = await forgingIssuer(t, { resource: 'urn:none', now: Date.now() })
  const acme = await acmeGateway(t, { auth: authOf(idp, { scopePrefix: 'api://1234/' }) })
  const url = acme.url()
  t.match((await send(wellKnown(url), { method: 'GET' })).json, { scopes_supported: ['api://1234/mcp'] })
  t.match((await present(url)).headers['www-authenticate'], 'scope="api://1234/mcp"')
  const poor = await present(url, await idp.sign({ aud: url, scope: 'other' }))
  t.equal(poor.status, 403)
  t.match(poor.headers['www-authenticate'], /error="insufficient_scope".*scope="api:\/\/1234\/mcp"/)
  for (const scope of ['mcp', 'openid api://1234/mcp'])
    t.equal((await present(url, await idp.sign({ aud: url, scope }))).status, 200, scope)
  for (const scope of ['api://12345/mcp', 'api://1234/', 'api://1234/other'])
    t.equal((await present(url, await idp.sign({ aud: url, scope }))).status, 403, scope)
})

t.test('other names altogether, and those of a rule beside them', async (t) => {
  const idp = await forgingIssuer(t, { resource: 'urn:none', now: Date.now() })
  const acme = await acmeGateway(t, {
    auth: authOf(
      idp,
      { authorizationServer: 'https://login.example.com/v2.0' },
      { askedScopes: ['api://1234/.default'] }
    ),
    policy: { default: 'allow', rules: [{ name: 'write', effect: 'requires', scopes: ['write'] }] }
  })
  const url = acme.url()
  t.match((await send(wellKnown(url), { method: 'GET' })).json, {
    authorization_servers: ['https://login.example.com/v2.0'],
    scopes_supported: ['api://1234/.default']
  })
  t.match((await present(url)).headers['www-authenticate'], 'scope="api://1234/.default"')
  const call = async (scope: string) =>
    send(url, {
      headers: {
        ...jsonHeaders,
        authorization: `Bearer ${await idp.sign({ aud: url, scope })}`,
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/call',
        'mcp-name': 'echo'
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: {
          name: 'echo',
          arguments: { text: 'x' },
          _meta: {
            'io.modelcontextprotocol/protocolVersion': '2026-07-28',
            'io.modelcontextprotocol/clientCapabilities': {},
            'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' }
          }
        }
      })
    })
  const poor = await call('mcp')
  t.equal(poor.status, 403)
  t.match(poor.headers['www-authenticate'], 'scope="api://1234/.default write"')
  t.equal((await call('mcp write')).status, 200)
})

t.test('an audience of an endpoint is good at that endpoint alone', async (t) => {
  const idp = await forgingIssuer(t, { resource: 'urn:none', now: Date.now() })
  const acme = await acmeGateway(t, {
    auth: authOf(idp),
    endpoints: { default: { upstreams: ['up'] }, files: { upstreams: ['up'], audiences: ['api://files.acme'] } }
  })
  const token = await idp.sign({ aud: 'api://files.acme' })
  t.equal((await present(acme.url('files'), token)).status, 200)
  t.equal((await present(acme.url(), token)).status, 401)
  t.equal((await present(acme.url(), await idp.sign({ aud: acme.url() }))).status, 200)
  const sse = await send(acme.url('files').replace(/mcp$/, 'messages'), {
    headers: { ...jsonHeaders, authorization: `Bearer ${token}` },
    body: initializeBody()
  })
  t.not(sse.status, 401, 'also at its HTTP+SSE')
})

t.test('each organisation of an issuer with a placeholder has its own authorization server', async (t) => {
  const idp = await forgingIssuer(t, { resource: 'urn:none', now: Date.now() })
  const issuer = `${idp.issuer}/{organisation}`
  const more = { issuer, placeholderValues: ['a', 'b'], authorizationServer: 'https://login.example/{organisation}/v2' }
  const acme = await acmeGateway(t, { auth: authOf(idp, more) })
  const url = acme.url()
  t.match((await send(wellKnown(url), { method: 'GET' })).json, {
    authorization_servers: ['https://login.example/a/v2', 'https://login.example/b/v2']
  })
  for (const [who, status] of [
    ['a', 200],
    ['b', 200],
    ['c', 401],
    ['{organisation}', 401]
  ] as const) {
    const token = await idp.sign({ iss: `${idp.issuer}/${who}`, aud: url, scope: 'mcp' })
    t.equal((await present(url, token)).status, status, who)
  }
})
