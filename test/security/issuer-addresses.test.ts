// An issuer that the operator wrote, and whose metadata lead elsewhere (SSRF): its own origin is asked wherever it is,
// and another one, such as a service of this machine, is asked for nothing unless the operator opens its range.

import { createServer as createWebServer } from 'node:http'
import { createServer } from 'node:https'
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { browser } from '../kit/browser.ts'
import { linkToSignIn } from '../kit/connect-page.ts'
import { forgingIssuer } from '../kit/forging-issuer.ts'
import { freePort } from '../kit/free-port.ts'
import { gateway } from '../kit/gateway.ts'
import { listen } from '../kit/listen.ts'
import { trustedLocalhost } from '../kit/localhost-tls.ts'
import { modernRequest } from '../kit/modern-client.ts'

const { cert, key } = await trustedLocalhost(t)

/** Issuers, and a service at another origin of this machine that their metadata name. */
async function rig(t: Test, allow: readonly string[]) {
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const endpoint = `${origin}/t/acme/mcp`
  const tokens = await forgingIssuer(t, { resource: endpoint, now: Date.now() })
  const asked: string[] = []
  let connections = 0
  const inside = createServer({ cert, key }, (request, response) => {
    asked.push(request.url ?? '')
    request.resume()
    const opaque = { active: true, token_type: 'Bearer', sub: 'ada', client_id: 'a-host', aud: endpoint, scope: '' }
    const answer = request.url === '/jwks' ? { keys: tokens.published } : opaque
    const status = request.url === '/token' ? 400 : 200
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  })
  inside.on('connection', () => (connections += 1))
  const there = `https://localhost:${new URL(await listen(t, inside)).port}`
  const issuer: string = await listen(
    t,
    createWebServer((_request, response) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(
        JSON.stringify({
          issuer,
          jwks_uri: `${there}/jwks`,
          introspection_endpoint: `${there}/introspect`,
          authorization_endpoint: `${issuer}/authorize`,
          token_endpoint: `${there}/token`,
          response_types_supported: ['code']
        })
      )
    )
  )
  const made = await gateway(t, {
    upstreams: { up: { url: 'http://127.0.0.1:1/mcp', auth: { type: 'userSecret', header: 'X-Api-Key' } } },
    auth: {
      issuers: [{ issuer, introspection: { clientId: 'gatehouse', clientSecret: 'of the gateway' } }],
      signIn: { issuer, clientId: 'gatehouse', clientSecret: 'of the gateway' }
    },
    top: {
      listen: { host: '127.0.0.1', port },
      publicUrl: origin,
      egress: { allow },
      vault: { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] }
    }
  })
  const statusOf = async (token: string) => (await modernRequest(endpoint, 'tools/list', {}, { token })).status
  return {
    log: made.log,
    asked,
    connections: () => connections,
    signed: async () => statusOf(await tokens.sign({ iss: issuer, sub: 'ada', aud: endpoint })),
    opaque: () => statusOf('an-opaque-token-0123456789'),
    async signIn() {
      const tab = browser()
      const page = `${origin}/t/acme/connections`
      const { searchParams } = (await tab.go(linkToSignIn(await tab.go(page, 'none')), `${issuer}/authorize`)).url
      const back = new URLSearchParams({ code: 'a-code', state: searchParams.get('state') ?? '' })
      return (await tab.go(`${page}/signed-in?${String(back)}`, 'none')).status
    }
  }
}

t.test('what is inside is asked for no keys, about no token, and shown no code', async (t) => {
  const { log, asked, connections, signed, opaque, signIn } = await rig(t, [])
  t.equal(await signed(), 503)
  t.equal(await opaque(), 503)
  t.equal(await signIn(), 400)
  t.equal(connections(), 0)
  t.same(asked, [])
  const reasons = log.flatMap(({ reason }) =>
    /is no public address.*egress\.allow/.test(String(reason)) ? [reason] : []
  )
  t.equal(reasons.length, 3, 'and the log says of each what to do')
})

t.test('where the operator opens its range, it is', async (t) => {
  const { asked, signed, opaque, signIn } = await rig(t, ['127.0.0.0/8', '::1/128'])
  t.equal(await signed(), 200)
  t.equal(await opaque(), 200)
  t.equal(await signIn(), 400, 'no code is good there')
  t.same(asked, ['/jwks', '/introspect', '/token'])
})
