// Policy on the wire: what is listed can be called and nothing else can, at every door, in both eras.

import t from 'tap'
import { acmeGateway, authOf, keyOf, type AcmeGateway, type AcmeGatewayOptions } from '../kit/acme-gateway.ts'
import { configOf, gateway } from '../kit/gateway.ts'
import { legacyClient, withoutRequestId } from '../kit/client.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { modernListen } from '../kit/modern-listen.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'

const rule = (name: string, effect: string, rest: object = {}) => ({ name, effect, ...rest })
const bobIsDenied = (what: object) => ({
  default: 'allow',
  rules: [rule('not-bob', 'deny', { who: { keys: ['bob'] }, what })]
})

type Params = Record<string, unknown>
type Ask = (method: string, params?: Params) => Promise<{ status: number; text: string; json: any; headers: object }> // eslint-disable-line typescript/no-explicit-any

/** Both eras as one person. */
async function doors(
  acme: Pick<AcmeGateway, 'url'>,
  who: 'ada' | 'bob'
): Promise<ReadonlyArray<readonly [string, Ask]>> {
  const session = await legacyClient(acme.url(), keyOf[who])
  return [
    ['a session', (method, params) => session.request(method, params, { id: 7 })],
    ['2026-07-28', (method, params) => modernRequest(acme.url(), method, params, { id: 7, token: keyOf[who] })]
  ]
}

const start = (t: Parameters<typeof acmeGateway>[0], policy: unknown, rest: AcmeGatewayOptions = {}) =>
  acmeGateway(t, { policy, ...rest })

const namesIn = async (ask: Ask, method = 'tools/list', member = 'tools', name = 'name'): Promise<string[]> =>
  (await ask(method)).json.result[member].map((entry: Params) => entry[name])

t.test('a denied tool answers exactly like an unknown one, and others are called', async (t) => {
  const acme = await start(t, bobIsDenied({ names: ['echo'] }))
  for (const [door, ask] of await doors(acme, 'bob')) {
    const calls = acme.upstream.server.calls('echo')
    const denied = await ask('tools/call', { name: 'echo', arguments: {} })
    const unknown = await ask('tools/call', { name: 'ochE', arguments: {} })
    const [one, other] = [denied.text.replaceAll('echo', 'NAME'), unknown.text.replaceAll('ochE', 'NAME')]
    t.equal(withoutRequestId(one), withoutRequestId(other), `${door}: the same bytes`)
    t.equal(denied.status, unknown.status)
    const { date: _one, 'x-request-id': _deniedId, ...headers } = denied.headers as Params
    const { date: _two, 'x-request-id': _unknownId, ...others } = unknown.headers as Params
    t.same(headers, others)
    t.equal(acme.upstream.server.calls('echo'), calls, 'the upstream is not asked')
    t.notOk((await namesIn(ask)).includes('echo'))
    t.ok((await namesIn(ask)).includes('pid'))
    t.ok((await ask('tools/call', { name: 'pid', arguments: {} })).json.result)
  }
  for (const [door, ask] of await doors(acme, 'ada')) {
    t.ok((await namesIn(ask)).includes('echo'), `${door}: whom the rule is not about sees it`)
    t.ok((await ask('tools/call', { name: 'echo', arguments: {} })).json.result)
  }
})

t.test('denied prompts, resources and templates are unknown to every method', async (t) => {
  const acme = await start(
    t,
    bobIsDenied({ names: ['greet', 'test://one', 'test://item/*'], kinds: ['prompt', 'resource', 'template'] })
  )
  const complete = (ref: object): Params => ({ ref, argument: { name: 'a', value: 'b' } })
  const requests: ReadonlyArray<readonly [method: string, params: Params, name: string, unknown: string]> = [
    ['prompts/get', { name: 'greet' }, 'greet', 'teerg'],
    ['resources/read', { uri: 'test://item/1' }, 'test://item/1', 'none://item/1'],
    ['completion/complete', complete({ type: 'ref/prompt', name: 'greet' }), 'greet', 'teerg'],
    [
      'completion/complete',
      complete({ type: 'ref/resource', uri: 'test://item/{id}' }),
      'test://item/{id}',
      'none://item/{id}'
    ]
  ]
  for (const [door, ask] of await doors(acme, 'bob')) {
    const seen = acme.upstream.server.received.length
    for (const [method, params] of requests)
      t.match((await ask(method, params)).json, { error: {} }, `${door}: ${method} is refused`)
    t.equal(acme.upstream.server.received.length, seen, `${door}: the upstream is not asked`)
    t.same(await namesIn(ask, 'prompts/list', 'prompts'), [])
    t.same(await namesIn(ask, 'resources/list', 'resources', 'uri'), ['test://two'])
    t.same(await namesIn(ask, 'resources/templates/list', 'resourceTemplates', 'uriTemplate'), [])
    t.match((await ask('resources/read', { uri: 'test://two' })).json, { result: {} })
    const denied = await ask('prompts/get', { name: 'greet' })
    const unknown = await ask('prompts/get', { name: 'teerg' })
    const [one, other] = [denied.text.replace('greet', 'NAME'), unknown.text.replace('teerg', 'NAME')]
    t.equal(withoutRequestId(one), withoutRequestId(other))
  }
  for (const [door, ask] of await doors(acme, 'ada'))
    for (const [method, params] of requests)
      t.notMatch((await ask(method, params)).json, { error: { message: /Unknown|not found/ } }, `${door}: ${method}`)
})

t.test('a denied resource can neither be subscribed to nor listened to', async (t) => {
  const acme = await start(t, bobIsDenied({ names: ['test://one'] }))
  const session = await legacyClient(acme.url(), keyOf.bob)
  t.match((await session.request('resources/subscribe', { uri: 'test://one' })).json, { error: { code: -32002 } })
  t.match((await session.request('resources/subscribe', { uri: 'test://two' })).json, { result: {} })
  const wanted = { resourceSubscriptions: ['test://one', 'test://two'] }
  const stream = await modernListen(acme.url(), wanted, { token: keyOf.bob })
  const { params } = await stream.next(({ method }) => method === 'notifications/subscriptions/acknowledged')
  t.same((params as { notifications: object }).notifications, { resourceSubscriptions: ['test://two'] })
})

t.test('a missing scope is asked for by a 403 that names all scopes of the operation', async (t) => {
  const acme = await start(t, {
    default: 'allow',
    rules: [
      rule('write', 'requires', { what: { names: ['echo'] }, scopes: ['tools:write'] }),
      rule('tagged', 'requires', { what: { tags: ['careful'] }, scopes: ['tools:admin'] })
    ]
  })
  const token = await acme.bearer('JWT', 'ada', { scope: 'tools:write' })
  const config = (scopes: string) => acme.bearer('JWT', 'ada', { scope: scopes })
  const both = await config('tools:write tools:admin')
  const call = { name: 'echo', arguments: {} }
  acme.reload(
    configOf({
      upstreams: { up: { type: 'http', url: acme.upstream.url, tags: { careful: ['echo'] } } },
      endpoints: { default: { upstreams: ['up'], prefix: '' } },
      auth: authOf(acme.issuer),
      policy: {
        default: 'allow',
        rules: [
          rule('write', 'requires', { what: { names: ['echo'] }, scopes: ['tools:write'] }),
          rule('tagged', 'requires', { what: { tags: ['careful'] }, scopes: ['tools:admin'] })
        ]
      }
    })
  )
  const session = await legacyClient(acme.url(), token)
  const asked = [
    await session.request('tools/call', call),
    await modernRequest(acme.url(), 'tools/call', call, { token })
  ]
  for (const { status, headers, json } of asked) {
    t.equal(status, 403)
    const challenge = String(headers['www-authenticate'])
    t.match(challenge, /^Bearer error="insufficient_scope"/)
    t.match(challenge, 'scope="tools:write tools:admin"')
    t.match(challenge, /resource_metadata="http[^"]*\/\.well-known\/oauth-protected-resource\/t\/acme\/mcp"/)
    t.match(json, { error: { data: { reason: 'insufficient_scope', scopes: ['tools:write', 'tools:admin'] } } })
  }
  t.equal(acme.upstream.server.calls('echo'), 0)
  t.ok((await namesIn((method) => session.request(method))).includes('echo'), 'it is listed: it can be asked for')
  const enough = await legacyClient(acme.url(), both)
  t.match((await enough.request('tools/call', call)).json, { result: {} })
  t.match((await modernRequest(acme.url(), 'tools/call', call, { token: both })).json, { result: {} })
})

t.test('after a reload those hear of it whose lists differ, and nobody else', async (t) => {
  const acme = await start(t, undefined)
  const people = await Promise.all(
    (['ada', 'bob'] as const).map(async (who) => {
      const session = await legacyClient(acme.url(), keyOf[who])
      await session.request('tools/list')
      const listening = await session.listen()
      const stream = await modernListen(acme.url(), { toolsListChanged: true }, { token: keyOf[who] })
      await stream.next(({ method }) => method === 'notifications/subscriptions/acknowledged')
      return { session, listening, stream }
    })
  )
  const [ada, bob] = people as [(typeof people)[0], (typeof people)[0]]
  const config = (policy: unknown): unknown =>
    configOf({
      upstreams: { up: { type: 'http', url: acme.upstream.url } },
      endpoints: { default: { upstreams: ['up'], prefix: '' }, files: { upstreams: ['up'] } },
      auth: authOf(acme.issuer),
      ...(policy === undefined ? {} : { policy })
    })
  acme.reload(config(bobIsDenied({ names: ['echo'] })))
  const changed = 'notifications/tools/list_changed'
  await until('the session of bob hears of it', () => bob.listening.messages.length > 0)
  await until('the stream of bob hears of it', () => bob.stream.said().includes(changed))
  t.same(bob.listening.messages, [{ jsonrpc: '2.0', method: changed }])
  t.same([ada.listening.messages, ada.stream.said()], [[], []], 'for ada all is as before')
  t.match((await bob.session.request('tools/call', { name: 'echo' })).json, { error: { code: -32602 } })
  t.match((await ada.session.request('tools/call', { name: 'echo' })).json, { result: {} })
  acme.reload(config(undefined))
  await until('bob hears that it is back', () => bob.listening.messages.length === 2)
  t.match((await bob.session.request('tools/call', { name: 'echo' })).json, { result: {} })
})

t.test('instructions of an upstream are for those who may use something of it', async (t) => {
  const acme = await start(t, bobIsDenied({ upstreams: ['up'] }), { script: { instructions: 'Use with care.' } })
  const told = async (who: 'ada' | 'bob'): Promise<unknown[]> => [
    (await legacyClient(acme.url(), keyOf[who])).initialized.json.result.instructions,
    (await modernRequest(acme.url(), 'server/discover', {}, { token: keyOf[who] })).json.result.instructions
  ]
  t.same(await told('ada'), ['Use with care.', 'Use with care.'])
  t.same(await told('bob'), [undefined, undefined])
})

t.test('what is denied of an upstream that was never reached answers like what nobody has', async (t) => {
  const [up, gone] = await Promise.all([startUpstream(), startUpstream()])
  t.teardown(() => up.close())
  await gone.close()
  const acme = await gateway(t, {
    upstreams: {
      up: { type: 'http', url: up.url },
      gone: { type: 'http', url: gone.url },
      hidden: { type: 'http', url: gone.url }
    },
    endpoints: {
      default: {
        upstreams: ['up', 'gone', 'hidden'],
        tools: { 'gone/search': { rename: 'find_sales' }, 'gone/open': { rename: 'open_sales' } }
      }
    },
    auth: {
      keys: [
        { name: 'ada', key: keyOf.ada },
        { name: 'bob', key: keyOf.bob }
      ]
    },
    policy: {
      default: 'allow',
      rules: [
        rule('not-bob', 'deny', {
          who: { keys: ['bob'] },
          what: { names: ['search', 'close', 'https://one.example/'] }
        }),
        rule('hidden', 'deny', { who: { keys: ['bob'] }, what: { upstreams: ['hidden'] } })
      ]
    }
  })
  const call = (name: string): [string, Params] => ['tools/call', { name, arguments: {} }]
  const prompt = (name: string): [string, Params] => ['prompts/get', { name }]
  const read = (uri: string): [string, Params] => ['resources/read', { uri }]
  const pairs = [
    [call('find_sales'), call('sell_finds')],
    [call('gone__close'), call('gone__nobodys')],
    [prompt('gone__close'), prompt('gone__nobodys')],
    [call('hidden__search'), call('nobody__search')],
    [prompt('hidden__greet'), prompt('nobody__greet')],
    [read('https://one.example/'), read('https://two.example/')]
  ] as const
  const nameIn = ([, { name, uri }]: readonly [string, Params]): string => String(name ?? uri)
  for (const [door, ask] of await doors(acme, 'bob')) {
    for (const [denied, unknown] of pairs) {
      const answer = await ask(...denied)
      const other = await ask(...unknown)
      t.match(answer.json, { error: {} })
      const text = withoutRequestId(answer.text.replaceAll(nameIn(denied), 'NAME'))
      const otherText = withoutRequestId(other.text.replaceAll(nameIn(unknown), 'NAME'))
      t.equal(text, otherText, `${door}: ${nameIn(denied)}`)
      t.equal(answer.status, other.status)
      t.notMatch(answer.text.replaceAll(nameIn(denied), ''), 'hidden')
    }
    t.match((await ask(...call('open_sales'))).json, { error: { data: { upstream: 'gone' } } }, 'it is away')
    t.match((await ask(...call('up__echo'))).json, { result: {} })
  }
  for (const [door, ask] of await doors(acme, 'ada'))
    for (const [name, upstream] of [
      ['find_sales', 'gone'],
      ['hidden__search', 'hidden']
    ])
      t.match((await ask(...call(String(name)))).json, { error: { data: { upstream } } }, `${door}: ${name} is away`)
})

t.test(
  'capabilities promise what the endpoint has, and what a caller may not use of it is an empty list',
  async (t) => {
    const acme = await start(t, bobIsDenied({ kinds: ['prompt'] }))
    const promised = async (who: 'ada' | 'bob'): Promise<unknown[]> => [
      (await legacyClient(acme.url(), keyOf[who])).initialized.json.result.capabilities.prompts,
      (await modernRequest(acme.url(), 'server/discover', {}, { token: keyOf[who] })).json.result.capabilities.prompts
    ]
    const hers = await promised('ada')
    t.match(hers, [{}, {}])
    t.same(await promised('bob'), hers)
    for (const [who, names] of [
      ['ada', ['greet']],
      ['bob', []]
    ] as const)
      for (const [door, ask] of await doors(acme, who))
        t.same(await namesIn(ask, 'prompts/list', 'prompts'), names, `${door}: ${who}`)
  }
)
