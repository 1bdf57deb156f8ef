// Attack: a server sends requests that are small on the wire and large in memory: `{},` is parsed into twenty times
// its length, and a server request is kept for ten minutes. They are refused wherever they would be kept.

import t, { type Test } from 'tap'
import { acmeGateway, keyOf, type AcmeGateway } from '../kit/acme-gateway.ts'
import { capableClient, isServerRequest, post, type Json } from '../kit/server-request.ts'
import { postEvents } from '../kit/events.ts'
import { startModern } from '../kit/modern-server.ts'
import { script } from '../kit/parking-gateway.ts'
import { accepted, answers, round } from '../kit/rounds.ts'

const empty = (count: number): object[] => Array.from({ length: count }, () => ({}))
const asking = (message: string, junk: unknown) => ({
  method: 'elicitation/create',
  params: { message, requestedSchema: { type: 'object', properties: {} }, junk }
})
const light = asking('light', empty(100))
/** 60 kB of text. */
const heavy = asking('heavy', empty(20_000))
const call = { name: 'steps', arguments: { steps: [{ ask: [heavy, light, asking('long', 'x'.repeat(1_200_000))] }] } }

const acme = async (t: Test): Promise<AcmeGateway> => await acmeGateway(t, { script: { ...script, answers: 'sse' } })

function judge(t: Test, result: Json | undefined, log: AcmeGateway['log']): void {
  const refused = { error: { code: -32602, message: /too large to be kept/ } }
  t.match(
    JSON.parse(String(result?.['content'][0].text)),
    [refused, { action: 'accept' }, refused],
    'what the server was answered'
  )
  t.match(
    log.filter(({ msg }) => /^refused .*: it is too large$/.test(String(msg))),
    Array.from({ length: 2 }, () => ({ level: 40, upstream: 'up', tenant: 'acme', method: 'elicitation/create' }))
  )
}

t.test('a heavy server request never reaches a client of 2026-07-28', async (t) => {
  const made = await acme(t)
  const ada = { url: made.url(), token: keyOf.ada }
  const first = await round(ada, call)
  t.match(Object.values(first.inputRequests), [{ params: { message: 'light' } }])
  t.equal(Object.keys(first.inputRequests).length, 1)
  const { answer } = await round(ada, call, answers(first, accepted()))
  judge(t, answer.json.result, made.log)
})

t.test('a heavy server request never reaches a client with a session', async (t) => {
  const made = await acme(t)
  const client = await capableClient(made.url(), keyOf.ada)
  const stream = await postEvents(made.url(), client, 'the call', 'tools/call', call)
  const serverRequest = await stream.next('the server request', isServerRequest)
  t.equal(serverRequest.params.message, 'light')
  await post(made.url(), client, { id: serverRequest.id, result: { action: 'accept' } })
  const { result } = await stream.next('the result', (message: Json) => message['id'] === 'the call')
  t.equal(stream.messages().filter(isServerRequest).length, 1)
  judge(t, result, made.log)
})

t.test('many parked server requests use up the quota of their connection, and of no other', async (t) => {
  const made = await acme(t)
  const many = {
    name: 'steps',
    arguments: { steps: [{ ask: Array.from({ length: 18 }, () => asking('many', empty(5_000))) }] }
  }
  const ada = { url: made.url(), token: keyOf.ada }
  let last = await round(ada, many)
  t.match(
    (await round({ url: made.url(), token: keyOf.bob }, { name: 'elicit', arguments: {} })).inputRequests,
    { 'input-1': { method: 'elicitation/create' } },
    'another caller is asked as ever'
  )
  // On a busy machine they come in more than one round.
  let count = 0
  while (last.answer.json.result?.resultType === 'input_required') {
    count += Object.keys(last.inputRequests).length
    last = await round(ada, many, answers(last, accepted()))
  }
  t.ok(count > 0 && count <= 13, `${count} of eighteen`)
  t.equal(
    made.log.filter(({ msg }) => /^refused .*: too much waits for clients to answer already$/.test(String(msg))).length,
    18 - count
  )
  const told = JSON.parse(last.answer.json.result.content[0].text) as Json[]
  t.equal(told.filter(({ action }) => action === 'accept').length, count)
  t.equal(told.filter(({ error }) => error?.code === 429).length, 18 - count)
})

t.test('a heavy input request of a server of 2026-07-28 ends its call with an error', async (t) => {
  const up = await startModern()
  t.teardown(() => up.close())
  const made = await acmeGateway(t, { upstreams: { up: { url: up.url, era: 'modern' } } })
  const client = await capableClient(made.url(), keyOf.ada)
  const called = (result: Json): Json => ({ name: 'rounds', arguments: { results: [result] } })
  for (const result of [
    { inputRequests: { a: light, b: heavy } },
    { inputRequests: { a: light }, junk: empty(80_000) }
  ]) {
    const { json } = await client.request('tools/call', called(result))
    t.match(
      json,
      { error: { message: /too large to be kept|too much waits/ } },
      'the answer, and no stream with server requests'
    )
  }
  const stream = await postEvents(made.url(), client, 'light', 'tools/call', called({ inputRequests: { a: light } }))
  const serverRequest = await stream.next('the server request', isServerRequest)
  await post(made.url(), client, { id: serverRequest.id, result: { action: 'accept' } })
  t.match(await stream.next('the end', (message: Json) => message['id'] === 'light'), {
    result: { content: [{ text: /accept/ }] }
  })
})
