// From a public name to the upstream and back: what is sent there, what comes back, and what is answered here.

import t from 'tap'
import { type Notification, type Request, RpcError } from '../../src/protocol/messages.ts'
import { relaySetup, tool } from './kit.ts'

const echo = (request: Request) => ({ content: [], structuredContent: request.params ?? null, future: { kept: true } })

t.test('a call reaches the upstream under its own name, whole, and its result comes back whole', async (t) => {
  const setup = await relaySetup(t, {
    doubles: { one: { tools: [tool('echo')], answer: echo }, two: { tools: [tool('echo')] } }
  })
  const ada = await setup.person()
  const params = {
    name: 'one__echo',
    arguments: { name: 'one__echo', uri: 'gatehouse://one/x' },
    _meta: { a: 1 },
    future: [1]
  }
  t.same(await ada.call('tools/call', params), echo({ method: '', params: { ...params, name: 'echo' } }))
  t.same(setup.requests('tools/call'), [{ method: 'tools/call', params: { ...params, name: 'echo' } }])
  t.equal(
    setup.connections.find(({ requests }) => requests.some(({ method }) => method === 'tools/call'))?.upstream,
    'one'
  )
})

t.test("URIs are public on the way out and the upstream's own on the way in", async (t) => {
  const link = (uri: string) => ({ type: 'resource_link', uri, name: 'x' })
  const double = {
    tools: [tool('find')],
    prompts: [{ name: 'greet' }],
    resources: [{ uri: 'test://one', name: 'one' }],
    templates: [{ uriTemplate: 'test://{id}', name: 'any' }],
    answer(request: Request) {
      if (request.method === 'resources/read') return { contents: [{ uri: request.params?.['uri'], text: 'x' }] }
      if (request.method === 'prompts/get') return { messages: [{ role: 'user', content: link('test://one') }] }
      if (request.method === 'completion/complete')
        return { completion: { values: [JSON.stringify(request.params?.['ref'])] } }
      return { content: [link('test://one'), link('https://example.com/'), link('ui://app/x')] }
    }
  }
  const setup = await relaySetup(t, {
    doubles: {
      one: double,
      two: { capabilities: { tools: {}, resources: {} }, resources: [{ uri: 'test://two', name: 'two' }] }
    }
  })
  const ada = await setup.person()
  t.same((await ada.call('tools/call', { name: 'one__find' }))['content'], [
    link('gatehouse://one/test://one'),
    link('https://example.com/'),
    link('ui://one/app/x')
  ])
  t.same((await ada.call('prompts/get', { name: 'one__greet' }))['messages'], [
    { role: 'user', content: link('gatehouse://one/test://one') }
  ])
  t.same((await ada.call('resources/read', { uri: 'gatehouse://one/test://one' }))['contents'], [
    { uri: 'gatehouse://one/test://one', text: 'x' }
  ])
  t.same((await ada.call('resources/read', { uri: 'ui://one/app/x' }))['contents'], [
    { uri: 'ui://one/app/x', text: 'x' }
  ])
  t.same(
    (await ada.call('resources/read', { uri: 'test://one' }))['contents'],
    [{ uri: 'gatehouse://one/test://one', text: 'x' }],
    'a bare URI that one upstream lists'
  )
  t.same(
    setup.requests('resources/read').map(({ params }) => params?.['uri']),
    ['test://one', 'ui://app/x', 'test://one']
  )

  t.same(
    await ada.call('completion/complete', { ref: { type: 'ref/prompt', name: 'one__greet', x: 1 }, argument: {} }),
    { completion: { values: ['{"type":"ref/prompt","name":"greet","x":1}'] } }
  )
  t.same(
    await ada.call('completion/complete', {
      ref: { type: 'ref/resource', uri: 'gatehouse://one/test://{id}' },
      argument: {}
    }),
    { completion: { values: ['{"type":"ref/resource","uri":"test://{id}"}'] } }
  )
  t.same(
    await ada.call('completion/complete', {
      ref: { type: 'ref/resource', uri: 'gatehouse://two/test://two' },
      argument: {}
    }),
    { completion: { values: [] } },
    'an upstream that completes nothing is not asked'
  )
})

t.test('an endpoint of a single upstream without a prefix leaves names and URIs alone', async (t) => {
  const setup = await relaySetup(t, {
    doubles: {
      one: {
        tools: [tool('a tool/with anything', { _meta: { ui: { resourceUri: 'ui://app/x' } } })],
        resources: [{ uri: 'test://one', name: 'one' }],
        answer: echo
      }
    },
    endpoints: { default: { upstreams: ['one'], prefix: '' } }
  })
  const ada = await setup.person()
  t.match(await ada.call('tools/list'), {
    tools: [{ name: 'a tool/with anything', _meta: { ui: { resourceUri: 'ui://app/x' } } }]
  })
  t.match(await ada.call('resources/list'), { resources: [{ uri: 'test://one' }] })
  t.ok(await ada.call('tools/call', { name: 'a tool/with anything' }))
  await ada.call('resources/read', { uri: 'gatehouse://one/x' })
  await ada.call('resources/read', { uri: 'anything:at/all' })
  t.same(
    setup.requests('resources/read').map(({ params }) => params?.['uri']),
    ['gatehouse://one/x', 'anything:at/all'],
    'its upstream alone knows what it serves'
  )
})

t.test('an error of the upstream comes back as it is, with its URI made public', async (t) => {
  const error = { code: -32002, message: 'no such thing', data: { uri: 'test://x', more: 1 } }
  const setup = await relaySetup(t, {
    doubles: {
      one: {
        answer: () => {
          throw new RpcError(error)
        }
      },
      two: {}
    }
  })
  const ada = await setup.person()
  const thrown: unknown = await ada
    .call('resources/read', { uri: 'gatehouse://one/test://x' })
    .catch((caught: unknown) => caught)
  t.ok(thrown instanceof RpcError)
  t.same((thrown as RpcError).error, { ...error, data: { uri: 'gatehouse://one/test://x', more: 1 } })
  await t.rejects(ada.call('prompts/get', { name: 'one__x' }), { code: 'invalid_params' })
})

t.test('lists are merged, in one order, in pages that hold each entry once', async (t) => {
  const setup = await relaySetup(t, {
    doubles: {
      two: { tools: ['a', 'b', 'c', 'd'].map((name) => tool(name)) },
      one: { tools: ['z', 'y', 'x'].map((name) => tool(name, { title: name })) }
    },
    endpoints: { default: { upstreams: ['one', { upstream: 'two', prefix: 'second' }], separator: '.' } },
    limits: { pageSize: 3 }
  })
  const ada = await setup.person()
  const names: string[] = []
  let cursor: unknown
  let pages = 0
  do {
    const page = await ada.call('tools/list', cursor === undefined ? undefined : { cursor })
    names.push(...(page['tools'] as Array<{ name: string }>).map(({ name }) => name))
    cursor = page['nextCursor']
    pages++
  } while (cursor !== undefined)
  t.same(names, ['one.z', 'one.y', 'one.x', 'second.a', 'second.b', 'second.c', 'second.d'])
  t.equal(pages, 3)
})

t.test(
  'progress and log messages reach the caller of the call; log messages only from the wanted level on',
  async (t) => {
    const message = (level: string, logger?: string): Notification => ({
      method: 'notifications/message',
      params: { level, data: 'x', ...(logger === undefined ? {} : { logger }) }
    })
    const setup = await relaySetup(t, {
      doubles: {
        one: {
          tools: [tool('talk')],
          answer(_request, client) {
            for (const level of ['debug', 'info', 'error', 'loud']) client.notify(message(level, 'db'))
            client.notify(message('error'))
            client.notify({ method: 'notifications/progress', params: { progressToken: 1, progress: 1 } })
            return {}
          }
        },
        two: {}
      }
    })
    const ada = await setup.person()
    const hear = async () => {
      const heard: Notification[] = []
      await ada.call(
        'tools/call',
        { name: 'one__talk' },
        {
          notify: (notification) => {
            heard.push(notification)
          }
        }
      )
      return heard.map(({ method, params }) =>
        method === 'notifications/message' ? `${String(params?.['level'])} ${String(params?.['logger'])}` : method
      )
    }
    t.same(await hear(), [
      'debug one/db',
      'info one/db',
      'error one/db',
      'loud one/db',
      'error one',
      'notifications/progress'
    ])
    await ada.call('logging/setLevel', { level: 'warning' })
    t.same(await hear(), ['error one/db', 'loud one/db', 'error one', 'notifications/progress'])
    t.same(
      setup.requests('logging/setLevel').map(({ params }) => params),
      [{ level: 'warning' }],
      'and the upstream is asked to say no more than that'
    )
  }
)
