// A hostile older upstream that asks a client of 2026-07-28 without end: what reaches the client is bounded, the rest the upstream is
// told to ask less of; and calls left waiting for input stop at a limit that the caller can understand.

import t from 'tap'
import { acme, keyOf } from '../kit/acme.ts'
import { scriptedStdio } from '../kit/asked.ts'
import { gateway } from '../kit/gateway.ts'
import { accepted, answers, round } from '../kit/rounds.ts'
import { until } from '../kit/until.ts'

t.test('a thousand questions at once become a few, and all others are refused', async (t) => {
  const house = await acme(t)
  const ada = { url: house.url(), token: keyOf.ada }
  const flood = { name: 'elicit', arguments: { count: 1_000 } }
  let asked = 0
  let last = await round(ada, flood)
  while (last.state !== undefined) {
    t.ok(Object.keys(last.asked).length <= 32, 'no round is more than a person could bear')
    asked += Object.keys(last.asked).length
    last = await round(ada, flood, answers(last, accepted()))
  }
  t.match(last.answer.json, { result: { resultType: 'complete' } }, 'the call itself comes to its end')
  t.ok(asked >= 1 && asked < 100, `${asked} questions`)
  const refused = [...house.upstream.server.answers.values()].filter(({ error }) => error !== undefined)
  t.equal(refused.length, 1_000 - asked)
  t.same([...new Set(refused.map(({ error }) => (error as { message?: string }).message))], ['Too many requests to the client; ask less often.'])
  t.match((await round({ ...ada, token: keyOf.bob }, { name: 'elicit', arguments: {} })).asked, { 'input-1': { method: 'elicitation/create' } }, 'and another caller is asked as ever')
})

t.test('what the client did not declare is not asked however often', async (t) => {
  const house = await acme(t)
  const nothing = { url: house.url(), token: keyOf.ada, capabilities: {} }
  const { answer, asked } = await round(nothing, { name: 'sample', arguments: { count: 100 } })
  t.same(asked, {})
  t.match(answer.json, { result: { resultType: 'complete' } })
  for (const { error } of house.upstream.server.answers.values() as Iterable<{ error?: unknown }>) t.match(error, { code: -32601 })
})

t.test('over stdio each of them keeps a process: eight at once, and they end when nobody comes back', async (t) => {
  const house = await gateway(t, {
    upstreams: { up: { ...scriptedStdio, era: 'legacy' } }, endpoints: { default: { upstreams: ['up'], prefix: '' } },
    auth: { keys: [{ name: 'ada', key: keyOf.ada }, { name: 'bob', key: keyOf.bob }] }, overrides: { parkedMs: 3_000 }
  })
  const ada = { url: house.url(), token: keyOf.ada }
  const elicit = { name: 'elicit', arguments: {} }
  const left = await Promise.all(Array.from({ length: 8 }, () => round(ada, elicit)))
  for (const { state } of left) t.type(state, 'string')
  t.match((await round(ada, elicit)).answer, { status: 429, json: { error: { message: /More than 8 calls of this caller/, data: { reason: 'too_many', upstream: 'up' } } } })
  t.match((await round({ ...ada, token: keyOf.bob }, elicit)).asked, { 'input-1': {} }, 'another caller has processes of his own')
  t.match((await round({ ...ada, capabilities: {} }, { name: 'echo' })).answer.json, { result: { resultType: 'complete' } }, 'who cannot be asked needs none')
  await until('they are given up', async () => (await round(ada, { name: 'echo' })).answer.status === 200)
  await until('all of them are', async () => {
    const again = await Promise.all(left.map(async ({ state }) => (await round(ada, elicit, { requestState: state, inputResponses: {} })).answer.json.error?.data.reason as unknown))
    return again.every((reason) => reason === 'invalid_state')
  })
})

t.test('calls that are left waiting stop at a limit, and the next one says which', async (t) => {
  const house = await acme(t)
  const ada = { url: house.url(), token: keyOf.ada }
  const left: unknown[] = []
  let last
  for (let n = 0; n < 100; n++) {
    last = await round(ada, { name: 'elicit', arguments: { n } })
    if (last.state === undefined) break
    left.push(last.state)
  }
  t.ok(left.length >= 8 && left.length <= 64, `${left.length} calls wait`)
  t.match(last?.answer.text, /too_many|ask less often|wait for input/, 'it says what is wrong')
  t.match((await round(ada, { name: 'echo', arguments: {} })).answer.json, { result: { resultType: 'complete' } }, 'what asks nothing is served')
  t.match((await round({ ...ada, token: keyOf.bob }, { name: 'elicit', arguments: {} })).asked, { 'input-1': {} }, 'another caller has limits of his own')
})
