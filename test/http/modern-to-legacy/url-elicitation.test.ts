// Error -32042 of a real upstream of 2025-11-25 on the wire: never seen by a client of 2026-07-28, which gets input
// requests in its place.

import { type Teardown } from '../../kit/until.ts'
import t from 'tap'
import { gateway } from '../../kit/gateway.ts'
import { modernRequest } from '../../kit/modern-client.ts'
import { isCall, startUpstream } from '../../kit/upstream.ts'

const ada = 'gh_key_of_ada_0123456789'
const bob = 'gh_key_of_bob_0123456789'
const page = { mode: 'url', elicitationId: 'e-1', url: 'https://up.example/connect?state=1', message: 'Please connect' }
const visitor = { elicitation: { url: {} } }
const params = {
  name: 'up__rpcerror',
  arguments: { code: -32042, message: 'Connect first', data: { elicitations: [page] } }
}

async function acme(t: Teardown) {
  const up = await startUpstream()
  t.teardown(() => up.close())
  const made = await gateway(t, {
    upstreams: { up: { type: 'http', url: up.url }, other: { type: 'http', url: up.url } },
    endpoints: { default: { upstreams: ['up', 'other'] } },
    auth: {
      keys: [
        { name: 'ada', key: ada },
        { name: 'bob', key: bob }
      ]
    }
  })
  const call = (more = {}, { token = ada, capabilities = visitor as Record<string, unknown> } = {}) =>
    modernRequest(made.url(), 'tools/call', { ...params, ...more }, { token, capabilities })
  return { up, call, log: made.log }
}

t.test('the client is sent to the page, and its retry reaches the server as the same call', async (t) => {
  const { up, call } = await acme(t)
  const asked = await call()
  t.equal(asked.status, 200)
  t.notMatch(asked.text, /-32042|elicitationId|ttlMs|cacheScope/)
  t.match(asked.json.result, {
    resultType: 'input_required',
    inputRequests: {
      'page-1': { method: 'elicitation/create', params: { mode: 'url', url: page.url, message: '[up] Please connect' } }
    },
    requestState: String
  })
  const { requestState } = asked.json.result
  const inputResponses = { 'page-1': { action: 'accept' } }
  t.match(
    (await call({ requestState, inputResponses })).json.result,
    { resultType: 'input_required' },
    'it was not there yet'
  )
  t.match(
    (await call({ requestState, inputResponses }, { token: bob })).json.error,
    { code: -32602 },
    "it is nobody else's"
  )
  t.equal(up.server.calls('rpcerror'), 2)
  up.override(isCall('rpcerror'), (response, { message }) => {
    response.setHeader('Content-Type', 'application/json').end(
      JSON.stringify({
        jsonrpc: '2.0',
        id: message?.['id'],
        result: { content: [{ type: 'text', text: JSON.stringify(message?.['params']) }] }
      })
    )
  })
  const done = (await call({ requestState, inputResponses })).json.result
  t.equal(done.resultType, 'complete')
  t.same(JSON.parse(done.content[0].text), { name: 'rpcerror', arguments: params.arguments })
})

t.test('a client that declines, or opens no pages, gets an error that says so', async (t) => {
  const { up, call, log } = await acme(t)
  const { requestState } = (await call()).json.result
  const declined = await call({ requestState, inputResponses: { 'page-1': { action: 'decline' } } })
  t.match(declined.json.result, { resultType: 'complete', isError: true })
  const line = log.findLast(({ msg }) => msg === 'call')
  t.match(line, { outcome: 'declined', code: undefined, error: /Nothing was done/ }, 'no failure of the tool')
  t.equal(up.server.calls('rpcerror'), 1)
  const lacking = await call({}, { capabilities: { elicitation: {} } })
  t.equal(lacking.status, 400)
  t.match(lacking.json.error, { code: -32021, data: { requiredCapabilities: { elicitation: { url: {} } } } })
})
