// Modern clients and modern servers through the real gateway, over HTTP and stdio, and servers of both eras.

import t from 'tap'
import { legacyClient } from '../kit/client.ts'
import { gateway, key } from '../kit/gateway.ts'
import { modernRequest } from '../kit/modern-client.ts'
import type { Json } from '../kit/mcp-server.ts'
import { modernStdio, startModern } from '../kit/modern-server.ts'
import { startUpstream } from '../kit/upstream.ts'
import { tasksExtension } from './modern-kit.ts'

const all = { elicitation: {}, sampling: {}, roots: {}, extensions: { [tasksExtension]: {} } }
const http = await startModern({ name: 'alone', ttlMs: 60_000 })
const both = await startModern({ legacy: true })
const old = await startUpstream()
t.teardown(() => Promise.all([http.close(), both.close(), old.close()]))

const house = await gateway(t, {
  upstreams: {
    up: { type: 'http', url: http.url },
    pipe: modernStdio(),
    both: { type: 'http', url: both.url },
    old: { type: 'http', url: old.url }
  },
  endpoints: {
    default: { upstreams: ['up'], prefix: '' },
    pipe: { upstreams: ['pipe'], prefix: '' },
    all: { upstreams: ['up', 'pipe', 'both', 'old'] }
  }
})

for (const endpoint of ['default', 'pipe']) {
  const ask = (method: string, params: Json = {}, capabilities: Json = all) =>
    modernRequest(house.url(endpoint), method, params, { token: key, capabilities })

  t.test(`endpoint ${endpoint}: discovery, lists, a prompt, a resource, a completion`, async (t) => {
    const about = await ask('server/discover')
    t.match(about, {
      status: 200,
      json: {
        id: 1,
        result: {
          resultType: 'complete',
          supportedVersions: ['2026-07-28'],
          cacheScope: 'private',
          _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'gatehouse' } }
        }
      }
    })
    t.same(about.json.result.capabilities.extensions, { [tasksExtension]: {} })
    t.match((await ask('tools/list')).json.result, {
      resultType: 'complete',
      cacheScope: 'private',
      tools: [{ name: 'echo', 'x-unknown': { kept: true } }]
    })
    t.match((await ask('prompts/get', { name: 'greet', arguments: { who: 'you' } })).json.result, {
      resultType: 'complete',
      messages: [{ role: 'user' }]
    })
    t.match((await ask('resources/read', { uri: 'test://one' })).json.result, {
      resultType: 'complete',
      contents: [{ uri: 'test://one' }],
      cacheScope: 'private'
    })
    t.match((await ask('resources/read', { uri: 'test://none' })).json.error, {
      code: -32602,
      data: { uri: 'test://none' }
    })
    t.match(
      (
        await ask('completion/complete', {
          ref: { type: 'ref/prompt', name: 'greet' },
          argument: { name: 'who', value: '' }
        })
      ).json.result,
      { resultType: 'complete', completion: { values: ['alpha', 'beta'] } }
    )
    t.match(await ask('tasks/list'), { status: 404, json: { error: { code: -32601 } } })
  })

  t.test(`endpoint ${endpoint}: questions in two rounds, with a state that nobody can change`, async (t) => {
    const params = { name: 'ask', arguments: { rounds: 2 } }
    const first = (await ask('tools/call', params)).json.result
    t.match(first, {
      resultType: 'input_required',
      inputRequests: { user_name: { method: 'elicitation/create', params: { message: 'who?' } } }
    })
    const inputResponses = { user_name: { action: 'accept', content: { name: 'ada' } } }
    const retry = (requestState: unknown, more: Json = {}) =>
      ask('tools/call', { ...params, ...more, inputResponses, requestState })
    const second = (await retry(first.requestState)).json.result
    t.equal(second.resultType, 'input_required')
    const last = (await retry(second.requestState)).json.result
    t.match(last, { resultType: 'complete' })
    t.same(JSON.parse(last.content[0].text), { inputResponses, requestState: 'state of round 2' })
    t.match((await retry(`${second.requestState}-TAMPERED`)).json.error, {
      code: -32602,
      data: { reason: 'invalid_state' }
    })
    t.match((await retry(second.requestState, { arguments: { rounds: 1 } })).json.error, { code: -32602 })
  })

  t.test(`endpoint ${endpoint}: a capability that is missing is asked for as the server said`, async (t) => {
    t.match(await ask('tools/call', { name: 'needs' }, {}), {
      status: 400,
      json: { id: 1, error: { code: -32021, data: { requiredCapabilities: { sampling: {} } } } }
    })
    t.match((await ask('tools/call', { name: 'needs' }, { sampling: {} })).json.result, { resultType: 'complete' })
    t.match(await ask('tools/call', { name: 'confirm' }, {}), { status: 400, json: { error: { code: -32021 } } })
  })

  t.test(`endpoint ${endpoint}: a task is made, asks, is answered and done`, async (t) => {
    const made = (await ask('tools/call', { name: 'confirm' })).json.result
    t.match(made, { resultType: 'task', taskId: String })
    const { taskId } = made
    t.match((await ask('tasks/get', { taskId })).json.result, {
      resultType: 'complete',
      taskId,
      status: 'input_required',
      inputRequests: { who: { method: 'elicitation/create' } }
    })
    t.match((await ask('tasks/update', { taskId, inputResponses: { who: { action: 'decline' } } })).json.result, {
      resultType: 'complete'
    })
    t.match((await ask('tasks/get', { taskId })).json.result, {
      taskId,
      status: 'completed',
      result: { content: [{ type: 'text' }] }
    })
    t.match(await ask('tasks/get', { taskId }, {}), {
      status: 400,
      json: { error: { code: -32021, data: { requiredCapabilities: { extensions: { [tasksExtension]: {} } } } } }
    })
    t.match((await ask('tasks/get', { taskId: 'x' })).json.error, { code: -32602 })
  })
}

t.test('behind one endpoint, servers of both eras answer a modern client', async (t) => {
  const ask = (method: string, params: Json = {}) =>
    modernRequest(house.url('all'), method, params, { token: key, capabilities: all })
  const names: string[] = []
  for (let cursor: string | undefined, page = 0; page === 0 || cursor !== undefined; page++) {
    const { result } = (await ask('tools/list', cursor === undefined ? {} : { cursor })).json
    t.equal(result.ttlMs, 0, 'the legacy one says nothing of time')
    names.push(...result.tools.map(({ name }: { name: string }) => name))
    cursor = result.nextCursor
  }
  for (const name of ['up__echo', 'pipe__echo', 'both__echo', 'old__echo']) {
    t.ok(names.includes(name), name)
    t.match(
      (await ask('tools/call', { name, arguments: { a: name } })).json.result,
      { resultType: 'complete', content: [{ type: 'text' }] },
      name
    )
  }
  t.equal(both.server.requests('tools/call', 'echo').length, 1, 'one that speaks both is spoken to in the newer one')
  t.match((await ask('tools/call', { name: 'up__ask' })).json.result, {
    inputRequests: { user_name: { params: { message: '[up] who?' } } }
  })
})

t.test('a legacy client is served by a modern server, with what the client offers', async (t) => {
  const client = await legacyClient(house.url(), key, '2025-11-25', { elicitation: {}, sampling: {} })
  const { result } = (await client.request('tools/call', { name: 'echo', arguments: { a: 1 } })).json
  t.match(result, {
    structuredContent: {
      arguments: { a: 1 },
      meta: {
        'io.modelcontextprotocol/clientCapabilities': {
          elicitation: {},
          sampling: {},
          extensions: { [tasksExtension]: {} }
        }
      }
    }
  })
  t.notOk('resultType' in result)
  t.match((await client.request('tools/call', { name: 'needs' })).json.result, {
    content: [{ text: 'sampling is declared' }]
  })
  t.match(
    (
      await client.request('tools/call', {
        name: 'result',
        arguments: { result: { resultType: 'input_required', requestState: 'x' } }
      })
    ).json.error,
    { code: -32603, data: { reason: 'upstream_protocol' } }
  )
  t.ok(both.legacy !== undefined)
  const other = await legacyClient(house.url('all'), key)
  t.match((await other.request('tools/call', { name: 'both__echo', arguments: {} })).json.result, {
    content: [{ type: 'text' }]
  })
  t.equal(both.server.requests('tools/call', 'echo').length, 1, 'one that speaks both is spoken to in the older one')
})
