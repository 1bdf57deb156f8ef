// Features of the matrix in which the client asks and the server answers.

import assert from 'node:assert/strict'
import type { Json } from '../kit/mcp-server.ts'
import { until } from '../kit/until.ts'
import {
  bare,
  byEra,
  call,
  compared,
  equal,
  isModern,
  listAll,
  passes,
  refusal,
  resultOf,
  silent,
  textOf,
  translated,
  type Feature
} from './cell.ts'
import { completion, contents, prompt } from './tools.ts'
import { listSchema, one } from './matrix-server.ts'

const handshake: Feature = async (cell) => {
  const { client } = cell
  const { protocolVersion, supportedVersions, capabilities, instructions } = client.server as {
    protocolVersion?: string
    supportedVersions?: string[]
    capabilities: Json
    instructions?: string
  }
  if (isModern(client.revision)) assert.deepEqual(supportedVersions, [client.revision])
  else assert.equal(protocolVersion, client.revision)
  assert.equal(instructions, 'Be strict.')
  for (const name of ['tools', 'prompts', 'resources', 'logging'])
    assert.ok(name in capabilities, `${name} is not declared: ${JSON.stringify(capabilities)}`)
  return byEra(cell)
}

const list: Feature = async (cell) => compared((await listAll(cell, 'tools')).entries, cell.state.list('tools'), 'name')

const callOnce: Feature = async (cell) => {
  const result = resultOf(await call(cell, 'echo', { deep: [{ a: null }] }), 'echo')
  assert.deepEqual(result, {
    content: [{ type: 'text', text: JSON.stringify({ token: cell.token, deep: [{ a: null }] }) }],
    _meta: { 'example.com/kept': true }
  })
  return passes
}

const content: Feature = async (cell) => {
  const got = resultOf(await call(cell, 'content'), 'content')['content'] as Json[]
  const sent = contents(cell.state)
  if (equal(got, sent)) return passes
  assert.equal(got.length, sent.length)
  assert.match(JSON.stringify(got), /test:\/\/embedded/)
  if (cell.state.revision >= '2025-06-18') assert.match(JSON.stringify(got), /test:\/\/linked/)
  return translated
}

const structured: Feature = async (cell) => {
  const outcome = await call(cell, 'structured')
  const refused = refusal(outcome)
  if (refused !== undefined) return refused
  const result = resultOf(outcome, 'structured')
  assert.equal(textOf(result), '{"answer":42}')
  if (!('structuredContent' in result)) return translated
  assert.deepEqual(result['structuredContent'], { answer: 42 })
  return passes
}

/** Structured content that is no object came with 2026-07-28. */
const structuredList: Feature = async (cell) => {
  const outcome = await call(cell, 'structured_list')
  const refused = refusal(outcome)
  if (refused !== undefined) return refused
  const result = resultOf(outcome, 'structured_list')
  const tool = (await listAll(cell, 'tools')).entries.find(({ name }) => name === 'structured_list')
  assert.equal(textOf(result), '[1,2,3]')
  if (!('structuredContent' in result)) {
    assert.equal(tool?.['outputSchema'], undefined)
    return translated
  }
  if (equal(result['structuredContent'], [1, 2, 3])) {
    assert.deepEqual(tool?.['outputSchema'], listSchema)
    return passes
  }
  assert.deepEqual(result['structuredContent'], { result: [1, 2, 3] })
  assert.deepEqual(tool?.['outputSchema'], { type: 'object', properties: { result: listSchema }, required: ['result'] })
  return translated
}

const error: Feature = async (cell) => {
  const failed = resultOf(await call(cell, 'fail'), 'fail')
  assert.deepEqual(failed, { content: [{ type: 'text', text: 'it went wrong' }], isError: true })
  const { error: refused } = await call(cell, 'rpcerror')
  const { requestId, ...data } = (refused?.data ?? {}) as Json
  assert.match(String(requestId), /^[\w-]+$/)
  assert.deepEqual({ ...refused, data }, { code: -31_000, message: 'refused by the tool', data: { kept: true } })
  const { error: unknown } = await call(cell, 'no such tool')
  assert.equal(unknown?.code, -32_602)
  return passes
}

const progress: Feature = async (cell) => {
  const token = `p-${cell.token}`
  const outcome = await call(cell, 'progress', {}, {}, { _meta: { progressToken: token } })
  assert.equal(textOf(resultOf(outcome, 'progress')), 'all steps done')
  const said = outcome.notifications.map(({ method, params }) => ({ method, params: bare(params as Json) }))
  const sent = [1, 2, 3].map((step) => ({
    method: 'notifications/progress',
    params: {
      progressToken: token,
      progress: step,
      total: 3,
      ...(cell.state.revision >= '2025-03-26' && { message: `step ${step}` })
    }
  }))
  if (equal(said, sent)) return passes
  assert.deepEqual(
    said,
    sent.map(({ method, params: { message: _left, ...params } }) => ({ method, params }))
  )
  return translated
}

const cancel: Feature = async (cell) => {
  const stop = new AbortController()
  const { cancelled } = await call(
    cell,
    'slow',
    {},
    { signal: stop.signal, notified: () => stop.abort() },
    { _meta: { progressToken: `c-${cell.token}` } }
  )
  assert.equal(cancelled, true)
  await until('the server hears of the cancellation', () => cell.state.cancelled.has(cell.token))
  return byEra(cell)
}

const log: Feature = async (cell) => {
  const { client, token } = cell
  const mark = client.received()
  const isLine = ({ method, params }: Json): boolean =>
    method === 'notifications/message' && (params as Json)['data'] === token
  const outcome = await call(cell, 'log', {}, { log: 'info' })
  assert.equal(textOf(resultOf(outcome, 'log')), 'logged')
  let line = outcome.notifications.find(isLine)
  if (isModern(client.revision)) {
    const { notifications } = await call(cell, 'log')
    assert.deepEqual(notifications, [], 'who asks for no log gets none')
    if (line === undefined) return silent
  } else line ??= await client.notified(isLine, mark)
  assert.deepEqual(bare(line['params'] as Json), { level: 'info', logger: 'matrix', data: token })
  return byEra(cell)
}

const resources: Feature = async (cell) => {
  const { contents } = resultOf(await cell.client.request('resources/read', { uri: one }), 'resources/read')
  assert.deepEqual(contents, [{ uri: one, mimeType: 'text/plain', text: `contents of ${one}` }])
  return compared((await listAll(cell, 'resources')).entries, cell.state.list('resources'), 'uri')
}

/** What is not found has another code in each era. */
const missing: Feature = async (cell) => {
  const { error } = await cell.client.request('resources/read', { uri: 'test://none' })
  assert.equal(error?.code, isModern(cell.client.revision) ? -32_602 : -32_002)
  assert.equal(error?.data?.['uri'], 'test://none')
  return byEra(cell)
}

const templates: Feature = async (cell) => {
  const { contents } = resultOf(await cell.client.request('resources/read', { uri: 'test://item/7' }), 'resources/read')
  assert.deepEqual(contents, [{ uri: 'test://item/7', mimeType: 'text/plain', text: 'contents of test://item/7' }])
  return compared((await listAll(cell, 'resources/templates')).entries, cell.state.list('templates'), 'uriTemplate')
}

const prompts: Feature = async (cell) => {
  const got = resultOf(
    await cell.client.request('prompts/get', { name: 'greet', arguments: { who: 'Ada' } }),
    'prompts/get'
  )
  const sent = prompt(cell.state, { who: 'Ada' })
  const listed = compared((await listAll(cell, 'prompts')).entries, cell.state.list('prompts'), 'name')
  if (equal(got, sent)) return listed
  assert.equal((got['messages'] as Json[]).length, (sent['messages'] as Json[]).length)
  assert.match(JSON.stringify(got), /test:\/\/linked/)
  return translated
}

const complete: Feature = async (cell) => {
  const outcome = await cell.client.request('completion/complete', {
    ref: { type: 'ref/prompt', name: 'greet' },
    argument: { name: 'who', value: 'a' }
  })
  const refused = refusal(outcome)
  if (refused !== undefined) return refused
  assert.deepEqual(resultOf(outcome, 'completion/complete'), completion)
  return passes
}

const paging: Feature = async (cell) => {
  const { entries, pages } = await listAll(cell, 'resources')
  assert.equal(new Set(entries.map(({ uri }) => uri)).size, entries.length)
  assert.ok(pages > 1, 'there is one page only')
  const { error } = await cell.client.request('resources/list', { cursor: 'no cursor' })
  assert.equal(error?.code, -32_602)
  return passes
}

const large: Feature = async (cell) => {
  assert.equal(textOf(resultOf(await call(cell, 'big'), 'big')).length, 1_000_000)
  return passes
}

/** Neither call ends before both are there. */
const concurrent: Feature = async (cell) => {
  const results = await Promise.all(
    ['a', 'b'].map(async (mine) => textOf(resultOf(await call(cell, 'meet', { mine }), 'meet')))
  )
  assert.deepEqual(results, ['a', 'b'])
  return passes
}

export const plainFeatures: Readonly<Record<string, Feature>> = {
  handshake,
  'tools/list': list,
  'tools/call': callOnce,
  'content types': content,
  'structured content': structured,
  'structured content that is no object': structuredList,
  errors: error,
  progress,
  cancellation: cancel,
  'log messages': log,
  resources,
  'resource not found': missing,
  'resource templates': templates,
  prompts,
  completion: complete,
  paging,
  'large results': large,
  'concurrent calls': concurrent
}
