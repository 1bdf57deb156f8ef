// What may go wrong while a call waits for input: the wrong caller or request, the upstream, the client that does not come back.

import t from 'tap'
import { authOf, keyOf } from '../kit/acme.ts'
import { forge } from '../kit/forge.ts'
import { answersTo, asks, parkingHouse, replies, round, steps, textOf, transports } from '../kit/parking.ts'
import type { Round } from '../kit/parking.ts'
import type { Json } from '../kit/mcp-server.ts'
import { until } from '../kit/until.ts'

const issuer = await forge(t, { resource: 'urn:none', now: Date.now() })
const house = await parkingHouse(t, { auth: authOf(issuer), endpoints: { ...Object.fromEntries(transports.map((name) => [name, { upstreams: [name], prefix: '' }])), twin: { upstreams: ['http'], prefix: '' } } })
const ada = { token: keyOf.ada }
const call = steps({ ask: [asks.form] })
const refused = { status: 200, result: undefined, error: { code: -32602, data: { reason: 'invalid_state' } } }
const park = (transport: string, params: Json = call): Promise<Round> => round(house.url(transport), 'tools/call', params, ada)
const withAnswers = ({ requestState, inputRequests }: Round, params: Json = call): Json => ({ ...params, requestState, inputResponses: answersTo(inputRequests) })
/** Takes no round: it is refused for as long as the round could be taken. */
const withNonsense = ({ requestState, inputRequests }: Round, params: Json = call): Json => ({ ...params, requestState, inputResponses: Object.fromEntries(Object.keys(inputRequests).map((key) => [key, 7])) })
const cancelsAt = (received: Json[]): Json[] => received.filter(({ method }) => method === 'notifications/cancelled')

t.test('a state is good for its caller, its endpoint and its request, and for nothing else', async (t) => {
  const parked = await park('http')
  const params = withAnswers(parked)
  const retry = (more: Json, options: Json = {}, at = 'http', method = 'tools/call') => round(house.url(at), method, { ...params, ...more }, { ...ada, ...options })
  t.match(await retry({}, { token: keyOf.bob }), refused, 'another user of the tenant')
  t.match(await retry({}, { token: await issuer.sign({ aud: house.url('http'), sub: 'ada', client_id: 'another-app' }) }), refused)
  t.match(await retry({}, {}, 'twin'), refused, 'another endpoint with the same upstream')
  t.match(await retry({}, {}, 'stdio'), refused)
  t.match(await retry({ arguments: { steps: [{ ask: [asks.sample] }] } }), refused, 'other parameters')
  t.match(await retry({ name: 'echo' }), refused)
  t.match(await retry({ name: 'ask' }, {}, 'http', 'prompts/get'), refused)
  for (const requestState of [`${parked.requestState}-TAMPERED`, parked.requestState.slice(1), parked.requestState.toUpperCase(), '', 7, null, {}]) t.match(await retry({ requestState }), refused)
  t.same(textOf((await retry({})).result), [replies.form], 'after all that it is still good for whom it was given to')
  t.match(await retry({}), refused, 'once')
  t.match(await retry({}, { token: keyOf.bob }), refused)
})

t.test('of two retries at once exactly one gets the call', async (t) => {
  for (const transport of transports) {
    const params = withAnswers(await park(transport))
    const both = await Promise.all([1, 2, 3, 4].map((id) => round(house.url(transport), 'tools/call', params, { ...ada, id })))
    t.equal(both.filter(({ result }) => result?.['resultType'] === 'complete').length, 1, transport)
    for (const lost of both.filter(({ error }) => error !== undefined)) t.match(lost, refused)
  }
})

t.test('a token that was refreshed between two rounds is the same caller', async (t) => {
  const sign = (jti: string): Promise<string> => issuer.sign({ aud: house.url('http'), sub: 'ada', client_id: 'app', jti })
  const parked = await round(house.url('http'), 'tools/call', call, { token: await sign('one') })
  const { result } = await round(house.url('http'), 'tools/call', withAnswers(parked), { token: await sign('two') })
  t.same(textOf(result), [replies.form])
})

t.test('an upstream that dies while a call is parked leaves nothing to come back to, and serves the next call', async (t) => {
  for (const transport of transports) {
    // Calls that follow each other have the same process.
    const pid = transport === 'stdio' ? textOf((await park(transport, { name: 'pid' })).result) : undefined
    const parked = await park(transport)
    if (transport === 'http') house.http.cut()
    if (transport === 'stream') house.sse.cut()
    if (transport === 'stdio') process.kill(Number(pid), 'SIGKILL')
    const gone = await until('the loss', async () => {
      const { error } = await round(house.url(transport), 'tools/call', withNonsense(parked), ada)
      return error?.data['reason'] === 'invalid_state' ? error : undefined
    })
    t.match(gone, { code: -32602, message: /ended/, data: { reason: 'invalid_state', outcome: 'unknown' } }, transport)
    const next = await until('the upstream is back', async () => {
      const again = await park(transport)
      return again.result === undefined ? undefined : again
    })
    t.same(textOf((await round(house.url(transport), 'tools/call', withAnswers(next), ada)).result), [replies.form])
  }
})

t.test('closing the connection cancels while a round runs, and does not while the call waits', async (t) => {
  const { received } = house.http.server
  const before = cancelsAt(received).length
  const walk = steps({ ask: [asks.form] }, { wait: true })
  const parked = await park('http', walk)
  t.equal(cancelsAt(received).length, before, 'the request that began it is long over')
  const stop = new AbortController()
  const answersBefore = house.http.server.answers.size
  round(house.url('http'), 'tools/call', withAnswers(parked, walk), { ...ada, signal: stop.signal }).catch(() => {})
  await until('the answer at the upstream', () => house.http.server.answers.size > answersBefore)
  t.equal(cancelsAt(received).length, before)
  stop.abort()
  await until('the cancel', () => cancelsAt(received).length === before + 1)
  t.match(await round(house.url('http'), 'tools/call', withAnswers(parked, walk), ada), refused, 'and there is nothing to come back to')
})

t.test('a client that never comes back: the upstream gets answers, then its cancel, and everything is free again', async (t) => {
  const hasty = await parkingHouse(t, { auth: authOf(issuer), overrides: { parkedMs: 150 } })
  const walk = steps({ ask: [asks.form, asks.sample, asks.roots] }, { wait: true })
  const parked = await Promise.all(transports.map((transport) => round(hasty.url(transport), 'tools/call', walk, ada)))
  for (const [at, transport] of transports.entries()) {
    if (transport !== 'stdio') {
      const { received, answers } = transport === 'http' ? hasty.http.server : hasty.sse.server
      await until('the cancel', () => cancelsAt(received).length === 1)
      t.match([...answers.values()].map(({ result, error }) => result ?? error), [{ action: 'cancel' }, { code: -1 }, { code: -1 }], transport)
      const order = received.slice(-4).map(({ method }) => method)
      t.same(order, [undefined, undefined, undefined, 'notifications/cancelled'])
    }
    await until('the end', async () => (await round(hasty.url(transport), 'tools/call', withNonsense(parked[at] as Round, walk), ada)).error?.data['reason'] === 'invalid_state')
    t.match(await round(hasty.url(transport), 'tools/call', withAnswers(parked[at] as Round, walk), ada), refused)
    // More calls than there are lanes, one after the other: none is still taken.
    for (let n = 0; n < 10; n++) {
      const { result } = await until('a lane', async () => {
        const each = await round(hasty.url(transport), 'tools/call', { name: 'echo' }, ada)
        return each.result === undefined ? undefined : each
      })
      t.ok(result)
    }
  }
})

t.test('one call too many at a server whose questions name no call: the one that has waited longest makes room', async (t) => {
  for (const transport of ['stdio', 'stream']) {
    const oldest = await park(transport)
    const parked = await Promise.all(Array.from({ length: 7 }, () => park(transport)))
    parked.push(await park(transport))
    t.match(parked.at(-1), { result: { resultType: 'input_required' } }, transport)
    t.match(await round(house.url(transport), 'tools/call', withAnswers(oldest), ada), { ...refused, error: { message: /newer ones took its place/ } })
    t.match(await round(house.url(transport), 'tools/call', call, { token: keyOf.bob }), { result: { resultType: 'input_required' } }, 'another caller has its own')
    for (const each of parked) t.ok((await round(house.url(transport), 'tools/call', withAnswers(each), ada)).result)
    t.same(textOf((await round(house.url(transport), 'tools/call', withAnswers(await park(transport)), ada)).result), [replies.form])
  }
})

t.test('over stdio an open question lends the next call another process, until it is answered or turned away', async (t) => {
  const pid = async (): Promise<unknown> => textOf((await park('stdio', { name: 'pid' })).result)
  const first = await pid()
  for (const inputResponses of [undefined, { action: 'cancel' }]) {
    const parked = await park('stdio')
    t.not(await pid(), first)
    const answers = inputResponses === undefined ? answersTo(parked.inputRequests) : Object.fromEntries(Object.keys(parked.inputRequests).map((key) => [key, inputResponses]))
    t.match(await round(house.url('stdio'), 'tools/call', { ...call, requestState: parked.requestState, inputResponses: answers }, ada), { result: { resultType: 'complete' } })
    t.equal(await pid(), first)
  }
})
