// Questions of upstreams to modern clients, the answers, and the state that travels in between.

import t from 'tap'
import type { JsonObject, Request } from '../../src/protocol/messages.ts'
import { keyPrincipal } from '../../src/auth/principal.ts'
import { createRequestStates } from '../../src/relay/bridge/request-state.ts'
import { noClient } from '../../src/protocol/seams.ts'
import { modernSetup, type Double } from './modern-kit.ts'
import { tool } from './kit.ts'

const upstreamState = 'state "of\u00e9 the\ud800 server'
const elicitation = (more: JsonObject = {}): JsonObject => ({
  method: 'elicitation/create',
  params: { mode: 'form', message: 'who?', requestedSchema: { type: 'object', properties: {} }, ...more }
})
const sampling = (more: JsonObject = {}): JsonObject => ({
  method: 'sampling/createMessage',
  params: { messages: [], maxTokens: 1, includeContext: 'thisServer', ...more }
})
const all = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} }

const asking = (inputRequests: JsonObject | undefined, requestState: string | undefined = upstreamState): Double => ({
  tools: [tool('x')],
  prompts: [{ name: 'x' }],
  resources: [{ uri: 'test://x', name: 'x' }],
  answer: ({ params }: Request) =>
    params?.['inputResponses'] === undefined
      ? {
          resultType: 'input_required',
          ttlMs: 1,
          cacheScope: 'public',
          ...(inputRequests !== undefined && { inputRequests }),
          ...(requestState !== undefined && { requestState })
        }
      : { resultType: 'complete', content: [], contents: [], messages: [], ttlMs: 5_000, structuredContent: params }
})

t.test(
  'an input request names its upstream, and the request state comes back to the upstream byte for byte',
  async (t) => {
    const setup = await modernSetup(t, {
      one: asking({ user_name: elicitation(), __proto__x: sampling(), roots: { method: 'roots/list' } }),
      two: {}
    })
    for (const [method, params] of [
      ['tools/call', { name: 'one__x', arguments: { a: 1, b: [2] } }],
      ['prompts/get', { name: 'one__x' }],
      ['resources/read', { uri: 'gatehouse://one/test://x' }]
    ] as Array<[string, JsonObject]>) {
      const asked = await setup.call(method, params, { capabilities: all })
      const { requestState, ...rest } = asked
      t.same(
        rest,
        {
          resultType: 'input_required',
          inputRequests: {
            user_name: elicitation({ message: '[one] who?' }),
            __proto__x: sampling({ includeContext: 'none' }),
            roots: { method: 'roots/list' }
          }
        },
        method
      )
      t.notMatch(String(requestState), /state/)
      const inputResponses = { user_name: { action: 'accept', content: {} } }
      // JSON gives no meaning to the order of members.
      const again = Object.fromEntries(Object.entries(params).toReversed())
      if (again['arguments'] !== undefined) again['arguments'] = { b: [2], a: 1 }
      const result = await setup.call(
        method,
        { ...again, inputResponses, requestState, _meta: { progressToken: 7 } },
        { capabilities: all }
      )
      t.match(setup.requests(method).at(-1)?.params, { inputResponses, requestState: upstreamState })
      t.equal(result['resultType'], 'complete')
      if (method === 'resources/read') t.equal(result['ttlMs'], 0, 'a result of answers is not to be cached')
    }
  }
)

t.test('on an endpoint of one upstream only the request state is changed', async (t) => {
  const setup = await modernSetup(
    t,
    { one: asking({ a: elicitation(), b: sampling() }) },
    { endpoints: { default: { upstreams: ['one'], prefix: '' } } }
  )
  t.match(await setup.call('tools/call', { name: 'x' }, { capabilities: all }), {
    inputRequests: { a: elicitation(), b: sampling() }
  })
})

t.test('a request state is valid for its own request, caller and endpoint only, and for an hour', async (t) => {
  const setup = await modernSetup(
    t,
    {
      one: asking({ a: elicitation() }),
      two: { tools: [tool('x')], answer: () => ({ resultType: 'complete', content: [] }) }
    },
    { endpoints: { default: { upstreams: ['one', 'two'] }, other: { upstreams: ['one', 'two'] } } }
  )
  const params = { name: 'one__x', arguments: { a: 1 } }
  const { requestState } = await setup.call('tools/call', params, { capabilities: all })
  const inputResponses = {}
  const retry = (more: JsonObject, more2: { who?: string; endpoint?: string } = {}, method = 'tools/call') =>
    setup.call(method, { ...params, inputResponses, requestState, ...more }, { capabilities: all, ...more2 })
  t.equal((await retry({}))['resultType'], 'complete')
  const refused = { code: 'invalid_state' }
  await t.rejects(retry({ arguments: { a: 2 } }), refused)
  await t.rejects(retry({ extra: 1 }), refused)
  await t.rejects(retry({ name: 'two__x' }), refused)
  await t.rejects(retry({}, {}, 'prompts/get'), refused)
  await t.rejects(retry({}, { who: 'bob' }), refused)
  await t.rejects(retry({}, { endpoint: 'other' }), refused)
  for (const state of [`${String(requestState)}-TAMPERED`, '', 7, null, upstreamState])
    await t.rejects(retry({ requestState: state }), refused)
  await t.rejects(retry({ inputResponses: [] }), { code: 'invalid_params' })
  setup.later(59 * 60_000)
  t.ok(await retry({}))
  setup.later(2 * 60_000)
  await t.rejects(retry({}), refused)
})

t.test('where the upstream sent no request state, none is added, and none is accepted', async (t) => {
  const double = asking({ a: elicitation() })
  const { answer } = double
  double.answer = async (request, client, signal) => {
    const { requestState: _none, ...result } = (await answer?.(request, client, signal)) ?? {}
    return result
  }
  const setup = await modernSetup(t, { one: double, two: {} })
  const asked = await setup.call('tools/call', { name: 'one__x' }, { capabilities: all })
  t.notOk('requestState' in asked)
  t.equal(
    (await setup.call('tools/call', { name: 'one__x', inputResponses: {} }, { capabilities: all }))['resultType'],
    'complete'
  )
  await t.rejects(
    setup.call('tools/call', { name: 'one__x', inputResponses: {}, requestState: 'x' }, { capabilities: all }),
    { code: 'invalid_state' }
  )
})

t.test(
  'an upstream that asks for what the client did not declare, or for what does not exist, has broken the protocol',
  async (t) => {
    const cases: Array<[unknown, JsonObject]> = [
      [{ a: elicitation() }, {}],
      [{ a: elicitation() }, { elicitation: { url: {} } }],
      [{ a: elicitation({ mode: 'url', url: 'https://example.com/' }) }, { elicitation: {} }],
      [{ a: elicitation({ mode: 'url', url: 'javascript:alert(1)' }) }, all],
      [{ a: elicitation({ mode: 'url', url: 'nothing' }) }, all],
      [{ a: sampling({ tools: [] }) }, { sampling: {} }],
      [{ a: { method: 'roots/list' } }, {}],
      [{ a: { method: 'tools/call', params: {} } }, all],
      [{ a: 'x' }, all],
      [[], all],
      ['x', all]
    ]
    for (const [inputRequests, capabilities] of cases) {
      const setup = await modernSetup(t, { one: asking(inputRequests as JsonObject), two: {} })
      await t.rejects(
        setup.call('tools/call', { name: 'one__x' }, { capabilities }),
        { code: 'upstream_protocol' },
        JSON.stringify(inputRequests)
      )
    }
    const setup = await modernSetup(t, {
      one: asking({ a: elicitation({ mode: 'url', url: 'https://example.com/' }) }),
      two: { tools: [tool('x')], answer: () => ({ resultType: 'input_required' }) }
    })
    t.ok(await setup.call('tools/call', { name: 'one__x' }, { capabilities: all }))
    await t.rejects(setup.call('tools/call', { name: 'two__x' }, { capabilities: all }), { code: 'upstream_protocol' })
  }
)

t.test('a legacy upstream is sent no inputResponses and no requestState', async (t) => {
  const setup = await modernSetup(t, {
    old: { era: 'legacy', tools: [tool('x')], answer: ({ params }) => ({ content: [], structuredContent: params }) },
    two: {}
  })
  t.match(await setup.call('tools/call', { name: 'old__x', inputResponses: {} }), { structuredContent: { name: 'x' } })
  t.same(setup.requests('tools/call'), [{ method: 'tools/call', params: { name: 'x' } }])
})

t.test('a request state is for the server that sent it, not for another one that has its name now', async (t) => {
  const setup = await modernSetup(t, { one: {}, two: {} })
  const place = setup.place()
  const [one, two] = [...place.tenant.upstreams.values()]
  if (one === undefined || two === undefined) throw new Error('no upstreams')
  const states = createRequestStates(setup.sealer, setup.wall)
  const call = {
    ...place,
    principal: keyPrincipal(place.tenant.id, { name: 'ada', sha256: '', scopes: [] }),
    request: { method: 'tools/call' },
    client: noClient,
    signal: new AbortController().signal
  }
  const moved = { ...call, tenant: { ...place.tenant, upstreams: new Map([[one.name, { ...two, name: one.name }]]) } }
  const state = states.seal(call, one.name, { upstreamState: 'x' })
  t.equal(states.open(call, one.name, state).upstreamState, 'x')
  t.throws(() => states.open(moved, one.name, state), { code: 'invalid_state' })
})
