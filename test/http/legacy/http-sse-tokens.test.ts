// What a token must be for at the transport of HTTP+SSE, and how a host finds out (RFC 9728).

import t from 'tap'
import { acmeGateway } from '../../kit/acme-gateway.ts'
import { legacyClient, send } from '../../kit/client.ts'
import { httpSseClient, sseUrl } from '../../kit/http-sse-client.ts'

const wellKnown = (url: string): string => url.replace('/t/', '/.well-known/oauth-protected-resource/t/')

t.test('who comes without a token is led to metadata whose resource is the URL that it came to', async (t) => {
  const acme = await acmeGateway(t)
  for (const endpoint of ['default', 'files']) {
    const sse = sseUrl(acme.url(endpoint))
    const challenged = [
      await send(sse, { method: 'GET' }),
      await send(sse.replace(/sse$/, 'messages?sessionId=x'), {
        headers: { 'content-type': 'application/json' },
        body: '{}'
      })
    ]
    for (const { status, headers } of challenged) {
      t.equal(status, 401)
      t.equal(headers['www-authenticate'], `Bearer resource_metadata="${wellKnown(sse)}"`)
    }
    const metadata = await send(wellKnown(sse), { method: 'GET' })
    t.match(metadata.json, { resource: sse, authorization_servers: [acme.issuer.issuer] })
  }
  t.equal((await send(wellKnown(sseUrl(acme.url('nothing'))), { method: 'GET' })).status, 404)
  t.equal(
    (await send(wellKnown(acme.url().replace(/mcp$/, 'messages')), { method: 'GET' })).status,
    404,
    'where messages are posted is no resource of its own'
  )
})

t.test('a token for either URL of the endpoint is good; for anything else, or for more, it is not', async (t) => {
  const acme = await acmeGateway(t)
  const mcp = acme.url()
  const sse = sseUrl(mcp)
  for (const aud of [sse, mcp, [sse], [sse, mcp]]) {
    const client = await httpSseClient(mcp, await acme.bearer('JWT', 'ada', { aud }))
    t.same((await client.request('ping')).result, {}, JSON.stringify(aud))
    client.close()
  }
  const refused = async (url: string, aud: unknown): Promise<number> =>
    (
      await send(url, {
        method: 'GET',
        headers: { authorization: `Bearer ${await acme.bearer('JWT', 'ada', { aud })}` }
      })
    ).status
  for (const aud of [
    acme.url('files'),
    sseUrl(acme.url('files')),
    mcp.replace(/mcp$/, 'messages'),
    'https://elsewhere.example',
    [sse, 'https://elsewhere.example'],
    undefined,
    [],
    { [sse]: 1 }
  ]) {
    t.equal(await refused(sse, aud), 401, JSON.stringify(aud))
  }
  t.equal(await refused(mcp, sse), 401, 'a token that a host got for HTTP+SSE is for nothing else')
  t.ok((await legacyClient(mcp, await acme.bearer('JWT'))).sessionId)
})

t.test('a verdict at one transport is not the verdict at the other', async (t) => {
  const acme = await acmeGateway(t)
  const token = await acme.bearer('JWT', 'ada', { aud: sseUrl(acme.url()) })
  const client = await httpSseClient(acme.url(), token)
  t.equal(
    (
      await send(acme.url(), {
        headers: { ...client.headers, accept: 'application/json, text/event-stream' },
        body: '{}'
      })
    ).status,
    401
  )
  t.same((await client.request('ping')).result, {})
  client.close()
})
