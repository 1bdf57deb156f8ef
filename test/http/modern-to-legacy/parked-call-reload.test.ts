// A reload takes away what a parked call waits at: the upstream is told, and whoever comes back learns that nobody
// knows what it did.

import t from 'tap'
import { configOf, key } from '../../kit/gateway.ts'
import {
  answersTo,
  serverRequests,
  parkingGateway,
  replies,
  round,
  script,
  steps,
  textOf,
  transports,
  type ParkingGateway,
  type Round
} from '../../kit/parking-gateway.ts'
import type { Json } from '../../kit/mcp-server.ts'
import { until } from '../../kit/until.ts'

const endpoints: Record<string, Json> = {
  ...Object.fromEntries(transports.map((name) => [name, { upstreams: [name], prefix: '' }])),
  both: { upstreams: ['http', 'stream'] }
}
const call = steps({ ask: [serverRequests.form] }, { wait: true })
const short = steps({ ask: [serverRequests.form] })
const cancels = (received: Json[]): number =>
  received.filter(({ method }) => method === 'notifications/cancelled').length
const back = ({ requestState, inputRequests }: Round, params: Json): Json => ({
  ...params,
  requestState,
  inputResponses: answersTo(inputRequests)
})
const unknown = {
  status: 200,
  error: {
    code: -32602,
    message: /taken away or replaced.*unknown/,
    data: { reason: 'invalid_state', outcome: 'unknown' }
  }
}

interface Change {
  readonly name: string
  /** Where the call waits, and under which name. */
  readonly at: string
  readonly tool: string
  readonly answer: unknown
  change(upstreams: Record<string, Json>, all: Record<string, Json>): void
}

const changes: Change[] = [
  {
    name: 'an upstream under the same name that is another one',
    at: 'http',
    tool: 'steps',
    answer: unknown,
    change: (upstreams) => {
      upstreams['http'] = { ...upstreams['http'], headers: { 'X-New': '1' } }
    }
  },
  {
    name: 'an upstream of an endpoint of several',
    at: 'both',
    tool: 'http__steps',
    answer: unknown,
    change: (_upstreams, all) => {
      all['both'] = { upstreams: ['stream'] }
    }
  },
  {
    name: 'the only upstream of an endpoint that knows the name, while another one takes its place',
    at: 'http',
    tool: 'steps',
    answer: unknown,
    change: (_upstreams, all) => {
      all['http'] = { upstreams: ['plain'], prefix: '' }
    }
  },
  {
    name: 'the endpoint',
    at: 'both',
    tool: 'http__steps',
    answer: { status: 404 },
    change: (_upstreams, all) => {
      delete all['both']
    }
  }
]

function reload(acme: ParkingGateway, change: Change['change']): void {
  const upstreams: Record<string, Json> = {
    stdio: {
      command: process.execPath,
      args: [new URL('../../kit/stdio-server.ts', import.meta.url).pathname, JSON.stringify(script)]
    },
    http: { type: 'http', url: acme.http.url },
    stream: { type: 'http', url: acme.sse.url },
    plain: { type: 'http', url: acme.http.url, headers: { 'X-Plain': '1' } }
  }
  const all = { ...endpoints }
  change(upstreams, all)
  acme.reload(configOf({ upstreams, endpoints: all, auth: { keys: [{ name: 'test', key }] } }))
}

for (const { name, at, tool, answer, change } of changes) {
  t.test(name, async (t) => {
    const acme = await parkingGateway(t, { endpoints })
    const params = { ...call, name: tool }
    const parked = await round(acme.url(at), 'tools/call', params)
    const others = await Promise.all(
      transports
        .filter((transport) => transport !== at)
        .map(async (transport) => ({ transport, first: await round(acme.url(transport), 'tools/call', short) }))
    )
    const before = cancels(acme.http.server.received)
    reload(acme, change)
    await until('the cancel', () => cancels(acme.http.server.received) > before)
    t.match(await round(acme.url(at), 'tools/call', back(parked, params)), answer)
    t.match(await round(acme.url(at), 'tools/call', back(parked, params)), answer, 'and again')
    for (const { transport, first } of others) {
      t.same(
        textOf((await round(acme.url(transport), 'tools/call', back(first, short))).result),
        [replies.form],
        `what waits at ${transport} goes on`
      )
    }
    if (at === 'http')
      t.match(
        await round(acme.url(at), 'tools/call', short),
        { result: { resultType: 'input_required' } },
        'and what is there now is called'
      )
  })
}

t.test('a name that is gone is no reason to send again what waited under it', async (t) => {
  const acme = await parkingGateway(t, { endpoints })
  const params = { ...short, name: 'http__steps' }
  const parked = await round(acme.url('both'), 'tools/call', params)
  reload(acme, (_upstreams, all) => {
    all['both'] = { upstreams: [{ upstream: 'http', prefix: 'other' }, 'stream'] }
  })
  t.match(await round(acme.url('both'), 'tools/call', back(parked, params)), unknown)
  t.match(
    await round(acme.url('both'), 'tools/call', params),
    { error: { data: { reason: 'invalid_params' } } },
    'without a state it is as unknown as any'
  )
  t.match(await round(acme.url('both'), 'tools/call', { ...back(parked, params), requestState: 'x' }), {
    error: { data: { reason: 'invalid_params' } }
  })
})

t.test('a reload that changes nothing of it leaves it as it is', async (t) => {
  const acme = await parkingGateway(t, { endpoints })
  const first = await round(acme.url('both'), 'tools/call', { ...short, name: 'http__steps' })
  reload(acme, (upstreams, all) => {
    upstreams['more'] = { type: 'http', url: acme.http.url, headers: { 'X-More': '1' } }
    all['both'] = { upstreams: ['http', 'stream', 'more'] }
  })
  t.same(textOf((await round(acme.url('both'), 'tools/call', back(first, { ...short, name: 'http__steps' }))).result), [
    replies.form
  ])
})

t.test('a key, while others are kept', async (t) => {
  const keys = [
    { name: 'test', key },
    { name: 'other', key: `${key}_other` }
  ]
  const acme = await parkingGateway(t, { auth: { keys } })
  const place = acme.url('http')
  const own = await round(place, 'tools/call', short)
  const other = await round(place, 'tools/call', call, { token: `${key}_other` })
  const before = cancels(acme.http.server.received)
  reload(acme, () => {})
  await until('the cancel', () => cancels(acme.http.server.received) > before)
  t.match(
    [...acme.http.server.answers.values()],
    [{ result: { action: 'cancel' } }],
    'of the call of whoever is known no more'
  )
  t.equal((await round(place, 'tools/call', back(other, call), { token: `${key}_other` })).status, 401)
  t.same(
    textOf((await round(place, 'tools/call', back(own, short))).result),
    [replies.form],
    'what waits for another goes on'
  )
})
