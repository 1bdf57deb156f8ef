// Attack: a request state is replayed, to take up the same parked call twice. Of several retries exactly one goes on,
// and a state of an earlier round is worth nothing.

import t from 'tap'
import { acmeGateway, keyOf } from '../kit/acme-gateway.ts'
import { key } from '../kit/gateway.ts'
import { parkingGateway, transports } from '../kit/parking-gateway.ts'
import { accepted, answers, round } from '../kit/rounds.ts'

const spent = { status: 200, json: { error: { code: -32602, data: { reason: 'invalid_state' } } } }

t.test('of ten retries at once one gets the result, and the upstream gets one response', async (t) => {
  const acme = await parkingGateway(t)
  const elicit = { name: 'elicit', arguments: {} }
  for (const transport of transports) {
    const ada = { url: acme.url(transport), token: key }
    const parked = await round(ada, elicit)
    const all = await Promise.all(
      Array.from({ length: 10 }, async () => (await round(ada, elicit, answers(parked, accepted()))).answer)
    )
    const done = all.filter(({ json }) => json.result !== undefined)
    t.equal(done.length, 1, transport)
    t.match(done[0]?.json, { result: { resultType: 'complete' } })
    for (const refused of all.filter((answer) => answer !== done[0])) t.match(refused, spent)
  }
  for (const { server } of [acme.http, acme.sse]) t.same([server.calls('elicit'), server.answers.size], [1, 1])
})

t.test('a request state of an earlier round is worth nothing', async (t) => {
  const acme = await acmeGateway(t)
  const ada = { url: acme.url(), token: keyOf.ada }
  const twice = { name: 'elicit', arguments: { count: 2 } }
  const first = await round(ada, twice)
  t.equal(Object.keys(first.inputRequests).length, 2)
  const [one, other] = Object.keys(first.inputRequests) as [string, string]
  const second = await round(ada, twice, {
    requestState: first.state,
    inputResponses: { [one]: accepted({ name: 'one' }) }
  })
  t.same(Object.keys(second.inputRequests), [other], 'what is missing is asked for again')
  t.not(second.state, first.state)
  t.match((await round(ada, twice, answers(first, accepted()))).answer, spent)
  t.match(
    (await round(ada, twice, answers(second, accepted({ name: 'other' })))).answer.json,
    { result: { resultType: 'complete' } },
    'and the newest one is good'
  )
  t.equal(acme.upstream.server.answers.size, 2)
})
