// Features of the matrix in which the server has something to say by itself: server requests, changes, tasks.

import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import type { Json } from '../kit/mcp-server.ts'
import { until } from '../kit/until.ts'
import { answerTo, answers } from './client.ts'
import {
  byEra,
  call,
  equal,
  isModern,
  listAll,
  passes,
  refusal,
  resultOf,
  silent,
  textOf,
  translated,
  type Feature,
  type Seen
} from './cell.ts'
import { form, sampling, url } from './tools.ts'
import { asking, one, type ListKind } from './matrix-server.ts'

/** A tool that asks once. `sent` is what it says, apart from ids and modes. */
const askingOnce =
  (tool: string, method: string, sent: Json | undefined): Feature =>
  async (cell) => {
    const { client, state } = cell
    const before = state.answers.length
    const outcome = await call(cell, tool)
    const refused = refusal(outcome)
    if (refused !== undefined) {
      assert.deepEqual(outcome.asked, [], 'what is refused was asked')
      return refused
    }
    assert.equal(outcome.asked.length, 1, `asked ${outcome.asked.length} times`)
    const [question] = outcome.asked as [Json]
    assert.equal(question['method'], method)
    const { _meta, mode, elicitationId, ...params } = (question['params'] ?? {}) as Json
    assert.deepEqual(params, sent ?? {})
    if (tool === 'elicit_url') {
      assert.equal(mode, 'url')
      assert.equal(typeof elicitationId, isModern(client.revision) ? 'undefined' : 'string')
    }
    const answer = answerTo(question)
    assert.deepEqual(state.answers.slice(before), [answer])
    assert.deepEqual(JSON.parse(textOf(resultOf(outcome, tool))), answer)
    assert.equal(outcome.askedBy, isModern(client.revision) ? 'input_required' : 'request')
    return byEra(cell)
  }

/** Error -32042 of 2025-11-25, and what stands for it. */
const urlRequired: Feature = async (cell) => {
  const outcome = await call(cell, 'url_required')
  if (isModern(cell.client.revision) && outcome.asked.length > 0) {
    assert.deepEqual(outcome.asked, [{ method: 'elicitation/create', params: { mode: 'url', message: 'agree', url } }])
    assert.equal(textOf(resultOf(outcome, 'url_required')), 'consent is given')
    return translated
  }
  if (outcome.error?.code !== -32_042) return refusal(outcome) ?? assert.fail('it was not refused')
  assert.deepEqual(outcome.error.data?.['elicitations'], [
    { mode: 'url', message: 'agree', url, elicitationId: cell.token }
  ])
  assert.equal(textOf(resultOf(await call(cell, 'url_required'), 'url_required')), 'consent is given')
  return passes
}

/** No client of the matrix declares `sampling.tools`. */
const undeclared: Feature = async (cell) => {
  const outcome = await call(cell, 'sample_tools')
  assert.deepEqual(outcome.asked, [])
  return refusal(outcome) ?? assert.fail('it was not refused')
}

/** Two rounds of two server requests each. */
const severalQuestions: Feature = async (cell) => {
  const { client, state } = cell
  const before = state.answers.length
  const outcome = await call(cell, 'several')
  const result = resultOf(outcome, 'several')
  const due = [
    answers['sampling/createMessage'],
    answers['roots/list'],
    answers['roots/list'],
    answers['sampling/createMessage']
  ]
  assert.deepEqual(JSON.parse(textOf(result)), due)
  assert.deepEqual(state.answers.slice(before), due)
  assert.deepEqual(
    new Map(
      Object.entries(Object.groupBy(outcome.asked, ({ method }) => String(method))).map(([method, asked]) => [
        method,
        asked?.length
      ])
    ),
    new Map([
      ['sampling/createMessage', 2],
      ['roots/list', 2]
    ])
  )
  assert.equal(outcome.askedBy, isModern(client.revision) ? 'input_required' : 'request')
  return byEra(cell)
}

/** Prompts and resources may ask as well. */
const askingElsewhere: Feature = async (cell) => {
  const got = async (method: string, params: Json): Promise<string> => {
    const outcome = await cell.client.request(method, params)
    assert.deepEqual(
      outcome.asked.map(({ method }) => method),
      ['roots/list']
    )
    return JSON.stringify(resultOf(outcome, method))
  }
  for (const result of [await got('prompts/get', { name: 'asking' }), await got('resources/read', { uri: asking })])
    assert.match(result, /file:\/\/\/home\/ada/)
  return byEra(cell)
}

const subscribe: Feature = async (cell) => {
  const subscription = await cell.client.subscribe(one)
  await subscription.close()
  return subscription.granted ? byEra(cell) : silent
}

const updated: Feature = async (cell) => {
  const { client, state } = cell
  const subscription = await client.subscribe(one)
  if (!subscription.granted) return silent
  const mark = client.received()
  state.touch(one)
  const { params } = await client.notified(({ method }) => method === 'notifications/resources/updated', mark)
  assert.equal((params as Json)['uri'], one)
  await subscription.close()
  return byEra(cell)
}

const listChanged =
  (kind: ListKind): Feature =>
  async (cell) => {
    const { client, state } = cell
    const name = kind === 'resources' ? 'uri' : 'name'
    const watching = await client.watch(kind)
    if (!watching.granted) return silent
    const right = async (): Promise<boolean> =>
      equal(
        (await listAll(cell, kind)).entries.map((entry) => entry[name]),
        state.list(kind).map((entry) => entry[name])
      )
    await until('what others changed before has arrived', right)
    let mark = client.received()
    state.flip(kind)
    // Told once too often is told; told too early, and not again, is not.
    do {
      await client.notified(({ method }) => method === `notifications/${kind}/list_changed`, mark)
      mark = client.received()
    } while (!(await right()))
    await watching.close()
    return byEra(cell)
  }

const tasks: Feature = async (cell) => {
  const { client, state } = cell
  const asTask = client.revision === '2025-11-25'
  const before = state.tasks
  const outcome = await call(cell, 'task', {}, {}, asTask ? { task: { ttl: 60_000 } } : {})
  const refused = refusal(outcome)
  if (refused !== undefined) return refused
  const result = outcome.result as Json
  if (result['resultType'] === 'task') return await modernTask(cell, result)
  if (result['task'] !== undefined) return await legacyTask(cell, result['task'] as Json)
  // A client that knows no tasks waits for the result.
  assert.ok(client.revision < '2025-11-25', 'a client that knows tasks was given none')
  assert.equal(textOf(result), 'made')
  assert.equal(state.tasks, before + 1)
  return translated
}

/** The tool becomes a task at the server, and the client wants none. */
const unwantedTask: Feature = async (cell) => {
  const before = cell.state.tasks
  const outcome = await call(cell, 'task', {}, { plain: true })
  const refused = refusal(outcome)
  if (refused !== undefined) return refused
  assert.equal(textOf(resultOf(outcome, 'task')), 'made')
  return cell.state.tasks === before ? passes : translated
}

const polls = 200

async function modernTask(cell: Parameters<Feature>[0], created: Json): Promise<Seen> {
  for (let n = 0; n < polls; n++) {
    const task = resultOf(await cell.client.request('tasks/get', { taskId: created['taskId'] }), 'tasks/get')
    if (task['status'] === 'completed') {
      assert.equal(textOf(task['result'] as Json), 'made')
      return byEra(cell)
    }
    assert.equal(task['status'], 'working')
    await wait(Math.min(20, Number(task['pollIntervalMs'] ?? 10)))
  }
  assert.fail('the task never ends')
}

async function legacyTask(cell: Parameters<Feature>[0], { taskId, status }: Json): Promise<Seen> {
  assert.equal(status, 'working')
  const result = resultOf(await cell.client.request('tasks/result', { taskId }), 'tasks/result')
  assert.equal(textOf(result), 'made')
  assert.deepEqual((result['_meta'] as Json)['io.modelcontextprotocol/related-task'], { taskId })
  const task = resultOf(await cell.client.request('tasks/get', { taskId }), 'tasks/get')
  assert.ok(equal([task['taskId'], task['status']], [taskId, 'completed']), JSON.stringify(task))
  return byEra(cell)
}

export const backFeatures: Readonly<Record<string, Feature>> = {
  sampling: askingOnce('sample', 'sampling/createMessage', sampling),
  'elicitation: form': askingOnce('elicit', 'elicitation/create', { message: 'who?', requestedSchema: form }),
  'elicitation: URL': askingOnce('elicit_url', 'elicitation/create', { message: 'agree', url }),
  'elicitation: URL first (-32042)': urlRequired,
  roots: askingOnce('roots', 'roots/list', undefined),
  'a server request that the client has not declared': undeclared,
  'several server requests': severalQuestions,
  'server requests of prompts and resources': askingElsewhere,
  subscribe,
  'resources/updated': updated,
  'tools/list_changed': listChanged('tools'),
  'prompts/list_changed': listChanged('prompts'),
  'resources/list_changed': listChanged('resources'),
  tasks,
  'tasks that the client has not asked for': unwantedTask
}
