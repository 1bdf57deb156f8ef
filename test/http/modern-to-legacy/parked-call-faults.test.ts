// What may go wrong while a call waits for input: the wrong caller or request, the upstream, the client that does not
// come back.

import t from 'tap'
import { authOf, keyOf } from '../../kit/acme-gateway.ts'
import { forgingIssuer } from '../../kit/forging-issuer.ts'
import {
  answersTo,
  serverRequests,
  parkingGateway,
  replies,
  round,
  steps,
  textOf,
  transports,
  type Round
} from '../../kit/parking-gateway.ts'
import type { Json } from '../../kit/mcp-server.ts'
import { until } from '../../kit/until.ts'

const issuer = await forgingIssuer(t, { resource: 'urn:none', now: Date.now() })
const acme = await parkingGateway(t, {
  auth: authOf(issuer),
  endpoints: {
    ...Object.fromEntries(transports.map((name) => [name, { upstreams: [name], prefix: '' }])),
    twin: { upstreams: ['http'], prefix: '' }
  }
})
const ada = { token: keyOf.ada }
const call = steps({ ask: [serverRequests.form] })
const refused = { status: 200, result: undefined, error: { code: -32602, data: { reason: 'invalid_state' } } }
const park = (transport: string, params: Json = call): Promise<Round> =>
  round(acme.url(transport), 'tools/call', params, ada)
const withAnswers = ({ requestState, inputRequests }: Round, params: Json = call): Json => ({
  ...params,
  requestState,
  inputResponses: answersTo(inputRequests)
})
/** Takes no round: it is refused for as long as the round could be taken. */
const withNonsense = ({ requestState, inputRequests }: Round, params: Json = call): Json => ({
  ...params,
  requestState,
  inputResponses: Object.fromEntries(Object.keys(inputRequests).map((key) => [key, 7]))
})
const cancelsAt = (received: Json[]): Json[] => received.filter(({ method }) => method === 'notifications/cancelled')

t.test(
  'an upstream that dies while a call is parked leaves nothing to come back to, and serves the next call',
  async (t) => {
    for (const transport of transports) {
      // Calls that follow each other have the same process.
      const pid = transport === 'stdio' ? textOf((await park(transport, { name: 'pid' })).result) : undefined
      const parked = await park(transport)
      if (transport === 'http') acme.http.cut()
      if (transport === 'stream') acme.sse.cut()
      if (transport === 'stdio') process.kill(Number(pid), 'SIGKILL')
      const gone = await until('the loss', async () => {
        const { error } = await round(acme.url(transport), 'tools/call', withNonsense(parked), ada)
        return error?.data['reason'] === 'invalid_state' ? error : undefined
      })
      t.match(
        gone,
        { code: -32602, message: /ended/, data: { reason: 'invalid_state', outcome: 'unknown' } },
        transport
      )
      const next = await until('the upstream is back', async () => {
        const again = await park(transport)
        return again.result === undefined ? undefined : again
      })
      t.same(textOf((await round(acme.url(transport), 'tools/call', withAnswers(next), ada)).result), [replies.form])
    }
  }
)

t.test('closing the connection cancels while a round runs, and does not while the call waits', async (t) => {
  const { received } = acme.http.server
  const before = cancelsAt(received).length
  const walk = steps({ ask: [serverRequests.form] }, { wait: true })
  const parked = await park('http', walk)
  t.equal(cancelsAt(received).length, before, 'the request that began it is long over')
  const stop = new AbortController()
  const answersBefore = acme.http.server.answers.size
  round(acme.url('http'), 'tools/call', withAnswers(parked, walk), { ...ada, signal: stop.signal }).catch(() => {})
  await until('the answer at the upstream', () => acme.http.server.answers.size > answersBefore)
  t.equal(cancelsAt(received).length, before)
  stop.abort()
  await until('the cancel', () => cancelsAt(received).length === before + 1)
  t.match(
    await round(acme.url('http'), 'tools/call', withAnswers(parked, walk), ada),
    refused,
    'and there is nothing to come back to'
  )
})

t.test(
  'a client that never comes back: the upstream gets answers, then its cancel, and everything is free again',
  async (t) => {
    const hasty = await parkingGateway(t, { auth: authOf(issuer), overrides: { parkedMs: 150 } })
    const walk = steps({ ask: [serverRequests.form, serverRequests.sample, serverRequests.roots] }, { wait: true })
    const parked = await Promise.all(
      transports.map((transport) => round(hasty.url(transport), 'tools/call', walk, ada))
    )
    for (const [at, transport] of transports.entries()) {
      if (transport !== 'stdio') {
        const { received, answers } = transport === 'http' ? hasty.http.server : hasty.sse.server
        await until('the cancel', () => cancelsAt(received).length === 1)
        // Each goes on a socket of its own, in no order.
        const [results, errors] = [
          [...answers.values()].flatMap(({ result }) => result ?? []),
          [...answers.values()].flatMap(({ error }) => error ?? [])
        ]
        t.match([results, errors], [[{ action: 'cancel' }], [{ code: -1 }, { code: -1 }]], transport)
        const order = received.slice(-4).map(({ method }) => method)
        t.same(order, [undefined, undefined, undefined, 'notifications/cancelled'])
      }
      await until(
        'the end',
        async () =>
          (await round(hasty.url(transport), 'tools/call', withNonsense(parked[at] as Round, walk), ada)).error?.data[
            'reason'
          ] === 'invalid_state'
      )
      t.match(await round(hasty.url(transport), 'tools/call', withAnswers(parked[at] as Round, walk), ada), refused)
      // More calls than there are slots, one after the other: none is still taken.
      for (let n = 0; n < 10; n++) {
        const { result } = await until('a slot', async () => {
          const each = await round(hasty.url(transport), 'tools/call', { name: 'echo' }, ada)
          return each.result === undefined ? undefined : each
        })
        t.ok(result)
      }
    }
  }
)

t.test(
  'one call too many at a server whose input requests name no call: the one that has waited longest makes room',
  async (t) => {
    for (const transport of ['stdio', 'stream']) {
      const oldest = await park(transport)
      const parked = await Promise.all(Array.from({ length: 7 }, () => park(transport)))
      parked.push(await park(transport))
      t.match(parked.at(-1), { result: { resultType: 'input_required' } }, transport)
      t.match(await round(acme.url(transport), 'tools/call', withAnswers(oldest), ada), {
        ...refused,
        error: { message: /newer ones took its place/ }
      })
      t.match(
        await round(acme.url(transport), 'tools/call', call, { token: keyOf.bob }),
        { result: { resultType: 'input_required' } },
        'another caller has its own'
      )
      for (const each of parked) t.ok((await round(acme.url(transport), 'tools/call', withAnswers(each), ada)).result)
      t.same(textOf((await round(acme.url(transport), 'tools/call', withAnswers(await park(transport)), ada)).result), [
        replies.form
      ])
    }
  }
)

t.test(
  'over stdio an open input request lends the next call another process, until it is answered or turned away',
  async (t) => {
    const pid = async (): Promise<unknown> => textOf((await park('stdio', { name: 'pid' })).result)
    const first = await pid()
    for (const inputResponses of [undefined, { action: 'cancel' }]) {
      const parked = await park('stdio')
      t.not(await pid(), first)
      const answers =
        inputResponses === undefined
          ? answersTo(parked.inputRequests)
          : Object.fromEntries(Object.keys(parked.inputRequests).map((key) => [key, inputResponses]))
      t.match(
        await round(
          acme.url('stdio'),
          'tools/call',
          { ...call, requestState: parked.requestState, inputResponses: answers },
          ada
        ),
        { result: { resultType: 'complete' } }
      )
      t.equal(await pid(), first)
    }
  }
)
