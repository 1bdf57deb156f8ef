// Connections on which nothing is said, as browsers and HTTP pools open them in advance.

import { once } from 'node:events'
import t from 'tap'
import { acmeGateway, keyOf } from '../kit/acme-gateway.ts'
import { legacyClient } from '../kit/client.ts'
import { dial } from '../kit/raw-http.ts'

t.test('they do not hold up a gateway that stops', async (t) => {
  const acme = await acmeGateway(t, { limits: { drainMs: 60_000 } })
  const silent = [dial(acme.port), dial(acme.port)]
  await Promise.all(silent.map((socket) => once(socket, 'connect')))
  const client = await legacyClient(acme.url(), keyOf.ada)
  t.equal((await client.request('ping')).status, 200, 'nor one that serves')
  const closed = silent.map((socket) => once(socket, 'close'))
  const begun = performance.now()
  await Promise.all([acme.close(), ...closed])
  t.ok(performance.now() - begun < 30_000, 'long before the time for calls is over')
})
