// Servers of 2026-07-28 over stdio that number their tasks, each process for itself: `task-1` of one conversation or
// process is never that of another, in a request and on a listen stream.

import t, { type Test } from 'tap'
import { eventsOf } from '../../kit/client.ts'
import { configOf, gateway } from '../../kit/gateway.ts'
import { modernRequest } from '../../kit/modern-client.ts'
import { modernListen } from '../../kit/modern-listen.ts'
import { numberingServer } from '../../kit/numbered-modern-tasks-server.ts'
import { redis } from '../../kit/redis.ts'
import { until } from '../../kit/until.ts'

const ada = 'gh_key_of_ada_0123456789'
const capabilities = { extensions: { 'io.modelcontextprotocol/tasks': {} } }
const gone = { error: { code: -32602, message: /gone.*unknown/, data: { outcome: 'unknown' } } }
const methods = ['tasks/get', 'tasks/cancel', 'tasks/update']

async function acme(t: Test, upstream: object = {}, more: object = {}) {
  const options = {
    upstreams: { up: { ...numberingServer(), ...upstream } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } },
    auth: { keys: [{ name: 'ada', key: ada }] },
    ...more
  }
  const { url, reload } = await gateway(t, options)
  const send = async (method: string, params: Record<string, unknown>, conversation?: string) => {
    const meta = conversation === undefined ? {} : { 'io.gatehouse/conversation': conversation }
    const { text, json } = await modernRequest(url(), method, params, { token: ada, capabilities, meta })
    return json ?? eventsOf(text).at(-1)
  }
  const call = async (name: string, who: string, conversation?: string) =>
    (await send('tools/call', { name, arguments: { who } }, conversation)).result
  return {
    url,
    send,
    call,
    make: async (who: string, conversation?: string): Promise<string> => (await call('toil', who, conversation)).taskId,
    replace: () => reload(configOf({ ...options, upstreams: { up: numberingServer('another') } }))
  }
}

t.test('each conversation has its own, whichever conversation asks', async (t) => {
  const { send, call, make } = await acme(t)
  const [one, two] = [await make('one', 'a'), await make('two', 'b')]
  t.not(one, two)
  await call('finish', 'x', 'a')
  const ofOne = { result: { taskId: one, status: 'completed', result: { content: [{ text: /^one / }] } } }
  for (const conversation of ['a', 'b', undefined]) {
    t.match(await send('tasks/get', { taskId: one }, conversation), ofOne)
    t.match(await send('tasks/get', { taskId: two }, conversation), { result: { taskId: two, status: 'working' } })
  }
  t.match(await send('tasks/cancel', { taskId: two }, 'a'), { result: { resultType: 'complete' } })
  t.match(await send('tasks/get', { taskId: two }), { result: { status: 'cancelled' } })
  t.match(await send('tasks/get', { taskId: one }), ofOne, 'the other was not cancelled with it')
})

for (const isolation of ['session', 'shared']) {
  t.test(`what a process has made is gone with it, whatever the next calls by its number: ${isolation}`, async (t) => {
    const { send, call, make } = await acme(t, { isolation })
    const before = await make('before')
    t.match(await send('tasks/get', { taskId: before }), { result: { status: 'working' } })
    await call('die', 'x').catch(() => {})
    const after = await make('after')
    t.not(after, before)
    for (const method of methods) t.match(await send(method, { taskId: before, inputResponses: {} }), gone, method)
    t.match(await send('tasks/get', { taskId: after }), { result: { status: 'working' } })
  })
}

t.test('a server that takes the place of another under its name has no task of it', async (t) => {
  const { send, make, replace } = await acme(t)
  const before = await make('before')
  replace()
  t.match(await send('tasks/get', { taskId: before }), gone)
  const after = await make('after')
  t.match(await send('tasks/get', { taskId: after }), { result: { status: 'working' } })
  t.match(await send('tasks/get', { taskId: before }), gone)
})

t.test('a listen stream tells of the tasks of each process under their own ids', async (t) => {
  const { url, call, make, send } = await acme(t)
  const [one, two, lost] = [await make('one', 'a'), await make('two', 'b'), await make('lost', 'c')]
  await send('tools/call', { name: 'die' }, 'c')
  const stream = await modernListen(url(), { taskIds: [one, two, lost] }, { token: ada, capabilities })
  t.teardown(() => stream.close())
  const [ack] = [await stream.next(({ method }) => method === 'notifications/subscriptions/acknowledged')]
  t.same(ack.params.notifications, { taskIds: [one, two] }, 'what is gone is not promised')
  await call('finish', 'x', 'b')
  await until('the task of b is told', () => stream.said().length === 1)
  t.match(stream.messages.at(-1).params, { taskId: two, result: { content: [{ text: /^two / }] } })
  await call('finish', 'x', 'a')
  await until('the task of a is told', () => stream.said().length === 2)
  t.match(stream.messages.at(-1).params, { taskId: one, result: { content: [{ text: /^one / }] } })
})

t.test('the process that made it is kept while it runs, although its caller is quiet', async (t) => {
  const { send, make } = await acme(t, { idleMs: 2_000 })
  const task = await make('quiet', 'a')
  // Another process of the caller, which is as quiet, is closed meanwhile.
  const other = await send('tools/call', { name: 'finish', arguments: { who: 'x' } }, 'b')
  await until('the process of the other conversation has ended', () => !isAlive(pidOf(other)))
  t.match(await send('tasks/get', { taskId: task }), { result: { status: 'working' } })
})

// eslint-disable-next-line typescript/no-explicit-any
const pidOf = ({ result }: any): number => Number(result.content[0].text.split(' ')[1])

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

t.test('a process of the gateway asks the one that has the process of the task', async (t) => {
  const { url: store } = await redis(t)
  const [here, there] = [await acme(t, {}, { store }), await acme(t, {}, { store })]
  const [one, two] = [await here.make('here'), await there.make('there')]
  await here.call('finish', 'x')
  t.match(await there.send('tasks/get', { taskId: one }), {
    result: { taskId: one, status: 'completed', result: { content: [{ text: /^here / }] } }
  })
  t.match(await here.send('tasks/get', { taskId: two }), { result: { taskId: two, status: 'working' } })
  await here.call('die', 'x')
  t.match(await there.send('tasks/get', { taskId: one }), gone)
})
