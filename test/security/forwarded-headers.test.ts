// Attack: forged Forwarded and X-Forwarded-* headers. They are believed neither for Host, nor for the resource, nor in
// the log.

import t from 'tap'
import { acmeGateway, initializeBody } from '../kit/acme-gateway.ts'
import { jsonHeaders, send } from '../kit/client.ts'

const forged = {
  'x-forwarded-host': 'evil.example',
  'x-forwarded-proto': 'https',
  'x-forwarded-for': '203.0.113.7',
  'x-forwarded-port': '443',
  'x-forwarded-prefix': '/evil',
  'x-real-ip': '203.0.113.7',
  forwarded: 'for=203.0.113.7;host=evil.example;proto=https',
  'x-host': 'evil.example',
  'x-original-host': 'evil.example',
  'x-forwarded-server': 'evil.example',
  via: '1.1 evil.example'
}

t.test('forged forwarding headers change nothing', async (t) => {
  const acme = await acmeGateway(t)
  const challenge = async (headers: object) =>
    (await send(acme.url(), { headers: { ...jsonHeaders, ...headers }, body: initializeBody() })).headers[
      'www-authenticate'
    ]
  const metadata = async (headers: object) =>
    (
      await send(`${acme.publicUrl}/.well-known/oauth-protected-resource/t/acme/mcp`, {
        method: 'GET',
        headers: { ...headers }
      })
    ).json
  t.equal(await challenge(forged), await challenge({}))
  t.same(await metadata(forged), await metadata({}), 'metadata are the same')
  t.match(await metadata(forged), { resource: acme.url() })
  t.equal(
    (
      await send(acme.url(), {
        headers: { ...jsonHeaders, ...forged, 'x-forwarded-host': `127.0.0.1:${acme.port}`, host: 'evil.example' },
        body: initializeBody()
      })
    ).status,
    403,
    'nor do they make up for a wrong Host'
  )
  // The refused Host is named, by itself alone.
  t.match(
    acme.log.find(({ host }) => host === 'evil.example'),
    { msg: 'refused' }
  )
  t.notMatch(JSON.stringify(acme.log).replaceAll('"host":"evil.example"', ''), /evil\.example|203\.0\.113\.7/)
})
