// A hostile older upstream that asks a client of 2026-07-28 without end: what reaches the client is bounded, the rest the upstream is
// told to ask less of. And clients that never come back for what they are asked: what they leave behind is bounded, and locks nobody out.

import t from 'tap'
import { acme, keyOf } from '../kit/acme.ts'
import { scriptedStdio } from '../kit/asked.ts'
import { gateway } from '../kit/gateway.ts'
import { accepted, answers, round } from '../kit/rounds.ts'
import type { Round } from '../kit/rounds.ts'

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

t.test('a call that is flooded takes no questions from the others on its connection', async (t) => {
  const house = await acme(t)
  const ada = { url: house.url(), token: keyOf.ada }
  const flooded = await round(ada, { name: 'elicit', arguments: { count: 1_000 } })
  t.ok(Object.keys(flooded.asked).length >= 1)
  const other = await round(ada, { name: 'elicit', arguments: {} })
  t.match(other.asked, { 'input-1': { method: 'elicitation/create' } })
  t.match((await round(ada, { name: 'elicit', arguments: {} }, answers(other, accepted()))).answer.json, { result: { resultType: 'complete' } })
})

t.test('what the client did not declare is not asked however often', async (t) => {
  const house = await acme(t)
  const nothing = { url: house.url(), token: keyOf.ada, capabilities: {} }
  const { answer, asked } = await round(nothing, { name: 'sample', arguments: { count: 100 } })
  t.same(asked, {})
  t.match(answer.json, { result: { resultType: 'complete' } })
  for (const { error } of house.upstream.server.answers.values() as Iterable<{ error?: unknown }>) t.match(error, { code: -32601 })
})

t.test('over stdio each of them keeps a process, eight at once: the oldest make room, and the caller is never locked out', async (t) => {
  const house = await gateway(t, {
    upstreams: { up: { ...scriptedStdio, era: 'legacy' } }, endpoints: { default: { upstreams: ['up'], prefix: '' } },
    auth: { keys: [{ name: 'ada', key: keyOf.ada }, { name: 'bob', key: keyOf.bob }] }, limits: { processes: 12 }
  })
  const ada = { url: house.url(), token: keyOf.ada }
  const bob = { ...ada, token: keyOf.bob }
  const elicit = { name: 'elicit', arguments: {} }
  const bobs = await round(bob, elicit)
  const left: Round[] = []
  for (let n = 0; n < 20; n++) left.push(await round(ada, elicit))
  for (const { asked } of left) t.match(asked, { 'input-1': { method: 'elicitation/create' } })
  const ends = []
  for (const each of left) ends.push((await round(ada, elicit, answers(each, accepted()))).answer.json)
  for (const end of ends.slice(0, 12)) t.match(end, { error: { code: -32602, message: /newer ones took its place/, data: { reason: 'invalid_state' } } })
  for (const end of ends.slice(12)) t.match(end, { result: { resultType: 'complete' } })
  t.match((await round(bob, elicit, answers(bobs, accepted()))).answer.json, { result: { resultType: 'complete' } }, 'another caller has processes of his own')
  t.match((await round({ ...ada, capabilities: {} }, { name: 'echo' })).answer.json, { result: { resultType: 'complete' } }, 'who cannot be asked needs none')
})

t.test('calls that are left waiting stop at a limit: the oldest make room there too', async (t) => {
  const house = await acme(t)
  const ada = { url: house.url(), token: keyOf.ada }
  const bob = { ...ada, token: keyOf.bob }
  const bobs = await round(bob, { name: 'elicit', arguments: {} })
  const left: Round[] = []
  for (let n = 0; n < 80; n++) left.push(await round(ada, { name: 'elicit', arguments: { n } }))
  for (const [n, { answer, asked }] of left.entries()) if (asked['input-1'] === undefined) t.fail(`call ${n}`, { answer: answer.text })
  t.equal([...house.upstream.server.answers.values()].filter(({ result }) => (result as { action?: string } | undefined)?.action === 'cancel').length, 16, 'so many were given up')
  const back = async (n: number): Promise<unknown> => (await round(ada, { name: 'elicit', arguments: { n } }, answers(left[n] as Round, accepted()))).answer.json
  for (const n of [0, 15]) t.match(await back(n), { error: { message: /newer ones took its place/, data: { reason: 'invalid_state' } } })
  for (const n of [16, 79]) t.match(await back(n), { result: { resultType: 'complete' } })
  t.match((await round(bob, { name: 'elicit', arguments: {} }, answers(bobs, accepted()))).answer.json, { result: { resultType: 'complete' } }, 'another caller has a limit of his own')
})
