// Case 49: what a proxy would say of the outside, said by anybody. Not believed: not for Host, not for the resource, not in the log.

import t from 'tap'
import { acme, initializeBody } from '../kit/acme.ts'
import { jsonHeaders, send } from '../kit/client.ts'

const forged = {
  'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https', 'x-forwarded-for': '203.0.113.7', 'x-forwarded-port': '443', 'x-forwarded-prefix': '/evil', 'x-real-ip': '203.0.113.7',
  forwarded: 'for=203.0.113.7;host=evil.example;proto=https', 'x-host': 'evil.example', 'x-original-host': 'evil.example', 'x-forwarded-server': 'evil.example', via: '1.1 evil.example'
}

t.test('forged forwarding headers change nothing', async (t) => {
  const house = await acme(t)
  const challenge = async (headers: object) => (await send(house.url(), { headers: { ...jsonHeaders, ...headers }, body: initializeBody() })).headers['www-authenticate']
  const metadata = async (headers: object) => (await send(`${house.publicUrl}/.well-known/oauth-protected-resource/t/acme/mcp`, { method: 'GET', headers: { ...headers } })).json
  t.equal(await challenge(forged), await challenge({}))
  t.same(await metadata(forged), await metadata({}))
  t.match(await metadata(forged), { resource: house.url() })
  t.equal((await send(house.url(), { headers: { ...jsonHeaders, ...forged, 'x-forwarded-host': `127.0.0.1:${house.port}`, host: 'evil.example' }, body: initializeBody() })).status, 403, 'nor do they make up for a wrong Host')
  t.notMatch(JSON.stringify(house.log), /evil\.example|203\.0\.113\.7/)
})
