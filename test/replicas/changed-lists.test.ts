// A client that listens at one replica and asks another one for its lists, while the server tells each of them at its
// own time.

import t, { type Test } from 'tap'
import { legacyClient } from '../kit/client.ts'
import { listenEvents } from '../kit/events.ts'
import { gateway, key } from '../kit/gateway.ts'
import type { Json } from '../kit/mcp-server.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { modernListen } from '../kit/modern-listen.ts'
import { startModern } from '../kit/modern-server.ts'
import { redis } from '../kit/redis.ts'
import { startUpstream } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'
import { countMessages, tool } from './lending.ts'

const changed = 'notifications/tools/list_changed'
const toolNamed = (name: string): Json => ({ name, inputSchema: { type: 'object' } })

/** Two replicas in front of a server of 2026-07-28 that has one tool. */
async function twoReplicas(t: Test) {
  const upstream = await startModern({ tools: [toolNamed('before')] })
  t.teardown(() => upstream.close())
  const options = {
    store: (await redis(t)).url,
    upstreams: { up: { type: 'http', url: upstream.url } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } }
  }
  const [near, far] = [await gateway(t, options), await gateway(t, options)]
  const { listens, script } = upstream.server
  return { near, far, listens, script }
}

t.test('whichever replica reads a change last, its client hears of it after that', async (t) => {
  const { near, far, listens, script } = await twoReplicas(t)
  const namesAt = async (url: string): Promise<unknown> => {
    const { json } = await modernRequest(url, 'tools/list', {}, { token: key })
    return (json as { result: { tools: Json[] } }).result.tools.map(({ name }) => name)
  }
  const client = await modernListen(near.url(), { toolsListChanged: true }, { token: key })
  await client.next(({ method }) => method === 'notifications/subscriptions/acknowledged')
  const [toNear] = await until('the first replica listens at the server', () =>
    listens.size === 1 ? [...listens] : undefined
  )
  t.same(await namesAt(far.url()), ['before'])
  const [, toFar] = await until('the second one, too', () => (listens.size === 2 ? [...listens] : undefined))
  t.same(client.said(), [], 'that a replica has read lists for the first time is no change')

  script.tools = [toolNamed('after')]
  toNear?.peer.reply({ jsonrpc: '2.0', method: changed })
  await until('the client is told', () => client.said().length === 1)
  t.same(await namesAt(near.url()), ['after'])
  t.same(await namesAt(far.url()), ['before'], 'which has not heard of it')

  toFar?.peer.reply({ jsonrpc: '2.0', method: changed })
  await until('the client is told once more', () => client.said().length === 2)
  t.same(await namesAt(far.url()), ['after'])

  await near.close()
  await client.ended
  t.same(
    client.said().filter((method) => method === changed),
    [changed, changed],
    'and not again'
  )
})

t.test('so it is for a session, whose lists of a modern server any replica shows', async (t) => {
  const { near, far, listens, script } = await twoReplicas(t)
  const client = await legacyClient(near.url(), key)
  const stream = await listenEvents(near.url(), client)
  const [toNear] = await until('its home listens at the server', () => (listens.size === 1 ? [...listens] : undefined))
  await modernRequest(far.url(), 'tools/list', {}, { token: key })
  const [, toFar] = await until('the other one, too', () => (listens.size === 2 ? [...listens] : undefined))
  script.tools = [toolNamed('after')]
  for (const [times, each] of [toNear, toFar].entries()) {
    t.equal(stream.messages().length, times)
    each?.peer.reply({ jsonrpc: '2.0', method: changed })
    await until('the client is told', () => stream.messages().length === times + 1)
  }
  t.same(
    stream.messages().map(({ method }) => method),
    [changed, changed]
  )
  stream.cut()
  await client.end()
})

t.test('that a replica reads the lists of a server in whose session it sends calls is no change', async (t) => {
  const upstream = await startUpstream()
  t.teardown(upstream.close)
  const options = {
    store: (await redis(t)).url,
    upstreams: { up: { type: 'http', url: upstream.url } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } }
  }
  const [home, guest] = [await gateway(t, options), await gateway(t, options)]
  const { lentTo } = await countMessages(t, options.store)
  const client = await legacyClient(home.url(), key)
  const stream = await listenEvents(guest.url(), client)
  await tool(home.url(), client, 'echo')
  await lentTo(guest.url(), client, 'echo')
  t.same(stream.messages(), [])
  upstream.broadcast({ jsonrpc: '2.0', method: changed })
  await stream.next('the control: a change', ({ method }) => method === changed)
  stream.cut()
  await client.end()
})
