// Error -32042 of a legacy upstream: its pages become questions, and the request is sent again when they were visited.

import t from 'tap'
import { type JsonObject, RpcError } from '../../src/protocol/messages.ts'
import { type Double, modernSetup } from './modern-kit.ts'
import { tool } from './kit.ts'

const page = { mode: 'url', elicitationId: 'e-1', url: 'https://up.example/connect', message: 'Please connect' }
const visitor = { elicitation: { url: {} } }
const accept = { action: 'accept' }

/** Demands its pages until they were visited. */
function demanding(elicitations: unknown[] = [page]): Double & { visited: boolean } {
  const double: Double & { visited: boolean } = {
    era: 'legacy',
    visited: false,
    tools: [tool('x')],
    prompts: [{ name: 'p' }],
    resources: [{ uri: 'test://r', name: 'r' }],
    answer({ method }) {
      if (!double.visited) throw new RpcError({ code: -32042, message: 'Connect first', data: { elicitations } })
      return method === 'tools/call'
        ? { content: [{ type: 'text', text: 'done' }] }
        : method === 'prompts/get'
          ? { messages: [] }
          : { contents: [{ uri: 'test://r', text: 'r' }] }
    }
  }
  return double
}

const requests: ReadonlyArray<readonly [method: string, params: JsonObject, done: JsonObject]> = [
  ['tools/call', { name: 'one__x', arguments: { a: 1 } }, { content: [{ type: 'text', text: 'done' }] }],
  ['prompts/get', { name: 'one__p' }, { messages: [] }],
  ['resources/read', { uri: 'gatehouse://one/test://r' }, { contents: [{ text: 'r' }] }]
]

for (const [method, params, done] of requests) {
  t.test(`${method}: the client is sent to the page, and the request goes out again when it was there`, async (t) => {
    const one = demanding()
    const setup = await modernSetup(t, { one, two: {} })
    const ask = (more: JsonObject = {}) => setup.call(method, { ...params, ...more }, { capabilities: visitor })
    const asked = await ask()
    t.same(
      asked['inputRequests'],
      {
        'page-1': {
          method: 'elicitation/create',
          params: { mode: 'url', url: page.url, message: '[one] Please connect' }
        }
      },
      'without an id, which 2026-07-28 does not have'
    )
    t.same(Object.keys(asked).toSorted(), ['inputRequests', 'requestState', 'resultType'])
    t.equal(asked['resultType'], 'input_required')
    const { requestState } = asked
    t.match(
      await ask({ requestState, inputResponses: { 'page-1': accept } }),
      { resultType: 'input_required' },
      'whoever was not there is asked again'
    )
    one.visited = true
    const result = await ask({ requestState, inputResponses: { 'page-1': accept, other: 7 } })
    t.match(result, { resultType: 'complete', ...done })
    t.equal(setup.requests(method).length, 3)
    t.match(
      await ask(),
      { resultType: 'complete', ...done },
      'once the page was visited, the state opens nothing that would be closed without it'
    )
    t.match(await ask({ requestState, inputResponses: { 'page-1': accept } }), { resultType: 'complete', ...done })
    t.equal(setup.requests(method).length, 5, 'and one request is one at the upstream, with it or without it')
    t.ok(
      setup
        .requests(method)
        .every(
          (request) => !('requestState' in (request.params ?? {})) && !('inputResponses' in (request.params ?? {}))
        ),
      'the upstream knows nothing of answers'
    )
  })

  t.test(`${method}: who declines is told that nothing was done, and the upstream is not asked again`, async (t) => {
    const setup = await modernSetup(t, { one: demanding(), two: {} })
    for (const action of ['decline', 'cancel']) {
      const { requestState } = await setup.call(method, params, { capabilities: visitor })
      const before = setup.requests(method).length
      const answer = setup.call(
        method,
        { ...params, requestState, inputResponses: { 'page-1': { action } } },
        { capabilities: visitor }
      )
      if (method === 'tools/call')
        t.match(await answer, { resultType: 'complete', isError: true, content: [{ text: /one.*declined/ }] })
      else await t.rejects(answer, { code: 'declined' })
      t.equal(setup.requests(method).length, before)
    }
  })

  t.test(`${method}: a client that opens no pages is told what it lacks`, async (t) => {
    const setup = await modernSetup(t, { one: demanding(), two: {} })
    for (const capabilities of [{}, { elicitation: {} }, { elicitation: { form: {} } }]) {
      await t.rejects(setup.call(method, params, { capabilities }), {
        code: 'missing_capability',
        data: { requiredCapabilities: { elicitation: { url: {} } } }
      })
    }
  })
}

t.test('a request state is valid for its caller and its request only, and for an hour', async (t) => {
  const one = demanding()
  const setup = await modernSetup(
    t,
    { one, two: {} },
    { endpoints: { default: { upstreams: ['one', 'two'] }, other: { upstreams: ['one', 'two'] } } }
  )
  const params = { name: 'one__x', arguments: { a: 1 } }
  const { requestState } = await setup.call('tools/call', params, { capabilities: visitor })
  one.visited = true
  const again = { ...params, requestState, inputResponses: { 'page-1': accept } }
  const refused = { code: 'invalid_state' }
  await t.rejects(setup.call('tools/call', again, { capabilities: visitor, who: 'bob' }), refused)
  await t.rejects(setup.call('tools/call', again, { capabilities: visitor, endpoint: 'other' }), refused)
  await t.rejects(setup.call('tools/call', { ...again, arguments: { a: 2 } }, { capabilities: visitor }), refused)
  await t.rejects(
    setup.call('tools/call', { ...again, requestState: `${String(requestState)}x` }, { capabilities: visitor }),
    refused
  )
  t.match(await setup.call('tools/call', again, { capabilities: visitor }), { resultType: 'complete' })
  setup.later(61 * 60_000)
  await t.rejects(setup.call('tools/call', again, { capabilities: visitor }), refused)
})

t.test('a malformed input response is refused; a missing one is asked for again', async (t) => {
  const setup = await modernSetup(t, {
    one: demanding([page, { ...page, elicitationId: 'e-2', url: 'http://up.example/2' }]),
    two: {}
  })
  const params = { name: 'one__x' }
  const { requestState, inputRequests } = await setup.call('tools/call', params, { capabilities: visitor })
  t.same(Object.keys(inputRequests as JsonObject), ['page-1', 'page-2'])
  for (const inputResponses of [7, [], { 'page-1': 7 }, { 'page-1': {} }, { 'page-1': { action: 'perhaps' } }]) {
    await t.rejects(setup.call('tools/call', { ...params, requestState, inputResponses }, { capabilities: visitor }), {
      code: 'invalid_params'
    })
  }
  t.match(
    await setup.call(
      'tools/call',
      { ...params, requestState, inputResponses: { 'page-1': accept } },
      { capabilities: visitor }
    ),
    { resultType: 'input_required' }
  )
  t.match(await setup.call('tools/call', { ...params, requestState }, { capabilities: visitor }), {
    resultType: 'input_required'
  })
})

t.test("a demand that leads to no web page is the upstream's fault", async (t) => {
  for (const elicitations of [
    [],
    ['no object'],
    [{ ...page, url: 'javascript:alert(1)' }],
    [{ ...page, url: undefined }]
  ]) {
    const setup = await modernSetup(t, { one: demanding(elicitations), two: {} })
    await t.rejects(
      setup.call('tools/call', { name: 'one__x' }, { capabilities: visitor }),
      { code: 'upstream_protocol' },
      JSON.stringify(elicitations)
    )
  }
})

t.test('an elicitation without a message gets one; on an endpoint of one server nothing is added', async (t) => {
  const { message: _message, ...silent } = page
  const setup = await modernSetup(t, { one: demanding([silent]) })
  const { tools } = (await setup.call('tools/list')) as { tools: Array<{ name: string }> }
  t.match(await setup.call('tools/call', { name: tools[0]?.name }, { capabilities: visitor }), {
    inputRequests: { 'page-1': { params: { url: page.url, message: 'A web page has to be visited first.' } } }
  })
})
