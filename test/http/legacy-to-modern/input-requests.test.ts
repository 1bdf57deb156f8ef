// Clients of every legacy revision, over both of their transports, before servers that speak nothing but 2026-07-28:
// what a server asks in its result becomes real server requests on the way of the call.

import t from 'tap'
import { allCapabilities, type Json } from '../../kit/server-request.ts'
import { gateway, key } from '../../kit/gateway.ts'
import { modernStdio, startModern } from '../../kit/modern-server.ts'
import { legacyTransports, legacyRevisions, answeringClient } from '../../kit/answering-client.ts'

const up = await startModern()
t.teardown(() => up.close())
const acme = await gateway(t, {
  upstreams: {
    up: { type: 'http', url: up.url, era: 'modern' },
    pipe: { ...modernStdio(), era: 'modern' },
    shared: { type: 'http', url: up.url, era: 'modern', isolation: 'shared' },
    principal: { ...modernStdio(), era: 'modern', isolation: 'principal' },
    sharedPipe: { ...modernStdio(), era: 'modern', isolation: 'shared' }
  },
  endpoints: {
    default: { upstreams: ['up'], prefix: '' },
    pipe: { upstreams: ['pipe'], prefix: '' },
    all: { upstreams: ['up', 'pipe'] },
    shared: { upstreams: ['shared', 'principal', 'sharedPipe'] }
  }
})

/** The rounds of a call as they reached the server, seen by the server itself. */
async function rounds(
  client: { request: (method: string, params?: Json) => Promise<Json> },
  endpoint: string,
  tool: string
): Promise<Json[]> {
  const prefix = endpoint === 'all' ? 'pipe__' : ''
  const answer = await client.request('tools/call', { name: `${prefix}received`, arguments: {} })
  const received = JSON.parse(String(answer['result'].content[0].text)) as Json[]
  return received
    .filter(({ method, params }) => method === 'tools/call' && params.name === tool)
    .map(({ params }) => params as Json)
}

const answers: Record<string, Json> = {
  'elicitation/create': { action: 'accept', content: { name: 'ada' } },
  'sampling/createMessage': { role: 'assistant', model: 'm', content: { type: 'text', text: 'hi' } },
  'roots/list': { roots: [{ uri: 'file:///home/ada' }] }
}
const asks = { ask: 'elicitation/create', sample: 'sampling/createMessage', roots: 'roots/list' } as const

for (const transport of legacyTransports) {
  for (const revision of legacyRevisions) {
    for (const endpoint of ['default', 'pipe', 'all']) {
      t.test(
        `${revision} over ${transport}, endpoint ${endpoint}: server requests of each kind, each asked once, each round sent once`,
        async (t) => {
          const client = await answeringClient(acme.url(endpoint), key, transport, revision, allCapabilities)
          t.teardown(() => client.close())
          const name = (tool: string): string => (endpoint === 'all' ? `pipe__${tool}` : tool)
          for (const [tool, method] of Object.entries(asks)) {
            const before = (await rounds(client, endpoint, tool)).length
            const call = await client.start('tools/call', {
              name: name(tool),
              arguments: { rounds: 2 },
              _meta: { progressToken: 'mine' }
            })
            if (tool === 'ask' && revision < '2025-06-18') {
              t.match(
                await call.final(),
                { result: { isError: true, content: [{ type: 'text', text: /elicitation/ }] } },
                'legacy clients know no elicitation'
              )
              t.equal((await rounds(client, endpoint, tool)).length, before + 1)
              continue
            }
            for (let round = 0; round < 2; round++) {
              const [question] = (await call.serverRequests()) as [Json]
              t.equal(question['method'], method)
              if (tool === 'ask') {
                t.equal(question['params'].message, endpoint === 'all' ? '[pipe] who?' : 'who?')
                t.equal('mode' in question['params'], revision >= '2025-11-25')
              }
              await client.answer(question, answers[method] as Json)
            }
            const { result } = (await call.final()) as { result: Json }
            t.notOk('resultType' in result)
            const told = JSON.parse(String(result['content'][0].text)) as Json
            t.same(told['inputResponses'], { user_name: answers[method] })
            t.equal(told['requestState'], 'state of round 2')
            const sent = (await rounds(client, endpoint, tool)).slice(before)
            t.equal(sent.length, 3, 'as many requests as rounds')
            const line = acme.log.findLast((each) => each['msg'] === 'call' && each['tool'] === tool)
            t.match(line, { rounds: 3, serverRequests: 2, attempts: undefined, retry: undefined })
            t.same(
              sent.map(({ requestState }) => requestState as unknown),
              [undefined, 'state of round 1', 'state of round 2']
            )
            t.ok(sent.every((params) => JSON.stringify(params['arguments']) === '{"rounds":2}'))
            const { 'io.modelcontextprotocol/clientCapabilities': declared } = (sent[0] as Json)['_meta'] as Json
            t.same(declared.roots, {})
            t.same(
              declared.sampling,
              revision < '2025-11-25' ? {} : endpoint === 'all' ? { tools: {} } : allCapabilities.sampling
            )
            t.same(
              declared.elicitation,
              revision < '2025-06-18' ? undefined : revision < '2025-11-25' ? {} : allCapabilities.elicitation
            )
          }
        }
      )
    }

    t.test(
      `${revision} over ${transport}: a client that declared nothing is told what is missing, and nothing is asked`,
      async (t) => {
        const client = await answeringClient(acme.url(), key, transport, revision)
        t.teardown(() => client.close())
        for (const [tool, what] of [
          ['ask', 'elicitation'],
          ['sample', 'sampling'],
          ['roots', 'roots'],
          ['needs', 'sampling']
        ] as const) {
          const before = up.server.requests('tools/call', tool).length
          const answer = await client.request('tools/call', { name: tool, arguments: {} })
          t.match(answer, { result: { isError: true, content: [{ type: 'text' }] } }, tool)
          t.match(answer['result'].content[0].text, new RegExp(what))
          t.equal(up.server.requests('tools/call', tool).length, before + 1)
        }
      }
    )
  }
}

for (const transport of legacyTransports) {
  t.test(
    `${transport}: several server requests at once, of all kinds, are all asked before any is answered, and answered in one go`,
    async (t) => {
      const client = await answeringClient(acme.url(), key, transport, '2025-11-25', allCapabilities)
      t.teardown(() => client.close())
      const params = { mode: 'form', message: 'who?', requestedSchema: { type: 'object', properties: {} } }
      const inputRequests = {
        a: { method: 'elicitation/create', params },
        b: { method: 'roots/list', params: null },
        c: { method: 'elicitation/create', params },
        d: { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } }
      }
      const call = await client.start('tools/call', { name: 'rounds', arguments: { results: [{ inputRequests }] } })
      const questions = await call.serverRequests(4)
      t.same(
        questions.map(({ method }) => String(method)),
        Object.values(inputRequests).map(({ method }) => method)
      )
      for (const question of questions.toReversed())
        await client.answer(
          question,
          question['method'] === 'elicitation/create'
            ? { action: 'accept', content: { id: question['id'] } }
            : (answers[String(question['method'])] as Json)
        )
      const told = JSON.parse(String((await call.final())['result'].content[0].text)) as Json
      t.same(told['inputResponses'], {
        a: { action: 'accept', content: { id: questions[0]?.['id'] } },
        b: answers['roots/list'],
        c: { action: 'accept', content: { id: questions[2]?.['id'] } },
        d: answers['sampling/createMessage']
      })
    }
  )
}

t.test('a server that asks only to come again is come to again; one that never ends is given up', async (t) => {
  const client = await answeringClient(acme.url(), key, 'Streamable HTTP', '2025-11-25')
  const before = up.server.requests('tools/call', 'rounds').length
  const answer = await client.request('tools/call', { name: 'rounds', arguments: { results: [{}, {}] } })
  t.same(JSON.parse(String(answer['result'].content[0].text)), { inputResponses: null, requestState: 'rounds: 2' })
  t.equal(up.server.requests('tools/call', 'rounds').length, before + 3)
  const endless = await client.request('tools/call', {
    name: 'rounds',
    arguments: { results: Array.from({ length: 20 }, () => ({})) }
  })
  t.match(endless, { error: { code: -32603, message: /more than 8 times/, data: { reason: 'upstream_protocol' } } })
  t.equal(up.server.requests('tools/call', 'rounds').length, before + 3 + 9)
})

t.test('progress goes on from round to round', async (t) => {
  const client = await answeringClient(acme.url(), key, 'Streamable HTTP', '2025-11-25', allCapabilities)
  const call = await client.start('tools/call', {
    name: 'rounds',
    arguments: { results: [{ inputRequests: { a: { method: 'roots/list' } } }] },
    _meta: { progressToken: 7 }
  })
  const [question] = (await call.serverRequests()) as [Json]
  await client.answer(question, answers['roots/list'] as Json)
  await call.final()
  const progress = call
    .messages()
    .filter(({ method }) => method === 'notifications/progress')
    .map(({ params }) => [params.progressToken, params.progress] as unknown)
  t.same(
    progress,
    [
      [7, 1],
      [7, 2]
    ],
    'the second round began at 1 again, which the client must not see'
  )
})

t.test('prompts and resources that ask', async (t) => {
  const inputRequests = {
    a: {
      method: 'elicitation/create',
      params: { mode: 'form', message: 'who?', requestedSchema: { type: 'object', properties: {} } }
    }
  }
  const first = (method: string, result: Json): void =>
    up.override(
      ({ message }) => message?.['method'] === method,
      (response, { message }) => {
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result }))
      }
    )
  const requests = {
    'prompts/get': { name: 'greet', arguments: { who: 'ada' } },
    'resources/read': { uri: 'test://one' }
  }
  for (const transport of legacyTransports) {
    const [able, unable] = [
      await answeringClient(acme.url(), key, transport, '2025-11-25', allCapabilities),
      await answeringClient(acme.url(), key, transport, '2025-11-25')
    ]
    t.teardown(() => {
      able.close()
      unable.close()
    })
    for (const [method, params] of Object.entries(requests)) {
      first(method, { resultType: 'input_required', inputRequests })
      const call = await able.start(method, params)
      const [question] = (await call.serverRequests()) as [Json]
      await able.answer(question, { action: 'decline' })
      const { result } = (await call.final()) as { result: Json }
      t.ok(result['messages'] ?? result['contents'], method)
      t.notOk(['resultType', 'ttlMs', 'cacheScope'].some((member) => member in result))
      const sent = up.server.requests(method).at(-1)?.['params'] as Json
      t.match(sent, { ...params, inputResponses: { a: { action: 'decline' } } }, 'a decline is an answer')
      t.notOk('requestState' in sent, 'none was given')
      first(method, { resultType: 'input_required', inputRequests, requestState: 's' })
      t.match(await unable.request(method, params), {
        error: {
          code: -32603,
          message: /elicitation/,
          data: { reason: 'client_lacks_capability', requiredCapabilities: { elicitation: {} } }
        }
      })
    }
  }
})

t.test('on a connection that several sessions use, each is asked what its own call needs', async (t) => {
  for (const upstream of ['shared', 'principal', 'sharedPipe']) {
    const clients = await Promise.all(
      legacyTransports.map((transport) =>
        answeringClient(acme.url('shared'), key, transport, '2025-11-25', allCapabilities)
      )
    )
    const calls = await Promise.all(
      clients.map((client, at) => client.start('tools/call', { name: `${upstream}__ask`, arguments: { at } }))
    )
    for (const [at, call] of calls.entries()) {
      const [question] = (await call.serverRequests()) as [Json]
      await clients[at]?.answer(question, { action: 'accept', content: { at } })
    }
    for (const [at, call] of calls.entries())
      t.same(
        JSON.parse(String((await call.final())['result'].content[0].text)).inputResponses,
        { user_name: { action: 'accept', content: { at } } },
        upstream
      )
    t.equal(calls.flatMap((call) => call.messages()).filter(({ method }) => method === 'elicitation/create').length, 2)
    for (const client of clients) client.close()
  }
})

t.test('headers of 2026-07-28 are made of the arguments, and made again after the schema has changed', async (t) => {
  const client = await answeringClient(acme.url(), key, 'Streamable HTTP', '2024-11-05')
  const args = { region: 'eu', count: 3, dry: true, deep: { zone: 'ä' } }
  t.notOk((await client.request('tools/call', { name: 'routed', arguments: args }))['error'])
  const { headers } = up.server.received.at(-1) ?? { headers: {} }
  t.match(headers, {
    'mcp-name': 'routed',
    'mcp-method': 'tools/call',
    'mcp-param-region': 'eu',
    'mcp-param-count': '3',
    'mcp-param-dry': 'true',
    'mcp-param-zone': /^=\?base64\?/
  })
  const tool = up.server.script.tools.find((tool) => (tool as Json)['name'] === 'routed') as Json
  up.server.script.tools[up.server.script.tools.indexOf(tool)] = {
    ...tool,
    inputSchema: { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Place' } } }
  }
  const before = up.server.requests('tools/call', 'routed').length
  t.notOk(
    (await client.request('tools/call', { name: 'routed', arguments: args }))['error'],
    'a refusal for the headers is mended and not told'
  )
  t.equal(up.server.requests('tools/call', 'routed').length, before + 1, 'what was refused was not executed')
  const line = acme.log.findLast(({ msg }) => msg === 'call')
  t.match(line, { tool: 'routed', attempts: 2, again: 'headers', rounds: undefined })
})
