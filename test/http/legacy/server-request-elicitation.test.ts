// Elicitation in both modes, in the form that the client's revision knows (2025-11-25 client/elicitation; SEP-1330,
// SEP-1036).

import t from 'tap'
import { acmeGateway, keyOf, type AcmeGateway } from '../../kit/acme-gateway.ts'
import { capableClient, callUntilServerRequest, allCapabilities, post } from '../../kit/server-request.ts'
import { listenEvents } from '../../kit/events.ts'
import { startUpstream, type HttpUpstream } from '../../kit/upstream.ts'
import { until } from '../../kit/until.ts'

interface Two extends AcmeGateway {
  readonly up: HttpUpstream
}

async function two(t: Parameters<typeof acmeGateway>[0]): Promise<Two> {
  const [up, other] = [await startUpstream(), await startUpstream()]
  t.teardown(() => Promise.all([up.close(), other.close()]))
  const made = await acmeGateway(t, {
    upstreams: { up: { url: up.url }, other: { url: other.url } },
    endpoints: { default: { upstreams: ['up'], prefix: '' }, both: { upstreams: ['up', 'other'] } }
  })
  return { ...made, up }
}

const titled = [
  { const: 'r', title: 'Red' },
  { const: 'g', title: 'Green' }
]
const form = {
  mode: 'form',
  message: 'which?',
  requestedSchema: {
    type: 'object',
    properties: {
      colour: { type: 'string', title: 'Colour', oneOf: titled, default: 'r' },
      sure: { type: 'boolean', default: true },
      age: { type: 'integer', minimum: 0, default: 3 }
    },
    required: ['colour']
  }
}

t.test('a form of 2025-11-25 as it is', async (t) => {
  const made = await two(t)
  const client = await capableClient(made.url(), keyOf.ada)
  const asked = await callUntilServerRequest(made.url(), client, 'elicit', { params: form })
  t.same(asked.serverRequest['params'], form)
  await post(made.url(), client, {
    id: asked.serverRequest['id'],
    result: { action: 'accept', content: { colour: 'g' } }
  })
  t.same((await asked.result())['result'], { action: 'accept', content: { colour: 'g' } })
})

t.test('the same form in words that 2025-06-18 knows', async (t) => {
  const made = await two(t)
  const client = await capableClient(made.url(), keyOf.ada, { elicitation: {} }, '2025-06-18')
  const asked = await callUntilServerRequest(made.url(), client, 'elicit', { params: form })
  t.same(asked.serverRequest['params'], {
    message: 'which?',
    requestedSchema: {
      type: 'object',
      properties: {
        colour: { type: 'string', title: 'Colour', enum: ['r', 'g'], enumNames: ['Red', 'Green'] },
        sure: { type: 'boolean', default: true },
        age: { type: 'integer', minimum: 0 }
      },
      required: ['colour']
    }
  })
  await post(made.url(), client, {
    id: asked.serverRequest['id'],
    result: { action: 'accept', content: { colour: 'g' } }
  })
  t.same((await asked.result())['result'], { action: 'accept', content: { colour: 'g' } })
})

for (const endpoint of ['default', 'both']) {
  const both = endpoint === 'both'
  const shown = both ? 'up:e-1' : 'e-1'
  const url = { mode: 'url', elicitationId: 'e-1', url: 'https://up.example/connect?e=e-1', message: 'Please connect' }

  t.test(
    `by URL, on an endpoint with ${both ? 'two servers' : 'one'}: the id is one name of one thing, from the server request to its completion`,
    async (t) => {
      const made = await two(t)
      const client = await capableClient(made.url(endpoint), keyOf.ada)
      const stream = await listenEvents(made.url(endpoint), client)
      const asked = await callUntilServerRequest(made.url(endpoint), client, both ? 'up__elicit' : 'elicit', {
        params: url
      })
      t.same(asked.serverRequest['params'], {
        ...url,
        elicitationId: shown,
        message: both ? '[up] Please connect' : 'Please connect'
      })
      await post(made.url(endpoint), client, { id: asked.serverRequest['id'], result: { action: 'accept' } })
      await asked.result()
      await until('the streams of the listing and of the session are open', () => made.up.allListening())
      made.up.broadcast({
        jsonrpc: '2.0',
        method: 'notifications/elicitation/complete',
        params: { elicitationId: 'e-1' }
      })
      const done = await stream.next('the completion', ({ method }) => method === 'notifications/elicitation/complete')
      t.same(done.params, { elicitationId: shown })
      stream.cut()
    }
  )

  t.test(`demanded by error -32042, on an endpoint with ${both ? 'two servers' : 'one'}`, async (t) => {
    const made = await two(t)
    const client = await capableClient(made.url(endpoint), keyOf.ada)
    const data = { elicitations: [url, { ...url, elicitationId: 'e-2' }, 'no object'], kept: true }
    const { json, headers } = await client.request('tools/call', {
      name: both ? 'up__rpcerror' : 'rpcerror',
      arguments: { code: -32042, message: 'Connect first', data }
    })
    t.same(json.error, {
      code: -32042,
      message: 'Connect first',
      data: both
        ? {
            elicitations: [
              { ...url, elicitationId: 'up:e-1', message: '[up] Please connect' },
              { ...url, elicitationId: 'up:e-2', message: '[up] Please connect' },
              'no object'
            ],
            kept: true,
            requestId: headers['x-request-id']
          }
        : { ...data, requestId: headers['x-request-id'] }
    })
  })
}

t.test('a completion while the client is away waits for it', async (t) => {
  const made = await two(t)
  const client = await capableClient(made.url(), keyOf.ada, allCapabilities)
  await client.request('tools/call', { name: 'echo' })
  await until('the streams of the listing and of the session are open', () => made.up.allListening())
  const stream = await listenEvents(made.url(), client)
  await until('it is primed', () => stream.lastId())
  stream.cut()
  await stream.ended
  made.up.broadcast({ jsonrpc: '2.0', method: 'notifications/elicitation/complete', params: { elicitationId: 'e-1' } })
  const again = await listenEvents(made.url(), client, stream.lastId())
  t.same((await again.next('the completion', ({ method }) => method === 'notifications/elicitation/complete')).params, {
    elicitationId: 'e-1'
  })
  again.cut()
})

t.test(
  'nothing but a page is opened: the server that asks for more is told so, and its client gets nothing',
  async (t) => {
    const made = await two(t)
    const client = await capableClient(made.url(), keyOf.ada)
    const elicit = async (url: unknown) =>
      (
        await client.request('tools/call', {
          name: 'elicit',
          arguments: {
            params: {
              mode: 'url',
              elicitationId: 'e',
              message: 'Please connect',
              ...(url === undefined ? {} : { url })
            }
          }
        })
      ).messages
    for (const url of [
      'javascript:alert(1)',
      ' JavaScript:alert(1)',
      'java\nscript:alert(1)',
      'file:///etc/passwd',
      'data:text/html,x',
      'vscode://x',
      'ftp://up.example/',
      '//up.example/',
      'connect',
      '',
      7,
      null,
      undefined
    ]) {
      const messages = await elicit(url)
      t.equal(messages.length, 1, `${url}: no question`)
      t.match(JSON.parse(messages[0].result.content[0].text), { error: { code: -32602 } }, String(url))
    }
    for (const url of ['https://up.example/connect', 'http://127.0.0.1:7/connect', 'HTTPS://up.example']) {
      const asked = await callUntilServerRequest(
        made.url(),
        client,
        'elicit',
        { params: { mode: 'url', elicitationId: 'e', message: 'Please connect', url } },
        url
      )
      t.equal(asked.serverRequest['params'].url, url)
      await post(made.url(), client, { id: asked.serverRequest['id'], result: { action: 'accept' } })
      t.same((await asked.result())['result'], { action: 'accept' })
    }
  }
)

t.test('nor where it is demanded by error -32042', async (t) => {
  const made = await two(t)
  const page = { mode: 'url', elicitationId: 'e-1', url: 'https://up.example/connect', message: 'Please connect' }
  for (const [endpoint, shown] of [
    ['default', page],
    ['both', { ...page, elicitationId: 'up:e-1', message: '[up] Please connect' }]
  ] as const) {
    const client = await capableClient(made.url(endpoint), keyOf.ada)
    const data = {
      elicitations: [{ ...page, url: 'javascript:alert(1)' }, page, { ...page, url: 'file:///etc/passwd' }]
    }
    const { json, headers } = await client.request('tools/call', {
      name: endpoint === 'both' ? 'up__rpcerror' : 'rpcerror',
      arguments: { code: -32042, message: 'Connect first', data }
    })
    const requestId = headers['x-request-id']
    t.same(json.error, { code: -32042, message: 'Connect first', data: { elicitations: [shown], requestId } })
  }
})

t.test(
  'a client that opens no pages is told where they are: the model by the result of its tool, a program by an error',
  async (t) => {
    const made = await two(t)
    const page = { mode: 'url', elicitationId: 'e-1', url: 'https://up.example/connect', message: 'Please connect' }
    const elicitations = [
      { ...page, url: 'javascript:alert(1)' },
      page,
      { ...page, url: 'http://up.example/a\nb', message: 7 }
    ]
    const demand = (data: unknown): Record<string, unknown> => ({
      code: -32042,
      message: 'Connect first',
      ...(data === undefined ? {} : { data })
    })
    for (const [capabilities, revision] of [
      [{ elicitation: {} }, '2025-11-25'],
      [{}, '2025-11-25'],
      [{ elicitation: { url: {} } }, '2025-06-18'],
      [allCapabilities, '2025-03-26'],
      [{}, '2024-11-05']
    ] as const) {
      for (const endpoint of ['default', 'both']) {
        const client = await capableClient(made.url(endpoint), keyOf.ada, capabilities, revision)
        let requestId: unknown
        const call = async (data: unknown, more = {}) => {
          const { json, headers } = await client.request('tools/call', {
            name: endpoint === 'both' ? 'up__rpcerror' : 'rpcerror',
            arguments: demand(data),
            ...more
          })
          requestId = headers['x-request-id']
          return json
        }
        const { result } = await call({ elicitations })
        t.match(
          result,
          {
            isError: true,
            content: [
              {
                type: 'text',
                text: /^Upstream up .*:\nhttps:\/\/up\.example\/connect \(Please connect\)\nhttp:\/\/up\.example\/ab\nVisit them.*"elicitation\.url"/
              }
            ]
          },
          `${revision} ${JSON.stringify(capabilities)}`
        )
        t.notMatch(JSON.stringify(result), /javascript/)
        t.match((await call({ elicitations: [] })).result, { isError: true, content: [{ text: /names none/ }] })
        const own = await call({ own: 1 })
        t.same(own.error, demand({ own: 1, requestId }), 'an error that demands nothing is none')
        const kept = await call(undefined)
        t.same(kept.error, demand({ kept: true, requestId }))
      }
    }
  }
)

t.test('a completion is told only to those who could be sent to a page', async (t) => {
  const told = { jsonrpc: '2.0', method: 'notifications/elicitation/complete', params: { elicitationId: 'e-1' } }
  const log = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'error', data: 'after it' } }
  for (const [capabilities, revision, expected] of [
    [{ elicitation: { form: {}, url: {} } }, '2025-11-25', 1],
    [{ elicitation: { url: {} } }, '2025-11-25', 1],
    [{ elicitation: { form: {} } }, '2025-11-25', 0],
    [{ elicitation: {} }, '2025-11-25', 0],
    [{}, '2025-11-25', 0],
    [{ elicitation: { url: {} } }, '2025-06-18', 0],
    [{ elicitation: { url: {} } }, '2025-03-26', 0]
  ] as const) {
    const made = await two(t)
    const client = await capableClient(made.url(), keyOf.ada, capabilities, revision)
    const stream = await listenEvents(made.url(), client)
    await client.request('tools/call', { name: 'echo' })
    await until('the streams of the listing and of the session are open', () => made.up.allListening())
    made.up.broadcast(told)
    made.up.broadcast(log)
    await stream.next('what came after it', ({ method }) => method === log.method)
    t.equal(
      stream.messages().filter(({ method }) => method === told.method).length,
      expected,
      `${revision} ${JSON.stringify(capabilities)}`
    )
    stream.cut()
  }
})
