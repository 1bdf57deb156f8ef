// Attack: a bearer token that was stolen is sent from another address. It is accepted, as bearer tokens are; the audit
// log says from where each request came. A token that is bound to a key (DPoP) is worth nothing to the thief.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { acmeGateway, initializeBody } from '../kit/acme-gateway.ts'
import { jsonHeaders, send } from '../kit/client.ts'
import { keyHolder } from '../kit/dpop.ts'

t.test('a replayed bearer token is recorded with the address that it came from; a bound one is refused', async (t) => {
  const file = join(t.testdir(), 'audit.jsonl')
  const acme = await acmeGateway(t, { top: { audit: { store: false, file }, trustedProxies: ['127.0.0.0/8'] } })
  const from = (address: string, headers: Record<string, string>) =>
    send(acme.url(), { headers: { ...jsonHeaders, 'x-forwarded-for': address, ...headers }, body: initializeBody() })
  const [own, foreign] = ['203.0.113.1', '198.51.100.7']
  const bearer = { authorization: `Bearer ${await acme.bearer('JWT')}` }
  for (const address of [own, foreign]) t.equal((await from(address, bearer)).status, 200)

  const client = await keyHolder()
  const token = await acme.bearer('JWT', 'ada', { cnf: { jkt: client.thumbprint } })
  const authorization = `DPoP ${token}`
  const dpop = await client.proof({ url: acme.url(), token })
  t.equal((await from(own, { authorization, dpop })).status, 200)
  t.equal((await from(foreign, { authorization, dpop })).status, 401, 'what was seen on the way is used up')
  t.equal((await from(foreign, { authorization })).status, 401)
  await acme.close()

  const records = (await readFile(file, 'utf8'))
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  const opened = records.filter(({ action }) => action === 'opened').map(({ from: address }) => address)
  t.same(opened, [own, foreign, own])
  const refused = records.filter(({ decision }) => decision === 'denied').map(({ from: address }) => address)
  t.same(refused, [foreign, foreign])
})
