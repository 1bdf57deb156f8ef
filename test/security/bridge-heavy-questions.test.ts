// A hostile upstream whose questions are small to send and large to keep: `{},` is parsed into twenty times its length, and a
// question waits for ten minutes. They are refused, wherever they would wait, and everything else goes on.

import t from 'tap'
import { acme, keyOf } from '../kit/acme.ts'
import type { Acme } from '../kit/acme.ts'
import { asker, isQuestion, post } from '../kit/asked.ts'
import type { Json } from '../kit/asked.ts'
import { postEvents } from '../kit/events.ts'
import { startModern } from '../kit/modern-server.ts'
import { script } from '../kit/parking.ts'
import { accepted, answers, round } from '../kit/rounds.ts'
import type { Test } from 'tap'

const empty = (count: number): object[] => Array.from({ length: count }, () => ({}))
const asking = (message: string, junk: unknown) => ({ method: 'elicitation/create', params: { message, requestedSchema: { type: 'object', properties: {} }, junk } })
const light = asking('light', empty(100))
/** 60 kB of text. */
const heavy = asking('heavy', empty(20_000))
const call = { name: 'steps', arguments: { steps: [{ ask: [heavy, light, asking('long', 'x'.repeat(1_200_000))] }] } }

const house = async (t: Test): Promise<Acme> => await acme(t, { script: { ...script, answers: 'sse' } })

function judge (t: Test, result: Json | undefined, log: Acme['log']): void {
  const refused = { error: { code: -32602, message: /too large to be kept/ } }
  t.match(JSON.parse(String(result?.['content'][0].text)), [refused, { action: 'accept' }, refused], 'what the server was answered')
  t.match(log.filter(({ msg }) => msg === 'refused a question of the upstream: it is too large'), Array.from({ length: 2 }, () => ({ level: 40, upstream: 'up', tenant: 'acme', method: 'elicitation/create' })))
}

t.test('asked of a client of 2026-07-28', async (t) => {
  const made = await house(t)
  const ada = { url: made.url(), token: keyOf.ada }
  const first = await round(ada, call)
  t.match(Object.values(first.asked), [{ params: { message: 'light' } }])
  t.equal(Object.keys(first.asked).length, 1)
  const { answer } = await round(ada, call, answers(first, accepted()))
  judge(t, answer.json.result, made.log)
})

t.test('asked of a client with a session', async (t) => {
  const made = await house(t)
  const client = await asker(made.url(), keyOf.ada)
  const stream = await postEvents(made.url(), client, 'the call', 'tools/call', call)
  const question = await stream.next('the question', isQuestion)
  t.equal(question.params.message, 'light')
  await post(made.url(), client, { id: question.id, result: { action: 'accept' } })
  const { result } = await stream.next('the result', (message: Json) => message['id'] === 'the call')
  t.equal(stream.messages().filter(isQuestion).length, 1)
  judge(t, result, made.log)
})

t.test('many that wait fill the room of their connection, and no other', async (t) => {
  const made = await house(t)
  const many = { name: 'steps', arguments: { steps: [{ ask: Array.from({ length: 18 }, () => asking('many', empty(5_000))) }] } }
  const first = await round({ url: made.url(), token: keyOf.ada }, many)
  const count = Object.keys(first.asked).length
  t.ok(count > 0 && count <= 13, `${count} of eighteen`)
  t.equal(made.log.filter(({ msg }) => msg === 'refused a question of the upstream: too much waits for clients to answer already').length, 18 - count)
  t.match((await round({ url: made.url(), token: keyOf.bob }, { name: 'elicit', arguments: {} })).asked, { 'input-1': { method: 'elicitation/create' } }, 'another caller is asked as ever')
  const { answer } = await round({ url: made.url(), token: keyOf.ada }, many, answers(first, accepted()))
  const told = JSON.parse(answer.json.result.content[0].text) as Json[]
  t.equal(told.filter(({ action }) => action === 'accept').length, count)
  t.equal(told.filter(({ error }) => error?.code === 429).length, 18 - count)
})

t.test('asked by a server of 2026-07-28 in its result', async (t) => {
  const up = await startModern()
  t.teardown(() => up.close())
  const made = await acme(t, { upstreams: { up: { url: up.url, era: 'modern' } } })
  const client = await asker(made.url(), keyOf.ada)
  const called = (result: Json): Json => ({ name: 'rounds', arguments: { results: [result] } })
  for (const result of [{ inputRequests: { a: light, b: heavy } }, { inputRequests: { a: light }, junk: empty(80_000) }]) {
    const { json } = await client.request('tools/call', called(result))
    t.match(json, { error: { message: /too large to be kept|too much waits/ } }, 'the answer, and no stream with questions')
  }
  const stream = await postEvents(made.url(), client, 'light', 'tools/call', called({ inputRequests: { a: light } }))
  const question = await stream.next('the question', isQuestion)
  await post(made.url(), client, { id: question.id, result: { action: 'accept' } })
  t.match(await stream.next('the end', (message: Json) => message['id'] === 'light'), { result: { content: [{ text: /accept/ }] } })
})
