// What becomes of the connection of a call that was given up, where the server does not say which call it asks about.

import t from 'tap'
import type { JsonObject, Request } from '../../src/protocol/messages.ts'
import { modernSetup, taskClient, type Double, type ModernSetup, type Opened } from './modern-kit.ts'
import { tool } from './kit.ts'
import { aborted, atRest } from './parking-kit.ts'

const asker = { capabilities: { ...taskClient, elicitation: {} } }

/** Never answers `x`; `task` is one. */
function hung(more: Partial<Double> = {}) {
  const task = { status: 'working', owes: false }
  const shown = (): JsonObject => ({
    taskId: 'the id',
    status: task.status,
    createdAt: 'c',
    lastUpdatedAt: 'l',
    ttl: 60_000,
    pollInterval: 100
  })
  const double: Double = {
    era: 'legacy',
    capabilities: { tools: {}, tasks: { requests: { tools: { call: {} } } } },
    tools: [tool('x'), tool('y'), tool('task', { execution: { taskSupport: 'required' } })],
    owed: () => (task.owes ? new Promise(() => {}) : undefined),
    async answer({ method, params }: Request, _client, signal) {
      if (params?.['name'] === 'x') {
        await aborted(signal)
        task.owes = true
        throw signal.reason
      }
      if (method === 'tools/call' && params?.['name'] === 'task') return { task: shown() }
      return method === 'tasks/get' ? shown() : { content: [] }
    },
    ...more
  }
  return { task, double }
}

const callers = (setup: ModernSetup): Opened[] =>
  setup.connections.filter(
    ({ handshake }) => handshake.capabilities['elicitation'] !== undefined && handshake.exclusive === true
  )

async function giveUp(setup: ModernSetup): Promise<void> {
  const stop = new AbortController()
  const given = setup.call('tools/call', { name: 'x' }, { ...asker, signal: stop.signal }).catch(() => {})
  while (setup.requests('tools/call').at(-1)?.params?.['name'] !== 'x') await atRest()
  stop.abort(new Error('given up'))
  await given
  await atRest()
}

const single = { endpoints: { default: { upstreams: ['one'], prefix: '' } } }

t.test('the next call has another one, until its time is up', async (t) => {
  const { task, double } = hung()
  const setup = await modernSetup(t, { one: double }, single)
  await giveUp(setup)
  task.owes = false
  await setup.call('tools/call', { name: 'y' }, asker)
  t.same(
    callers(setup).map(({ requests }) => requests.map(({ params }) => params?.['name'])),
    [['x'], ['y']],
    'nor does it get any meanwhile'
  )
  setup.clock.move(10_000)
  await atRest()
  await setup.call('tools/call', { name: 'y' }, asker)
  t.same(
    callers(setup).map(({ requests }) => requests.map(({ params }) => params?.['name'])),
    [['x', 'y'], ['y']],
    'the first slot again, with what its server remembers'
  )
  t.same(
    callers(setup).map(({ closed }) => closed),
    [false, false]
  )
})

t.test('where it names its calls, the connection goes on', async (t) => {
  const { double } = hung({ namesCalls: true })
  const setup = await modernSetup(t, { one: double }, single)
  await giveUp(setup)
  await setup.call('tools/call', { name: 'y' }, asker)
  setup.clock.move(10_000)
  await atRest()
  t.same(
    callers(setup).map(({ closed }) => closed),
    [false]
  )
})

t.test('where the caller has no place left, it is closed for the next call; not while a task runs there', async (t) => {
  for (const running of [false, true]) {
    const { task, double } = hung()
    const setup = await modernSetup(t, { one: double }, single)
    if (running) await setup.call('tools/call', { name: 'task' }, asker)
    const stop = new AbortController()
    const all = Array.from({ length: 8 }, (_, at) =>
      setup.call('tools/call', { name: 'x' }, { ...asker, ...(at === 0 && { signal: stop.signal }) }).catch(() => {})
    )
    while (setup.requests('tools/call').filter(({ params }) => params?.['name'] === 'x').length < 8) await atRest()
    stop.abort(new Error('given up'))
    await all[0]
    await atRest()
    task.owes = false
    const ninth = setup.call('tools/call', { name: 'y' }, asker)
    await atRest()
    setup.clock.move(1_000)
    await atRest()
    t.equal(callers(setup)[0]?.closed, !running)
    setup.clock.move(10_000)
    t.match(await ninth, { resultType: 'complete' })
  }
})
