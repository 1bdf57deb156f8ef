// The tasks extension at the relay: ids that hold their upstream, and the three methods that they are for.

import t from 'tap'
import { type Request, RpcError } from '../../src/protocol/messages.ts'
import { type Double, modernSetup, taskClient, tasksExtension } from './modern-kit.ts'
import { tool } from './kit.ts'

const capabilities = { tools: {}, resources: {}, extensions: { [tasksExtension]: {} } }
const task = (status = 'working') => ({
  taskId: 'id "of" the server',
  status,
  createdAt: 'x',
  lastUpdatedAt: 'x',
  ttlMs: 1,
  pollIntervalMs: 2
})

const maker = (): Double => ({
  capabilities,
  tools: [tool('x')],
  answer({ method, params }: Request) {
    if (method === 'tools/call') return { resultType: 'task', ...task() }
    if (params?.['taskId'] !== task().taskId) throw new RpcError({ code: -32602, message: 'no such task' })
    if (method !== 'tasks/get') return { resultType: 'complete' }
    return {
      resultType: 'task',
      ...task('completed'),
      inputRequests: { q: { method: 'elicitation/create', params: { message: 'who?', requestedSchema: {} } } },
      result: { content: [{ type: 'resource_link', uri: 'test://x', name: 'x' }] }
    }
  }
})

t.test('a task goes under an id of ours, and its methods reach the server that made it', async (t) => {
  const setup = await modernSetup(t, { one: maker(), two: maker() })
  const made = await setup.call('tools/call', { name: 'two__x' }, { capabilities: taskClient })
  const { taskId } = made
  t.same(made, { resultType: 'task', ...task(), taskId })
  t.notMatch(String(taskId), /server/)
  t.equal(
    (await setup.call('tools/call', { name: 'two__x' }, { capabilities: taskClient }))['taskId'],
    taskId,
    'the same task, the same id'
  )
  t.not((await setup.call('tools/call', { name: 'one__x' }, { capabilities: taskClient }))['taskId'], taskId)

  t.same(await setup.call('tasks/get', { taskId }, { capabilities: taskClient }), {
    resultType: 'complete',
    ...task('completed'),
    taskId,
    inputRequests: { q: { method: 'elicitation/create', params: { message: '[two] who?', requestedSchema: {} } } },
    result: { content: [{ type: 'resource_link', uri: 'gatehouse://two/test://x', name: 'x' }] }
  })
  const inputResponses = { q: { action: 'accept', content: {} } }
  t.same(await setup.call('tasks/update', { taskId, inputResponses }, { capabilities: taskClient }), {
    resultType: 'complete'
  })
  t.same(await setup.call('tasks/cancel', { taskId }, { capabilities: taskClient }), { resultType: 'complete' })
  t.same(setup.requests('tasks/update'), [
    { method: 'tasks/update', params: { taskId: task().taskId, inputResponses } }
  ])
  t.ok(
    setup.connections.every(
      ({ upstream, requests }) => upstream === 'two' || requests.every(({ method }) => !method.startsWith('tasks/'))
    )
  )
})

t.test('whoever does not declare the extension is told so; an id is worth nothing to anybody else', async (t) => {
  const setup = await modernSetup(
    t,
    { one: maker(), two: {} },
    {
      endpoints: {
        default: { upstreams: ['one', 'two'] },
        other: { upstreams: ['one', 'two'] },
        without: { upstreams: ['two'] }
      }
    }
  )
  const { taskId } = await setup.call('tools/call', { name: 'one__x' }, { capabilities: taskClient })
  await t.rejects(setup.call('tasks/get', { taskId }), {
    code: 'missing_capability',
    data: { requiredCapabilities: taskClient }
  })
  const unknown = { code: 'invalid_params' }
  await t.rejects(setup.call('tasks/get', { taskId }, { capabilities: taskClient, who: 'bob' }), unknown)
  await t.rejects(setup.call('tasks/get', { taskId }, { capabilities: taskClient, endpoint: 'other' }), unknown)
  await t.rejects(setup.call('tasks/get', { taskId: `${String(taskId)}x` }, { capabilities: taskClient }), unknown)
  await t.rejects(setup.call('tasks/get', {}, { capabilities: taskClient }), unknown)
  await t.rejects(setup.call('tasks/get', { taskId }, { capabilities: taskClient, endpoint: 'without' }), {
    code: 'unknown_method'
  })
  await t.rejects(setup.call('tasks/list', {}, { capabilities: taskClient }), { code: 'unknown_method' })
  await t.rejects(
    setup.call('tools/call', { name: 'one__x' }),
    { code: 'upstream_protocol' },
    'a task that the client cannot follow'
  )
  t.ok(await setup.call('tasks/get', { taskId }, { capabilities: taskClient }))
})

t.test('nothing passes as the error of a task that would not pass by itself', async (t) => {
  const double = maker()
  const setup = await modernSetup(t, { one: double, two: {} })
  const { taskId } = await setup.call('tools/call', { name: 'one__x' }, { capabilities: taskClient })
  const shown = async (error: unknown) => {
    double.answer = () => ({ resultType: 'complete', ...task('failed'), error })
    return (await setup.call('tasks/get', { taskId }, { capabilities: taskClient }))['error']
  }
  const own = { code: 7, message: 'broke', data: { x: 1 } }
  t.same(await shown(own), own)
  const lacking = { code: -32021, message: 'no', data: { requiredCapabilities: { sampling: {} } } }
  t.same(await shown(lacking), lacking, 'what the client really did not declare')
  const page = { elicitations: [{ mode: 'url', url: 'javascript:alert(1)', message: 'go' }] }
  for (const [code, data] of [
    [-32020],
    [-32022],
    [-32021, { requiredCapabilities: taskClient }],
    [-32042, page],
    [-32050]
  ] as const) {
    const error = await shown({ code, message: 'said', ...(data === undefined ? {} : { data }) })
    t.match(error, { code: -32603, data: { reason: 'upstream_protocol', upstream: 'one' } }, String(code))
    t.notMatch(JSON.stringify(error), /javascript:/)
  }
  for (const none of ['x', null, { message: 'm' }, { code: 'x' }])
    t.match(await shown(none), { code: -32603, message: String }, JSON.stringify(none))
})

t.test("the server's own refusal comes back as it is", async (t) => {
  const double = maker()
  const setup = await modernSetup(t, { one: double, two: {} })
  const { taskId } = await setup.call('tools/call', { name: 'one__x' }, { capabilities: taskClient })
  double.answer = () => {
    throw new RpcError({ code: -32602, message: 'forgotten' })
  }
  t.match(await setup.call('tasks/get', { taskId }, { capabilities: taskClient }).catch((error: unknown) => error), {
    error: { code: -32602, message: 'forgotten' }
  })
})
