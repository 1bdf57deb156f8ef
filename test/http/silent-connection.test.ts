// Connections on which nothing is said, as browsers and HTTP pools open them in advance.

import { once } from 'node:events'
import t from 'tap'
import { acme, keyOf } from '../kit/acme.ts'
import { legacyClient } from '../kit/client.ts'
import { dial } from '../kit/raw.ts'

t.test('they do not hold up a gateway that stops', async (t) => {
  const house = await acme(t, { limits: { drainMs: 60_000 } })
  const silent = [dial(house.port), dial(house.port)]
  await Promise.all(silent.map((socket) => once(socket, 'connect')))
  const client = await legacyClient(house.url(), keyOf.ada)
  t.equal((await client.request('ping')).status, 200, 'nor one that serves')
  const closed = silent.map((socket) => once(socket, 'close'))
  const begun = performance.now()
  await Promise.all([house.close(), ...closed])
  t.ok(performance.now() - begun < 30_000, 'long before the time for calls is over')
})
