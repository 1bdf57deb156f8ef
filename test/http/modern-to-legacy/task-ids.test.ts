// Servers over stdio that number their tasks, each process for itself: `task-1` of one conversation, call or process is
// never that of another.

import t, { type Test } from 'tap'
import { eventsOf, legacyClient } from '../../kit/client.ts'
import { countingServer } from '../../kit/numbered-tasks-server.ts'
import { configOf, gateway } from '../../kit/gateway.ts'
import { modernRequest } from '../../kit/modern-client.ts'

const ada = 'gh_key_of_ada_0123456789'
const bob = 'gh_key_of_bob_0123456789'
const tasks = { extensions: { 'io.modelcontextprotocol/tasks': {} } }
const asker = { ...tasks, elicitation: {} }
const unknown = { error: { code: -32602, message: /gone.*unknown/, data: { outcome: 'unknown' } } }

async function acme(t: Test, more: object = {}) {
  const options = {
    upstreams: { up: { ...countingServer(), ...more } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } },
    auth: { keys: [{ name: 'ada', key: ada }] }
  }
  const { url, reload } = await gateway(t, options)
  const send = async (method: string, params: Record<string, unknown>, capabilities: object, conversation?: string) => {
    const meta = conversation === undefined ? {} : { 'io.gatehouse/conversation': conversation }
    const { text, json } = await modernRequest(url(), method, params, {
      token: ada,
      capabilities: { ...capabilities },
      meta
    })
    return json ?? eventsOf(text).at(-1)
  }
  const make = async (
    name: string,
    who: string,
    capabilities: object = tasks,
    conversation?: string
  ): Promise<string> => {
    const { result } = await send('tools/call', { name, arguments: { who } }, capabilities, conversation)
    t.equal(result?.resultType, 'task')
    return result?.taskId
  }
  const get = async (taskId: string) => await send('tasks/get', { taskId }, tasks)
  return {
    send,
    make,
    get,
    replace: () => reload(configOf({ ...options, upstreams: { up: countingServer('another') } }))
  }
}

/** Who made the task, and the process. */
const makerOf = ({ result }: any): string[] => result.result.content[0].text.split(' ') // eslint-disable-line typescript/no-explicit-any

t.test('each conversation has its own, and each call of several at once', async (t) => {
  const { make, get } = await acme(t)
  const made = [
    ['alice', await make('toil', 'alice', tasks, 'a')],
    ['bob', await make('toil', 'bob', tasks, 'b')],
    ...(await Promise.all(['first', 'second'].map(async (who) => [who, await make('toil', who, asker, 'a')])))
  ] as const
  t.equal(new Set(made.map(([, id]) => id)).size, 4)
  const makers: string[][] = []
  for (const [who, id] of made) {
    const task = await get(id ?? '')
    t.match(task.result, { status: 'completed', taskId: id }, 'always under the same id')
    makers.push(makerOf(task))
    t.equal(makers.at(-1)?.[0], who)
  }
  t.equal(new Set(makers.map(([, pid]) => pid)).size, 4, 'they had the same number, of different processes')
})

for (const isolation of ['session', 'shared']) {
  t.test(
    `what a process has made is gone with it, whatever the next one calls by the same number: ${isolation}`,
    async (t) => {
      const { send, make, get } = await acme(t, { isolation })
      const [asked, unasked] = [await make('toil', 'before'), await make('toil', 'unasked')]
      t.equal(makerOf(await get(asked))[0], 'before')
      await send('tools/call', { name: 'die', arguments: {} }, tasks)
      const after = await make('toil', 'after')
      const next = await make('toil', 'next')
      t.equal(new Set([asked, unasked, after, next]).size, 4)
      for (const id of [asked, unasked]) {
        t.match(await get(id), unknown)
        t.match(await get(id), unknown, 'as often as it is asked')
        for (const method of ['tasks/cancel', 'tasks/update'])
          t.match(await send(method, { taskId: id, inputResponses: {} }, tasks), unknown, method)
      }
      t.same([makerOf(await get(after))[0], makerOf(await get(next))[0]], ['after', 'next'])
    }
  )
}

t.test(
  'a server that takes the place of another under its name has no task of it, nor its input requests',
  async (t) => {
    const { make, get, replace } = await acme(t)
    const id = await make('ask', 'one', asker)
    const asked = await get(id)
    t.match(asked.result, { status: 'input_required' })
    t.equal(Object.keys(asked.result.inputRequests).length, 1)
    t.same((await get(id)).result.inputRequests, asked.result.inputRequests)
    replace()
    t.match(await get(id), unknown, 'although the one before still works on its result')
    const next = await make('ask', 'two', asker)
    t.match((await get(next)).result, { status: 'input_required' })
    t.match(await get(id), unknown)
  }
)

/** Sessions, whose clients ask for tasks by themselves. */
async function sessions(t: Test, isolation: string) {
  const { url } = await gateway(t, {
    upstreams: { up: { ...countingServer(), isolation } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } },
    auth: {
      keys: [
        { name: 'ada', key: ada },
        { name: 'bob', key: bob }
      ]
    }
  })
  return (await Promise.all(
    [ada, ada, bob].map(async (key) => {
      const { request } = await legacyClient(url(), key)
      return {
        make: async (who: string): Promise<string> =>
          (await request('tools/call', { name: 'toil', arguments: { who }, task: { ttl: 60_000 } })).json.result.task
            .taskId,
        die: async () => await request('tools/call', { name: 'die' }),
        ask: async (method: string, taskId: string) => (await request(method, { taskId })).json,
        who: async (taskId: string): Promise<string> =>
          (await request('tasks/result', { taskId })).json.result.content[0].text.split(' ')[0],
        list: async (): Promise<string[]> =>
          (await request('tasks/list')).json.result.tasks.map((task: { taskId: string }) => task.taskId)
      }
    })
  )) as [Session, Session, Session]
}

interface Session {
  make(who: string): Promise<string>
  die(): Promise<unknown>
  ask(method: string, taskId: string): Promise<object>
  who(taskId: string): Promise<string>
  list(): Promise<string[]>
}

const methods = ['tasks/get', 'tasks/result', 'tasks/cancel']
const elsewhere = {
  error: { code: -32602, message: /gone, or serves another session.*unknown/, data: { outcome: 'unknown' } }
}

t.test('a session has no task of the process of another session', async (t) => {
  const [one, two] = await sessions(t, 'session')
  const [first, second] = [await one.make('first'), await two.make('second')]
  t.not(first, second)
  for (const method of methods) {
    t.match(await two.ask(method, first), elsewhere, method)
    t.match(await one.ask(method, second), elsewhere, method)
  }
  t.match(await one.ask('tasks/get', first), { result: { taskId: first, status: 'completed' } })
  t.same([await one.who(first), await two.who(second)], ['first', 'second'])
  t.same([await one.list(), await two.list()], [[first], [second]])
})

t.test('sessions of one principal that share its process share its tasks', async (t) => {
  const [one, two] = await sessions(t, 'principal')
  const [first, second] = [await one.make('first'), await two.make('second')]
  t.same([await two.who(first), await one.who(second)], ['first', 'second'])
  t.same(
    [await one.list(), await two.list()],
    [
      [first, second],
      [first, second]
    ]
  )
})

t.test('a task of a process that is gone is not the task of another caller in the next one', async (t) => {
  const [mine, , theirs] = await sessions(t, 'shared')
  const before = await mine.make('before')
  t.equal(await mine.who(before), 'before')
  await mine.die()
  const after = await theirs.make('after')
  for (const method of methods) t.match(await mine.ask(method, before), elsewhere, method)
  t.same([await mine.list(), await theirs.list()], [[], [after]])
  t.equal(await theirs.who(after), 'after')
  const own = await mine.make('own')
  t.same([await mine.list(), await mine.who(own)], [[own], 'own'])
})
