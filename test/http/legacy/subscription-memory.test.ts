// What subscriptions take up is counted for the person behind all sessions.

import t from 'tap'
import { acmeGateway, keyOf } from '../../kit/acme-gateway.ts'
import { legacyClient } from '../../kit/client.ts'

t.test('long URIs on many sessions are refused when the share of their caller is used up', async (t) => {
  const acme = await acmeGateway(t, { limits: { memoryBytes: 268_435_456 } })
  const uri = (at: number): string => `file:///readme.md?${at}${'x'.repeat(8_000)}`
  const statuses = new Set<unknown>()
  for (let session = 0; session < 4 && !statuses.has('too_many'); session++) {
    const client = await legacyClient(acme.url(), keyOf.ada)
    for (let from = 0; from < 1_000 && !statuses.has('too_many'); from += 50) {
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, at) => client.request('resources/subscribe', { uri: uri(from + at) }))
      )
      for (const { json } of answers) statuses.add(json.error?.data?.reason ?? json.error?.message ?? 'subscribed')
    }
  }
  t.same([...statuses], ['subscribed', 'too_many'])
})
