// Sessions at servers over HTTP that take calls from the home of a session alone, or from there again: no session is
// lost for it, and no call is sent twice.

import t from 'tap'
import { postEvents } from '../kit/events.ts'
import type { HttpUpstream, Seen } from '../kit/upstream.ts'
import { isCall, isMethod, startUpstream } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'
import { countMessages, tool } from './lending.ts'
import { sessionAt, startReplicas } from './rig.ts'

const toolsOf = (...names: string[]) => names.map((name) => ({ name, inputSchema: { type: 'object' } }))
const [free, bound, tasks] = [
  await startUpstream(),
  await startUpstream({ tools: toolsOf('say') }),
  await startUpstream({
    capabilities: { tools: {}, tasks: { requests: { tools: { call: {} } } } },
    tools: [
      ...toolsOf('pid'),
      { name: 'toil', inputSchema: { type: 'object' }, execution: { taskSupport: 'required' } }
    ]
  })
]
for (const each of [free, bound, tasks]) t.teardown(each.close)
const lent = ({ url }: HttpUpstream) => ({ type: 'http', url })
const upstreams = { free: lent(free), bound: lent(bound), tasks: lent(tasks) }
const endpoints = { default: { upstreams: ['free', 'bound', 'tasks'], prefix: '' } }
const rig = await startReplicas(t, { upstreams, endpoints }, [{}, {}])
const [home, guest] = [0, 1].map((node) => rig.at(node)) as [string, string]
const { messagesOf, lentTo } = await countMessages(t, rig.store.url)

const says = (word: string) => (seen: Seen) =>
  isCall('echo')(seen) && JSON.stringify(seen.message?.['params']).includes(word)
const sessionsOf = ({ seen }: HttpUpstream, name: string): Set<unknown> =>
  new Set(seen.filter(isCall(name)).map(({ headers }) => headers['mcp-session-id']))
const handshakes = (): number => free.seen.filter(isMethod('initialize')).length

for (const url of [home, guest]) {
  const client = await sessionAt(url)
  for (const name of ['echo', 'say', 'pid']) await tool(url, client, name)
  await client.end()
}

t.test('where the server knows a session from its home alone, no call fails, and all go there', async (t) => {
  // So does a balancer in front of it that binds sessions to addresses: the ping of the other replica fails.
  bound.override(isMethod('ping'), (response) => response.writeHead(404).end(), Infinity)
  const client = await sessionAt(home)
  await tool(home, client, 'say', { text: 'first' })
  const [before, pings] = [bound.seen.length, (): number => bound.seen.filter(isMethod('ping')).length]
  const pingsBefore = pings()
  for (let n = 0; n < 20 || (n < 500 && pings() === pingsBefore); n++)
    t.equal(await tool(guest, client, 'say', { text: `word ${n}` }), `word ${n}`)
  t.ok(pings() > pingsBefore, 'the other replica has tried it')
  for (let n = 0; n < 5; n++) {
    const hop = await messagesOf(async () => t.equal(await tool(guest, client, 'say', { text: 'after' }), 'after'))
    t.ok(hop >= 2, `call ${n} goes to its home, in ${hop} messages`)
  }
  t.equal(new Set(bound.seen.slice(before).map(({ headers }) => headers['mcp-session-id'])).size, 1)
  await client.end()
})

for (const status of [400, 401, 403, 404])
  t.test(`a ${status} that one replica gets ends no session: its next calls go to the home`, async (t) => {
    const client = await sessionAt(home)
    await tool(home, client, 'echo', { text: `begins ${status}` })
    await lentTo(guest, client, 'echo')
    const calls = free.server.calls('slow')
    const slow = await postEvents(guest, client, 'slow', 'tools/call', { name: 'slow', arguments: {} })
    await until('it runs', () => free.server.calls('slow') > calls)
    const [before, executed] = [handshakes(), free.server.calls('echo')]
    free.override(says(`refused ${status}`), (response) => response.writeHead(status).end())
    t.match(await tool(guest, client, 'echo', { text: `refused ${status}` }), /"code":-?\d+/)
    t.equal(free.seen.filter(says(`refused ${status}`)).length, 1, 'it is not sent again')
    for (let n = 0; n < 3; n++) {
      const hop = await messagesOf(async () => {
        t.match(await tool(guest, client, 'echo', { text: `after ${status}` }), `after ${status}`)
      })
      t.ok(hop >= 2, `call ${n} goes to its home, in ${hop} messages`)
    }
    t.equal(free.server.calls('echo'), executed + 3)
    free.server.release()
    t.match(await slow.next('its answer', ({ id }) => id === 'slow'), { result: {} }, 'a call that runs goes on')
    const sessions = [`begins ${status}`, `after ${status}`].map(
      (word) => free.seen.find(says(word))?.headers['mcp-session-id']
    )
    t.equal(sessions[0], sessions[1], 'in the same session')
    t.equal(handshakes(), before)
    await client.end()
  })

t.test('a tool that requires a task is called by the home', async (t) => {
  const client = await sessionAt(home)
  await tool(home, client, 'pid')
  await lentTo(guest, client, 'pid')
  for (let n = 0; n < 5; n++) {
    const hop = await messagesOf(() => tool(guest, client, 'toil'))
    t.ok(hop >= 2, `it goes there, in ${hop} messages`)
  }
  await lentTo(guest, client, 'pid')
  t.equal(sessionsOf(tasks, 'toil').size, 1)
  await client.end()
})
