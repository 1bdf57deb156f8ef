// What cannot be asked, is not answered or goes wrong between a legacy client and a modern server, and the words for
// it: errors of 2026-07-28 never reach the client.

import t from 'tap'
import { allCapabilities, type Json } from '../../kit/server-request.ts'
import { jsonHeaders, send } from '../../kit/client.ts'
import { gateway, key } from '../../kit/gateway.ts'
import { modernWays, startModern } from '../../kit/modern-server.ts'
import { legacyTransports, legacyRevisions, answeringClient } from '../../kit/answering-client.ts'

const up = await startModern()
t.teardown(() => up.close())
const acme = await gateway(t, modernWays(up.url))
const page = { mode: 'url', url: 'https://up.example/authorize?x=1', message: 'Sign in.' }
const asking = (...inputRequests: Json[]): Json => ({
  name: 'rounds',
  arguments: {
    results: [{ inputRequests: Object.fromEntries(inputRequests.map((request, at) => [`k${at}`, request])) }]
  }
})
const elicit = (params: Json): Json => ({ method: 'elicitation/create', params })
const count = (tool = 'rounds'): number => up.server.requests('tools/call', tool).length

for (const transport of legacyTransports) {
  t.test(
    `${transport}: a web page to visit gets an id of ours for clients that know it, and is told to the others in words`,
    async (t) => {
      for (const revision of legacyRevisions) {
        for (const endpoint of ['default', 'all']) {
          const client = await answeringClient(acme.url(endpoint), key, transport, revision, allCapabilities)
          const before = count()
          const params = asking(elicit(page), elicit(page))
          const call = await client.start('tools/call', {
            ...params,
            name: endpoint === 'all' ? 'up__rounds' : 'rounds'
          })
          if (revision < '2025-11-25') {
            const { result } = (await call.final()) as { result: Json }
            t.equal(result['isError'], true, revision)
            t.match(result['content'][0].text, /https:\/\/up\.example\/authorize\?x=1/)
            t.equal(count(), before + 1)
          } else {
            const questions = await call.serverRequests(2)
            const ids = questions.map(({ params }) => String(params.elicitationId))
            t.equal(new Set(ids).size, 2)
            t.ok(
              ids.every((id) => (endpoint === 'all' ? /^up:[\w-]{20,}$/.test(id) : /^[\w-]{20,}$/.test(id))),
              ids.join()
            )
            t.match(questions[0]?.['params'], { ...page, message: endpoint === 'all' ? '[up] Sign in.' : 'Sign in.' })
            for (const question of questions) await client.answer(question, { action: 'accept' })
            t.same(JSON.parse(String((await call.final())['result'].content[0].text)).inputResponses, {
              k0: { action: 'accept' },
              k1: { action: 'accept' }
            })
            t.equal(count(), before + 2)
          }
          client.close()
        }
      }
    }
  )

  t.test(`${transport}: what a client answers with an error ends the call there, and is not asked again`, async (t) => {
    const client = await answeringClient(acme.url(), key, transport, '2025-11-25', allCapabilities)
    t.teardown(() => client.close())
    for (const [tool, code, shown] of [
      ['sample', -1, -1],
      ['roots', -32603, -32603],
      ['ask', -32020, -32603],
      ['sample', -32021, -32603]
    ] as const) {
      const before = count(tool)
      const call = await client.start('tools/call', { name: tool, arguments: {} })
      const [question] = (await call.serverRequests()) as [Json]
      await client.refuse(question, { code, message: 'User rejected sampling request' })
      const data = { reason: 'client_no_answer', upstream: 'up', requestId: String }
      t.match(await call.final(), { error: { code: shown, message: /did not answer .*User rejected/, data } })
      const line = acme.log.findLast(({ msg }) => msg === 'call')
      t.match(line, { outcome: 'client_no_answer', code: shown, error: /User rejected/ })
      t.equal(count(tool), before + 1, 'the server is not told, as 2026-07-28 has it')
    }
    const call = await client.start(
      'tools/call',
      asking(
        { method: 'roots/list' },
        elicit({ mode: 'form', message: 'm', requestedSchema: { type: 'object', properties: {} } })
      )
    )
    const [first, second] = (await call.serverRequests(2)) as [Json, Json]
    await client.refuse(first, { code: -1, message: 'no' })
    t.match(await call.final(), { error: { code: -1 } })
    t.ok(
      call
        .messages()
        .some(({ method, params }) => method === 'notifications/cancelled' && params.requestId === second['id']),
      'what was asked beside it is withdrawn'
    )
  })

  t.test(`${transport}: codes`, async (t) => {
    for (const revision of legacyRevisions) {
      const client = await answeringClient(acme.url(), key, transport, revision, allCapabilities)
      const call = (code: number, data?: unknown): Promise<Json> =>
        client.request('tools/call', { name: 'rpcerror', arguments: { code, data } })
      for (const code of [-32020, -32022]) {
        const { error } = (await call(code)) as { error: Json }
        t.equal(error['code'], -32603, `${revision}: ${code}`)
      }
      t.match((await call(-32021, { requiredCapabilities: { extensions: { 'x/y': {} } } }))['result'], {
        isError: true,
        content: [{ text: /extensions\.x\/y/ }]
      })
      t.match(
        (await call(-32021, { requiredCapabilities: { roots: {} } }))['error'],
        { code: -32603, message: /does not pass/ },
        'what was declared is not missing'
      )
      t.match(
        (await call(-32050))['error'],
        { code: -32050, message: 'refused by the tool', data: { kept: true } },
        'its own errors pass'
      )
      t.match(
        (await client.request('resources/read', { uri: 'test://none' }))['error'],
        { code: -32602 },
        'a server that does not say what was wrong is taken at its word'
      )
      up.override(
        ({ message }) => message?.['method'] === 'resources/read',
        (response, { message }) => {
          response.writeHead(200, { 'content-type': 'application/json' }).end(
            JSON.stringify({
              jsonrpc: '2.0',
              id: message?.['id'],
              error: { code: -32602, message: 'Resource not found', data: { uri: 'test://none' } }
            })
          )
        }
      )
      t.match((await client.request('resources/read', { uri: 'test://none' }))['error'], {
        code: -32002,
        message: 'Resource not found',
        data: { uri: 'test://none' }
      })
      for (const method of ['prompts/get', 'resources/read', 'completion/complete']) {
        up.server.script.errors = {
          [method]: {
            code: -32021,
            message: 'this needs sampling.tools',
            data: { requiredCapabilities: { sampling: { nothing: {} } } }
          }
        }
        const params = {
          'prompts/get': { name: 'greet' },
          'resources/read': { uri: 'test://one' },
          'completion/complete': { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'who', value: '' } }
        }[method] as Json
        t.match(
          (await client.request(method, params))['error'],
          { code: -32603, message: /sampling\.nothing/, data: { requiredCapabilities: { sampling: { nothing: {} } } } },
          method
        )
        up.server.script.errors = {}
      }
      client.close()
    }
  })
}

t.test('what no server may ask is refused, and reaches nobody', async (t) => {
  const client = await answeringClient(acme.url(), key, 'Streamable HTTP', '2025-11-25', allCapabilities)
  const odd: Json[] = [
    { inputRequests: { a: { method: 'ping' } } },
    { inputRequests: { a: 'x' } },
    { inputRequests: [] },
    { inputRequests: { a: elicit({ ...page, url: 'javascript:alert(1)' }) } },
    { inputRequests: { a: { method: 'sampling/createMessage' } } },
    { inputRequests: Object.fromEntries(Array.from({ length: 33 }, (_, n) => [`k${n}`, { method: 'roots/list' }])) }
  ]
  for (const result of odd) {
    const call = await client.start('tools/call', { name: 'rounds', arguments: { results: [result] } })
    t.match(
      await call.final(),
      { error: { code: -32603, data: { reason: 'upstream_protocol', upstream: 'up' } } },
      JSON.stringify(result).slice(0, 60)
    )
    t.equal(call.messages().filter(({ id }) => id !== call.id).length, 0)
  }
  t.match(
    await client.request('tools/call', { name: 'result', arguments: { result: { resultType: 'input_required' } } }),
    { error: { code: -32603, data: { reason: 'upstream_protocol' } } }
  )
  const unknown = await client.request('tools/call', {
    name: 'result',
    arguments: { result: { resultType: 'surprise' } }
  })
  t.match(unknown, { error: { code: -32603 } })
  const { result } = (await client.request('tools/call', { name: 'ask', arguments: { count: 0 } })) as { result: Json }
  t.ok(result, 'an empty set of questions is answered by an empty set of answers')
})

t.test('a choice that the revision has no form for, and tools in sampling, are told in words', async (t) => {
  const several = elicit({
    mode: 'form',
    message: 'm',
    requestedSchema: { type: 'object', properties: { a: { type: 'array', items: { type: 'string', enum: ['x'] } } } }
  })
  const tools = { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1, tools: [] } }
  const titled = elicit({
    mode: 'form',
    message: 'm',
    requestedSchema: {
      type: 'object',
      properties: { a: { type: 'string', oneOf: [{ const: 'x', title: 'X' }], default: 'x' } }
    }
  })
  const client = await answeringClient(acme.url(), key, 'Streamable HTTP', '2025-06-18', allCapabilities)
  for (const request of [several, tools])
    t.match(await client.request('tools/call', asking(request)), { result: { isError: true } })
  const call = await client.start('tools/call', asking(titled))
  const [question] = (await call.serverRequests()) as [Json]
  t.same(question['params'].requestedSchema.properties, { a: { type: 'string', enum: ['x'], enumNames: ['X'] } })
  await client.answer(question, { action: 'cancel' })
  await call.final()
})

t.test(
  'a client that takes no stream is told that it could not be asked; with a stream of its session it is asked there',
  async (t) => {
    const { client } = await answeringClient(acme.url(), key, 'Streamable HTTP', '2025-06-18', allCapabilities)
    if (client === undefined) throw new Error('no client')
    const plain = { headers: { ...jsonHeaders, accept: 'application/json' } }
    const answer = await client.request('tools/call', { name: 'roots', arguments: {} }, plain)
    t.match(answer.json, { result: { isError: true, content: [{ text: /no stream/ }] } })
    t.match(
      acme.log.findLast(({ msg }) => msg === 'call'),
      { outcome: 'client_lacks_capability', code: undefined, error: /no stream/ }
    )
    const listening = await client.listen()
    const running = client.request('tools/call', { name: 'roots', arguments: {} }, plain)
    const question = (await listening.next(({ method }) => method === 'roots/list')) as Json
    await send(acme.url(), {
      headers: client.headers,
      body: JSON.stringify({ jsonrpc: '2.0', id: question['id'], result: { roots: [] } })
    })
    t.same(JSON.parse((await running).json.result.content[0].text).inputResponses, { user_name: { roots: [] } })
    listening.close()
  }
)

t.test("answers and states of the client's own making do not reach the server", async (t) => {
  const client = await answeringClient(acme.url(), key, 'Streamable HTTP', '2025-11-25', allCapabilities)
  const call = await client.start('tools/call', {
    name: 'roots',
    arguments: {},
    inputResponses: { user_name: { roots: [] } },
    requestState: 'state of round 1'
  })
  const [question] = (await call.serverRequests()) as [Json]
  t.equal(question['method'], 'roots/list', 'it is asked all the same')
  t.notOk('requestState' in (up.server.requests('tools/call', 'roots').at(-1) as Json)['params'])
  await client.answer(question, { roots: [] })
  await call.final()
})
