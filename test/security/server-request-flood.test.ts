// Attack: a legacy server sends a client of 2026-07-28 requests without end; or clients never retry what is parked for
// them. What reaches the client, and what parked calls hold, is bounded, and locks no other caller out.

import t from 'tap'
import { acmeGateway, keyOf } from '../kit/acme-gateway.ts'
import { scriptedStdio } from '../kit/server-request.ts'
import { gateway } from '../kit/gateway.ts'
import { stopSteadyClock } from '../kit/held-time.ts'
import { accepted, answers, round, type Round } from '../kit/rounds.ts'
import { until } from '../kit/until.ts'

t.test('of a thousand server requests at once a few reach the client, and all others are refused', async (t) => {
  // A second of time is ten more requests, and a busy machine takes a minute for a thousand of them.
  stopSteadyClock(t)
  const acme = await acmeGateway(t)
  const ada = { url: acme.url(), token: keyOf.ada }
  const flood = { name: 'elicit', arguments: { count: 1_000 } }
  let asked = 0
  let last = await round(ada, flood)
  while (last.state !== undefined) {
    t.ok(Object.keys(last.inputRequests).length <= 32, 'no round is more than a person could bear')
    asked += Object.keys(last.inputRequests).length
    last = await round(ada, flood, answers(last, accepted()))
  }
  t.match(last.answer.json, { result: { resultType: 'complete' } }, 'the call itself comes to its end')
  t.equal(asked, 20, 'as many as a call may ask at once')
  const refused = [...acme.upstream.server.answers.values()].filter(({ error }) => error !== undefined)
  t.equal(refused.length, 1_000 - asked)
  t.same(
    [...new Set(refused.map(({ error }) => (error as { message?: string }).message))],
    ['Too many requests to the client; ask less often.']
  )
  t.match(
    (await round({ ...ada, token: keyOf.bob }, { name: 'elicit', arguments: {} })).inputRequests,
    { 'input-1': { method: 'elicitation/create' } },
    'and another caller is asked as ever'
  )
})

t.test('a flooded call takes nothing from the other calls on its connection', async (t) => {
  const acme = await acmeGateway(t)
  const ada = { url: acme.url(), token: keyOf.ada }
  const flooded = await round(ada, { name: 'elicit', arguments: { count: 1_000 } })
  t.ok(Object.keys(flooded.inputRequests).length >= 1)
  const other = await round(ada, { name: 'elicit', arguments: {} })
  t.match(other.inputRequests, { 'input-1': { method: 'elicitation/create' } })
  t.match((await round(ada, { name: 'elicit', arguments: {} }, answers(other, accepted()))).answer.json, {
    result: { resultType: 'complete' }
  })
})

t.test('a call whose server does not take a refusal of what it asked fails at once', async (t) => {
  stopSteadyClock(t)
  const acme = await acmeGateway(t)
  const ada = { url: acme.url(), token: keyOf.ada }
  // Twenty are asked, the 21st is refused.
  const asking = { name: 'elicit', arguments: { count: 21 } }
  acme.upstream.override(
    ({ message }) => message?.['error'] !== undefined,
    (response) => void response.writeHead(500).end()
  )
  const failed = async (): Promise<unknown> => {
    for (let last = await round(ada, asking); ; last = await round(ada, asking, answers(last, accepted())))
      if (last.state === undefined) return last.answer.json
  }
  t.match(await failed(), { error: { message: /asked something and refused the answer/ } })
  t.match(await failed(), { result: { resultType: 'complete' } }, 'the control')
})

t.test('a server request that the client did not declare never reaches it, however often it is sent', async (t) => {
  const acme = await acmeGateway(t)
  const nothing = { url: acme.url(), token: keyOf.ada, capabilities: {} }
  const { answer, inputRequests: asked } = await round(nothing, { name: 'sample', arguments: { count: 100 } })
  t.same(asked, {})
  t.match(answer.json, { result: { resultType: 'complete' } })
  for (const { error } of acme.upstream.server.answers.values() as Iterable<{ error?: unknown }>)
    t.match(error, { code: -32601 })
})

t.test(
  'over stdio at most eight parked calls of a caller keep a process, the oldest is given up for a new one',
  async (t) => {
    const acme = await gateway(t, {
      upstreams: { up: { ...scriptedStdio, era: 'legacy' } },
      endpoints: { default: { upstreams: ['up'], prefix: '' } },
      auth: {
        keys: [
          { name: 'ada', key: keyOf.ada },
          { name: 'bob', key: keyOf.bob }
        ]
      },
      limits: { processes: 12 }
    })
    const ada = { url: acme.url(), token: keyOf.ada }
    const bob = { ...ada, token: keyOf.bob }
    const elicit = { name: 'elicit', arguments: {} }
    const bobs = await round(bob, elicit)
    const left: Round[] = []
    for (let n = 0; n < 20; n++) left.push(await round(ada, elicit))
    for (const { inputRequests: asked } of left) t.match(asked, { 'input-1': { method: 'elicitation/create' } })
    const ends = []
    for (const each of left) ends.push((await round(ada, elicit, answers(each, accepted()))).answer.json)
    for (const end of ends.slice(0, 12))
      t.match(end, { error: { code: -32602, message: /newer ones took its place/, data: { reason: 'invalid_state' } } })
    for (const end of ends.slice(12)) t.match(end, { result: { resultType: 'complete' } })
    t.match(
      (await round(bob, elicit, answers(bobs, accepted()))).answer.json,
      { result: { resultType: 'complete' } },
      'another caller has processes of his own'
    )
    t.match(
      (await round({ ...ada, capabilities: {} }, { name: 'echo' })).answer.json,
      { result: { resultType: 'complete' } },
      'who cannot be asked needs none'
    )
  }
)

t.test('a caller has at most 64 parked calls, and the oldest is given up for a new one', async (t) => {
  const acme = await acmeGateway(t)
  const ada = { url: acme.url(), token: keyOf.ada }
  const bob = { ...ada, token: keyOf.bob }
  const bobs = await round(bob, { name: 'elicit', arguments: {} })
  const left: Round[] = []
  for (let n = 0; n < 80; n++) left.push(await round(ada, { name: 'elicit', arguments: { n } }))
  for (const [n, { answer, inputRequests: asked }] of left.entries())
    if (asked['input-1'] === undefined) t.fail(`call ${n}`, { answer: answer.text })
  const givenUp = (): number =>
    [...acme.upstream.server.answers.values()].filter(
      ({ result }) => (result as { action?: string } | undefined)?.action === 'cancel'
    ).length
  await until('the server hears of the last', () => givenUp() >= 16)
  t.equal(givenUp(), 16, 'so many were given up')
  const back = async (n: number): Promise<unknown> =>
    (await round(ada, { name: 'elicit', arguments: { n } }, answers(left[n] as Round, accepted()))).answer.json
  for (const n of [0, 15])
    t.match(await back(n), { error: { message: /newer ones took its place/, data: { reason: 'invalid_state' } } })
  for (const n of [16, 79]) t.match(await back(n), { result: { resultType: 'complete' } })
  t.match(
    (await round(bob, { name: 'elicit', arguments: {} }, answers(bobs, accepted()))).answer.json,
    { result: { resultType: 'complete' } },
    'another caller has a limit of his own'
  )
})
