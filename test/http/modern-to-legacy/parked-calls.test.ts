// Questions of legacy upstreams to clients of 2026-07-28, on the wire: the call waits at its upstream while the client
// comes and goes.

import t from 'tap'
import { gateway } from '../../kit/gateway.ts'
import {
  answersTo,
  serverRequests,
  parkingGateway,
  replies,
  round,
  script,
  steps,
  textOf,
  transports
} from '../../kit/parking-gateway.ts'
import type { Json } from '../../kit/mcp-server.ts'

const acme = await parkingGateway(t)

for (const transport of transports) {
  const url = acme.url(transport)

  t.test(
    `${transport}: every kind of input request comes as input_required, and the answer goes to the call that asked`,
    async (t) => {
      for (const kind of ['form', 'url', 'sample', 'roots'] as const) {
        const call = steps({ ask: [serverRequests[kind]] })
        const first = await round(url, 'tools/call', call)
        t.match(first, { status: 200, result: { resultType: 'input_required' } }, kind)
        const { elicitationId: _id, ...params } = {
          elicitationId: undefined,
          ...(serverRequests[kind] as { params?: Json }).params
        }
        t.same(Object.values(first.inputRequests), [
          { ...serverRequests[kind], ...(Object.keys(params).length > 0 && { params }) }
        ])
        t.notMatch(first.requestState, /[^\w-]/)
        const last = await round(
          url,
          'tools/call',
          { ...call, requestState: first.requestState, inputResponses: answersTo(first.inputRequests) },
          { id: 'two' }
        )
        t.match(last, { status: 200, result: { resultType: 'complete' } })
        t.same(textOf(last.result), [replies[kind]], kind)
      }
    }
  )
}

t.test('prompts and resources wait for input like tools', async (t) => {
  for (const transport of transports) {
    for (const [method, params, member] of [
      ['prompts/get', { name: 'ask' }, 'messages'],
      ['resources/read', { uri: 'test://ask' }, 'contents']
    ] as const) {
      const url = acme.url(transport)
      const first = await round(url, method, params)
      t.match(first.result, { resultType: 'input_required' }, `${transport} ${method}`)
      t.notOk('ttlMs' in (first.result ?? {}), 'nothing that could be cached')
      const { result } = await round(url, method, {
        ...params,
        requestState: first.requestState,
        inputResponses: answersTo(first.inputRequests)
      })
      t.match(result, { resultType: 'complete' })
      t.match(JSON.stringify(result?.[member]), /Ada/)
      if (method === 'resources/read') t.match(result, { ttlMs: 0, cacheScope: 'private' })
      const lines = acme.log.filter((line) => line['msg'] === 'call' && line['method'] === method).slice(-2)
      t.match(lines, [
        { resultType: 'input_required', retry: undefined },
        { resultType: undefined, retry: 'input' }
      ])
    }
  }
})

t.test(
  'what is asked at once comes in one round, what is asked later in the next; progress rides each with its own token',
  async (t) => {
    for (const transport of transports) {
      const url = acme.url(transport)
      const call = steps(
        { progress: 1 },
        { progress: 5, ask: [serverRequests.form, serverRequests.sample, serverRequests.roots] },
        { progress: 4 },
        { progress: 6, ask: [serverRequests.form] },
        { progress: 6 },
        { progress: 7 }
      )
      const one = await round(url, 'tools/call', call, { meta: { progressToken: 'p1' } })
      const heardIn = (each: typeof one) =>
        each.notifications.map(({ params }) => [(params as Json)['progressToken'], (params as Json)['progress']])
      t.same(
        heardIn(one),
        [
          ['p1', 1],
          ['p1', 5]
        ],
        transport
      )
      t.same(
        Object.values(one.inputRequests)
          .map(({ method }) => method)
          .sort(),
        ['elicitation/create', 'roots/list', 'sampling/createMessage']
      )
      const two = await round(
        url,
        'tools/call',
        { ...call, requestState: one.requestState, inputResponses: answersTo(one.inputRequests) },
        { id: 'b', meta: { progressToken: 2 } }
      )
      t.same(heardIn(two), [[2, 6]], 'what does not increase is left out')
      const three = await round(
        url,
        'tools/call',
        { ...call, requestState: two.requestState, inputResponses: { ...answersTo(two.inputRequests), unknown: 7 } },
        { id: 'c', meta: { progressToken: 3 } }
      )
      t.same(heardIn(three), [[3, 7]])
      t.same(textOf(three.result), [replies.form, replies.sample, replies.roots, replies.form])
    }
  }
)

t.test('answers that are missing are asked for again', async (t) => {
  for (const transport of transports) {
    const url = acme.url(transport)
    const call = steps({ ask: [serverRequests.form, serverRequests.sample] })
    const one = await round(url, 'tools/call', call)
    const keyOf = (wanted: string): string =>
      Object.entries(one.inputRequests).find(([, { method }]) => method === wanted)?.[0] ?? ''
    const [form, sample] = [keyOf('elicitation/create'), keyOf('sampling/createMessage')]
    const two = await round(url, 'tools/call', {
      ...call,
      requestState: one.requestState,
      inputResponses: { [sample]: answersTo(one.inputRequests)[sample] }
    })
    t.same(two.inputRequests, { [form]: one.inputRequests[form] }, transport)
    t.match(
      await round(url, 'tools/call', {
        ...call,
        requestState: one.requestState,
        inputResponses: answersTo(one.inputRequests)
      }),
      { error: { code: -32602 } },
      'the round before is over'
    )
    const three = await round(url, 'tools/call', { ...call, requestState: two.requestState })
    t.same(three.inputRequests, two.inputRequests, 'and again')
    const last = await round(url, 'tools/call', {
      ...call,
      requestState: three.requestState,
      inputResponses: answersTo(three.inputRequests)
    })
    t.same(textOf(last.result), [replies.form, replies.sample])
  }
})

t.test('a malformed answer is an error, and the round can be tried again with the same state', async (t) => {
  const url = acme.url('http')
  const call = steps({ ask: [serverRequests.form, serverRequests.sample, serverRequests.roots] })
  const { inputRequests, requestState } = await round(url, 'tools/call', call)
  const right = answersTo(inputRequests)
  const retry = (inputResponses: unknown) => round(url, 'tools/call', { ...call, requestState, inputResponses })
  const keyOf = (method: string): string =>
    Object.entries(inputRequests).find(([, each]) => each.method === method)?.[0] ?? ''
  for (const [method, wrong] of [
    ['elicitation/create', {}],
    ['elicitation/create', 'yes'],
    ['elicitation/create', { action: 'maybe' }],
    ['elicitation/create', { action: 'accept', content: [] }],
    ['elicitation/create', null],
    ['sampling/createMessage', { role: 'assistant' }],
    ['sampling/createMessage', { ...replies.sample, content: 'text' }],
    ['roots/list', {}],
    ['roots/list', { roots: [{}] }]
  ] as Array<[string, unknown]>) {
    t.match(
      await retry({ ...right, [keyOf(method)]: wrong }),
      { status: 200, error: { code: -32602, data: { reason: 'invalid_params' } } },
      `${method} ${JSON.stringify(wrong)}`
    )
  }
  t.match(await retry([]), { error: { code: -32602 } })
  t.same(textOf((await retry(right)).result), [replies.form, replies.sample, replies.roots])
})

t.test('a person who says no is no error', async (t) => {
  for (const action of ['decline', 'cancel']) {
    const call = steps({ ask: [serverRequests.form] })
    const { inputRequests, requestState } = await round(acme.url('stdio'), 'tools/call', call)
    const { result } = await round(acme.url('stdio'), 'tools/call', {
      ...call,
      requestState,
      inputResponses: Object.fromEntries(Object.keys(inputRequests).map((key) => [key, { action }]))
    })
    t.same(textOf(result), [{ action }])
  }
})

t.test(
  'what the client did not declare is refused at the upstream, and what names no call goes to the one in flight',
  async (t) => {
    for (const transport of transports) {
      const url = acme.url(transport)
      const refused = await round(
        url,
        'tools/call',
        steps({ ask: [serverRequests.form] }, { ask: [serverRequests.sample] }, { ask: [serverRequests.roots] }),
        { capabilities: {} }
      )
      t.match(
        textOf(refused.result),
        [{ error: { code: -32601 } }, { error: { code: -32601 } }, { error: { code: -32601 } }],
        transport
      )
      const formOnly = { capabilities: { elicitation: {} } }
      t.match(textOf((await round(url, 'tools/call', steps({ ask: [serverRequests.url] }), formOnly)).result), [
        { error: { code: -32602 } }
      ])
      const pushed = { name: 'steps', arguments: { push: true, steps: [{ ask: [serverRequests.form] }] } }
      const first = await round(url, 'tools/call', pushed, formOnly)
      t.match(first.result, { resultType: 'input_required' }, 'on the stream of the connection')
      const last = await round(
        url,
        'tools/call',
        { ...pushed, requestState: first.requestState, inputResponses: answersTo(first.inputRequests) },
        formOnly
      )
      t.same(textOf(last.result), [replies.form])
    }
  }
)

t.test('calls that are parked side by side get their own answers', async (t) => {
  for (const transport of transports) {
    const url = acme.url(transport)
    const call = (n: number): Json =>
      steps({
        ask: [
          {
            method: 'elicitation/create',
            params: { message: `call ${n}`, requestedSchema: { type: 'object', properties: {} } }
          }
        ]
      })
    const rounds = await Promise.all([1, 2, 3].map((n) => round(url, 'tools/call', call(n))))
    for (const [at, { inputRequests }] of rounds.entries())
      t.match(
        Object.values(inputRequests),
        [{ params: { message: `call ${at + 1}` } }],
        `${transport}: none is asked what another call wants`
      )
    const results = await Promise.all(
      rounds.map(({ inputRequests, requestState }, at) =>
        round(url, 'tools/call', {
          ...call(at + 1),
          requestState,
          inputResponses: Object.fromEntries(
            Object.keys(inputRequests).map((key) => [key, { action: 'accept', content: { at } }])
          )
        })
      )
    )
    t.same(
      results.map(({ result }) => textOf(result)),
      [0, 1, 2].map((at) => [{ action: 'accept', content: { at } }])
    )
  }
})

t.test(
  "what is isolated by principal may ask, what is shared may not, and what is kept between calls stays one person's",
  async (t) => {
    const command = {
      command: process.execPath,
      args: [new URL('../../kit/stdio-server.ts', import.meta.url).pathname, JSON.stringify(script)]
    }
    const other = await gateway(t, {
      upstreams: { own: { ...command, isolation: 'principal' }, all: { ...command, isolation: 'shared' } },
      endpoints: { own: { upstreams: ['own'], prefix: '' }, all: { upstreams: ['all'], prefix: '' } }
    })
    const call = steps({ ask: [serverRequests.form] })
    const first = await round(other.url('own'), 'tools/call', call)
    t.match(first.result, { resultType: 'input_required' })
    t.same(
      textOf(
        (
          await round(other.url('own'), 'tools/call', {
            ...call,
            requestState: first.requestState,
            inputResponses: answersTo(first.inputRequests)
          })
        ).result
      ),
      [replies.form]
    )
    t.match(textOf((await round(other.url('all'), 'tools/call', call)).result), [{ error: { code: -32601 } }])

    const pid = async (meta: Json = {}): Promise<unknown> =>
      textOf((await round(other.url('own'), 'tools/call', { name: 'pid' }, { meta })).result)
    const conversation = { 'io.gatehouse/conversation': 'of mine' }
    const [plain, mine] = [await pid(), await pid(conversation)]
    t.not(plain, mine, 'a conversation has a process of its own')
    t.same([await pid(), await pid(conversation)], [plain, mine], 'and keeps it')
    t.match(
      await round(other.url('own'), 'tools/call', { name: 'pid' }, { meta: { 'io.gatehouse/conversation': '' } }),
      { error: { code: -32602 } }
    )
  }
)
