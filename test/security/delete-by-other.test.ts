// Attack: a session is ended by DELETE with the credential of another user. And its own user ends it amid a hundred
// calls.

import t from 'tap'
import { acmeGateway, credentials, keyOf } from '../kit/acme-gateway.ts'
import { legacyClient, send } from '../kit/client.ts'
import { until } from '../kit/until.ts'

for (const kind of credentials) {
  t.test(`DELETE by another, by ${kind}, ends nothing`, async (t) => {
    const acme = await acmeGateway(t)
    const ada = await legacyClient(acme.url(), await acme.bearer(kind, 'ada'))
    await ada.request('tools/call', { name: 'echo' })
    const stream = await ada.listen()
    t.equal(
      (
        await send(acme.url(), {
          method: 'DELETE',
          headers: { ...ada.headers, authorization: `Bearer ${await acme.bearer(kind, 'bob')}` }
        })
      ).status,
      404
    )
    t.equal((await ada.request('ping')).status, 200)
    t.equal(acme.upstream.sessions.size, 2)

    t.equal((await ada.end()).status, 204, 'while her own does')
    await stream.ended
    await until('the upstream session is ended too', () => acme.upstream.sessions.size === 1)
    t.equal((await ada.request('ping')).status, 404)
  })
}

t.test(
  'after DELETE amid a hundred calls each ends with a result or an error, and the session stays gone',
  async (t) => {
    const acme = await acmeGateway(t)
    const client = await legacyClient(acme.url(), keyOf.ada)
    const calls = Array.from({ length: 100 }, (_, n) =>
      client.request('tools/call', { name: n % 2 === 0 ? 'slow' : 'echo', arguments: { n } })
    )
    await until('some run', () => acme.upstream.server.calls('slow') > 10)
    const [ended] = await Promise.all([client.end(), client.request('logging/setLevel', { level: 'debug' })])
    t.equal(ended.status, 204)
    const answers = await Promise.all(calls)
    t.ok(
      answers.every(
        ({ status, json }) =>
          (status === 200 && (json.result !== undefined || json.error.data.reason === 'session_unknown')) ||
          (status === 404 && json.error.data.reason === 'session_unknown')
      )
    )
    t.ok(
      answers.some(({ status, json }) => status === 200 && json.error !== undefined),
      'some were in flight'
    )
    t.equal((await client.request('ping')).status, 404)
    await until('no connection is left behind', () => acme.upstream.sessions.size === 1)
    t.equal((await client.request('ping')).status, 404)
  }
)
