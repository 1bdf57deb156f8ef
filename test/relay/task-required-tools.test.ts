// A tool that works only as a task, called by the client of a session that knows no tasks: once, and given up with its
// caller.

import t from 'tap'
import { GatewayError, type JsonObject, type Request, type Result, RpcError } from '../../src/protocol/messages.ts'
import type { Client } from '../../src/protocol/seams.ts'
import { until } from '../kit/until.ts'
import { type Double, type Person, relaySetup, stillClock, tool } from './kit.ts'

const tasks = { cancel: {}, requests: { tools: { call: {} } } }
const ok = { content: [{ type: 'text', text: 'ok' }] }

interface Maker extends Double {
  status: string
  outcome: () => Result
}

function maker(capabilities: JsonObject = { tools: {}, tasks }): Maker {
  const double: Maker = {
    status: 'working',
    outcome: () => ok,
    capabilities,
    tools: [
      tool('x', { execution: { taskSupport: 'required' } }),
      tool('may', { execution: { taskSupport: 'optional' } }),
      tool('plain')
    ],
    async answer({ method, params }: Request, _client, signal) {
      const task = {
        taskId: 'the id',
        status: double.status,
        createdAt: 'c',
        lastUpdatedAt: 'l',
        ttl: 60_000,
        pollInterval: 20
      }
      if (method === 'tools/call') return params?.['task'] === undefined ? ok : { task }
      if (method === 'tasks/cancel') double.status = 'cancelled'
      if (method !== 'tasks/result') return task
      await until('it has ended', () => signal.aborted || double.status !== 'working')
      if (signal.aborted) throw new GatewayError('cancelled', 'given up')
      return double.outcome()
    }
  }
  return double
}

async function old(person: Promise<Person>, revision = '2025-06-18'): Promise<Person> {
  const made = await person
  const { session } = made.live
  made.live.session = {
    ...session,
    record: { ...session.record, revision: revision as typeof session.record.revision }
  }
  return made
}

t.test('only a tool that requires a task is called as one, and only for clients without tasks', async (t) => {
  const setup = await relaySetup(t, {
    doubles: { one: maker(), two: maker({ tools: {} }) },
    endpoints: { default: { upstreams: ['one', 'two'] } }
  })
  const ada = await old(setup.person())
  const asked = (): unknown => setup.requests('tools/call').at(-1)?.params?.['task']
  for (const name of ['one__may', 'one__plain', 'two__x']) {
    t.same(await ada.call('tools/call', { name, task: {} }), ok)
    t.equal(asked(), undefined, name)
  }
  const bob = await setup.person('bob')
  t.same(
    await bob.call('tools/call', { name: 'one__x' }),
    ok,
    'whatever the server says to a client that could have asked for a task'
  )
  t.equal(asked(), undefined)
  t.equal(setup.requests('tasks/result').length, 0)
})

t.test('such a tool is called once, and what its task ended with is the answer', async (t) => {
  const one = maker()
  const setup = await relaySetup(t, { doubles: { one } })
  const ada = await old(setup.person())
  await ada.call('tools/list')
  const name = 'one__x'
  one.status = 'completed'
  t.same(await ada.call('tools/call', { name }), ok)
  t.type(setup.requests('tools/call')[0]?.params?.['task'], 'object')
  one.status = 'failed'
  one.outcome = () => {
    throw new RpcError({ code: 5, message: 'broke' })
  }
  await t.rejects(ada.call('tools/call', { name }), new RpcError({ code: 5, message: 'broke' }))
  one.outcome = () => {
    throw new RpcError({
      code: -32042,
      message: 'go',
      data: { elicitations: [{ mode: 'url', url: 'https://up.example/', elicitationId: 'e', message: 'm' }] }
    })
  }
  t.match(await ada.call('tools/call', { name }), { isError: true, content: [{ text: /https:\/\/up\.example\// }] })
  t.equal(setup.requests('tools/call').length, 3)
})

t.test('a caller that gives up the call has the task cancelled', async (t) => {
  const one = maker()
  const setup = await relaySetup(t, { doubles: { one } })
  const ada = await old(setup.person())
  await ada.call('tools/list')
  const stop = new AbortController()
  const running = ada.call('tools/call', { name: 'one__x' }, {}, stop.signal)
  await until('its result is waited for', () => setup.requests('tasks/result').length === 1)
  t.equal(one.status, 'working')
  stop.abort()
  await t.rejects(running, { code: 'cancelled' })
  await until('it is cancelled', () => one.status === 'cancelled')
  t.equal(setup.requests('tools/call').length, 1)
})

t.test('a task is cancelled after a day, or when its server cannot be asked any more', async (t) => {
  for (const days of [0.9, 1.1]) {
    const one = maker()
    const answer = one.answer?.bind(one)
    const clock = stillClock()
    let silences = 1
    one.answer = (request, client, signal, connection) => {
      if (request.method !== 'tasks/result' || silences-- === 0)
        return answer?.(request, client, signal, connection) ?? {}
      clock.move(days * 24 * 60 * 60_000)
      throw new GatewayError('upstream_timeout', 'nothing came')
    }
    const setup = await relaySetup(t, {
      doubles: { one },
      clock,
      limits: { sessionIdleMs: 4 * 24 * 60 * 60_000, sessionMaxMs: 4 * 24 * 60 * 60_000 }
    })
    const ada = await old(setup.person())
    await ada.call('tools/list')
    const running = ada.call('tools/call', { name: 'one__x' })
    if (days < 1) {
      await until('it is asked again', () => setup.requests('tasks/result').length === 2)
      one.status = 'completed'
      t.same(await running, ok)
      t.equal(setup.requests('tasks/cancel').length, 0)
    } else {
      await t.rejects(running, { code: 'upstream_timeout' })
      await until('it is cancelled', () => one.status === 'cancelled')
    }
  }
})

t.test('progress always rises, and ends with the call', async (t) => {
  const one = maker()
  const answer = one.answer?.bind(one)
  let caller: Client | undefined
  one.answer = (request, client, signal, connection) => {
    if (request.method === 'tools/call') caller = client
    return answer?.(request, client, signal, connection) ?? {}
  }
  const setup = await relaySetup(t, { doubles: { one } })
  const ada = await old(setup.person())
  await ada.call('tools/list')
  const heard: unknown[] = []
  const say = (progress: number): void =>
    caller?.notify({ method: 'notifications/progress', params: { progressToken: 'p', progress } })
  const running = ada.call(
    'tools/call',
    { name: 'one__x', _meta: { progressToken: 'p' } },
    {
      notify: ({ params }) => {
        heard.push(params?.['progress'])
      }
    }
  )
  await until('its result is waited for', () => setup.requests('tasks/result').length === 1)
  for (const progress of [1, 2, 3]) say(progress)
  one.status = 'completed'
  await running
  say(4)
  t.same(heard, [1, 2, 3])
  t.same(
    ada.heard.filter(({ method }) => method === 'notifications/progress'),
    [],
    'nor on the stream of the session'
  )
})

t.test('a task that a session is told of counts for it until it is forgotten', async (t) => {
  let made = 0
  const one: Double = {
    capabilities: { tools: {}, tasks },
    tools: [tool('may', { execution: { taskSupport: 'optional' } })],
    answer: async () => ({ task: { taskId: String(made++).padStart(1_000, '0'), status: 'working', ttl: 3_600_000 } })
  }
  const setup = await relaySetup(t, { doubles: { one } })
  const ada = await setup.person()
  const { memory } = ada.live
  const before = memory.bytes
  const call = (): Promise<Result> => ada.call('tools/call', { name: 'one__may', task: {} })
  await call()
  const ofOne = memory.bytes - before
  t.ok(ofOne > 4_000, 'its id, and the key that it is found by')
  for (let n = 1; n < 1_003; n++) await call()
  t.equal(memory.bytes - before, 1_000 * ofOne, 'the oldest are forgotten')
  await ada.end()
  t.equal(memory.bytes, 0)
})
