// What a caller's own calls change in the lists of a server, the caller sees: in its conversation, and nobody else.

import t, { type Test } from 'tap'
import { eventsOf, legacyClient } from '../../kit/client.ts'
import { gateway } from '../../kit/gateway.ts'
import { modernRequest } from '../../kit/modern-client.ts'
import { modernListen } from '../../kit/modern-listen.ts'
import { modernStdio } from '../../kit/modern-server.ts'
import { startUpstream } from '../../kit/upstream.ts'
import { until } from '../../kit/until.ts'

const ada = 'gh_key_of_ada_0123456789'
const bob = 'gh_key_of_bob_0123456789'
const first = ['grow', 'pid', 'crash']
const entries = first.map((name) => ({ name, inputSchema: { type: 'object' } }))
const stdioServer = new URL('../../kit/stdio-server.ts', import.meta.url).pathname
const asking = { elicitation: { form: {} } }

interface Caller {
  readonly token?: string
  readonly conversation?: string
  readonly capabilities?: Record<string, unknown>
}

async function acme(t: Test, upstream: object) {
  const { url } = await gateway(t, {
    upstreams: { up: upstream },
    endpoints: { default: { upstreams: ['up'], prefix: '' } },
    auth: {
      keys: [
        { name: 'ada', key: ada },
        { name: 'bob', key: bob }
      ]
    }
  })
  const optionsOf = ({ token = ada, conversation = 'a', capabilities = {} }: Caller) => ({
    token,
    capabilities,
    meta: { 'io.gatehouse/conversation': conversation }
  })
  const send = async (method: string, params: Record<string, unknown>, who: Caller = {}) => {
    const { text, json } = await modernRequest(url(), method, params, optionsOf(who))
    return json ?? eventsOf(text).at(-1)
  }
  return {
    url,
    call: (name: string, args: Record<string, unknown> = {}, who: Caller = {}) =>
      send('tools/call', { name, arguments: args }, who),
    list: async (who: Caller = {}): Promise<string[]> =>
      (await send('tools/list', {}, who)).result.tools.map(({ name }: { name: string }) => name),
    listen: async (who: Caller = {}) => {
      const stream = await modernListen(url(), { toolsListChanged: true }, optionsOf(who))
      t.teardown(() => stream.close())
      await stream.next(({ method }) => method === 'notifications/subscriptions/acknowledged')
      return stream
    }
  }
}

const http = async (t: Test) => {
  const upstream = await startUpstream({ tools: entries, ownLists: true })
  t.teardown(() => upstream.close())
  return { type: 'http', url: upstream.url }
}

const servers: ReadonlyArray<[name: string, of: (t: Test) => Promise<object>, capabilities: Record<string, unknown>]> =
  [
    ['an older server over Streamable HTTP', http, {}],
    ['an older server over Streamable HTTP that may ask', http, asking],
    [
      'an older server over stdio',
      async () => ({ command: process.execPath, args: [stdioServer, JSON.stringify({ tools: entries })] }),
      {}
    ],
    ['a modern server over stdio', async () => modernStdio({ tools: entries }), {}],
    ['a modern server over stdio, to a client that can be asked', async () => modernStdio({ tools: entries }), asking]
  ]

for (const [name, of, capabilities] of servers) {
  t.test(`${name}: a tool that a call adds is there for its conversation, and for nobody else`, async (t) => {
    const { call, list, listen } = await acme(t, await of(t))
    const me = { capabilities }
    const others = [
      { ...me, conversation: 'b' },
      { ...me, token: bob }
    ]
    t.same(await list(me), first)
    const [mine, ...theirs] = await Promise.all([me, ...others].map(listen))
    t.match(await call('grow', { name: 'release' }, me), { result: { content: [{ text: /grown/ }] } })
    await until('the stream of the conversation hears of it', () => (mine?.said().length ?? 0) > 0)
    t.same(await list(me), [...first, 'release'])
    for (const other of others) {
      t.same(await list(other), first)
      t.match(await call('release', {}, other), { error: { code: -32602, message: /Unknown tool/ } })
    }
    t.match(await call('release', {}, me), { result: { isError: undefined, content: [{ type: 'text' }] } })
    t.same(
      theirs.map((stream) => stream.said()),
      [[], []]
    )
  })
}

for (const [name, of] of servers.filter(([, , capabilities]) => capabilities !== asking)) {
  t.test(`${name}: a client that does not listen sees it too, and loses it with what its calls made`, async (t) => {
    const { call, list } = await acme(t, { ...(await of(t)), ...(name.includes('stdio') && { idleMs: 2_000 }) })
    t.same(await list(), first)
    let grown: unknown
    // Once more at another process: on a busy machine, even the next call may come after the first one was idle.
    const isGrown = async (): Promise<boolean> => {
      const pid: unknown = (await call('pid')).result?.content[0].text
      if (pid !== grown) await call('grow', { name: 'release' })
      grown = pid
      return (await list()).includes('release')
    }
    await until('it is in the list', isGrown)
    if (!name.includes('stdio')) return
    await call('crash')
    await until('with the process, its tool is gone', async () => !(await list()).includes('release'))
    await until('it is in the list again', isGrown)
    await until('what is idle is closed, and its tool is gone', async () => !(await list()).includes('release'))
  })
}

t.test('what a client that declares something else has changed on its own connection is not seen', async (t) => {
  const { call, list } = await acme(t, await http(t))
  await list()
  await call('grow', { name: 'release' }, { capabilities: asking })
  await until('it is in the list', async () => (await list({ capabilities: asking })).includes('release'))
  t.same(await list(), first)
  await call('grow', { name: 'log' })
  await until('it is in the other list', async () => (await list()).includes('log'))
  t.same(await list(), [...first, 'log'])
  t.same(await list({ capabilities: asking }), [...first, 'release'])
})

t.test('a session sees what its own calls change in the process of a modern server', async (t) => {
  const { url } = await acme(t, modernStdio({ tools: entries }))
  const [mine, other] = [await legacyClient(url(), ada), await legacyClient(url(), ada)]
  const stream = await mine.listen()
  const list = async ({ request }: typeof mine): Promise<string[]> =>
    (await request('tools/list')).json.result.tools.map(({ name }: { name: string }) => name)
  t.same(await list(mine), first)
  await mine.request('tools/call', { name: 'grow', arguments: { name: 'release' } })
  await until('the session hears of it', () => stream.messages.length > 0)
  t.same(await list(mine), [...first, 'release'])
  t.match((await mine.request('tools/call', { name: 'release', arguments: {} })).json, { result: { content: [{}] } })
  t.same(await list(other), first)
})
