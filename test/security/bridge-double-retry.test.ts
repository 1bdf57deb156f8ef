// A parked call is taken up once: of two clients that come back with the same state, at once or one after the other, exactly one gets on.

import t from 'tap'
import { acme, keyOf } from '../kit/acme.ts'
import { accepted, answers, round } from '../kit/rounds.ts'

const spent = { status: 200, json: { error: { code: -32602, data: { reason: 'invalid_state' } } } }

t.test('ten retries at once: one has the result, the upstream one answer', async (t) => {
  const house = await acme(t)
  const ada = { url: house.url(), token: keyOf.ada }
  const elicit = { name: 'elicit', arguments: {} }
  const parked = await round(ada, elicit)
  const all = await Promise.all(Array.from({ length: 10 }, async (_, n) => (await round(ada, elicit, answers(parked, accepted({ name: `no. ${n}` })))).answer))
  const done = all.filter(({ json }) => json.result !== undefined)
  t.equal(done.length, 1)
  t.match(done[0]?.json, { result: { resultType: 'complete' } })
  for (const refused of all.filter((answer) => answer !== done[0])) t.match(refused, spent)
  t.equal(house.upstream.server.calls('elicit'), 1)
  t.equal(house.upstream.server.answers.size, 1)
})

t.test('a state of an earlier round is spent as well', async (t) => {
  const house = await acme(t)
  const ada = { url: house.url(), token: keyOf.ada }
  const twice = { name: 'elicit', arguments: { count: 2 } }
  const first = await round(ada, twice)
  t.equal(Object.keys(first.asked).length, 2)
  const [one, other] = Object.keys(first.asked) as [string, string]
  const second = await round(ada, twice, { requestState: first.state, inputResponses: { [one]: accepted({ name: 'one' }) } })
  t.same(Object.keys(second.asked), [other], 'what is missing is asked for again')
  t.not(second.state, first.state)
  t.match((await round(ada, twice, answers(first, accepted()))).answer, spent)
  t.match((await round(ada, twice, answers(second, accepted({ name: 'other' })))).answer.json, { result: { resultType: 'complete' } }, 'and the newest one is good')
  t.equal(house.upstream.server.answers.size, 2)
})
