// Attack: a server with a hundred subscribers reports the same resource as updated, as fast as it can.

import t from 'tap'
import { legacyClient } from '../kit/client.ts'
import { until } from '../kit/until.ts'
import { attacked, keys, stdioServer } from './kit.ts'

const uri = 'storm://one'
const lines = (count: number, meta: object = {}): string =>
  `${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri, _meta: meta } })}\n`.repeat(
    count
  )

t.test('each subscriber is told once of what is reported while the others are told, and the last of it', async (t) => {
  const resources = [{ uri, name: 'one' }]
  const gateway = await attacked(t, {
    upstreams: { storm: { ...stdioServer({ resources }), isolation: 'shared' } }
  })
  const clients = await Promise.all(Array.from({ length: 100 }, () => legacyClient(gateway.url, keys.attacker)))
  const streams = await Promise.all(clients.map((client) => client.listen()))
  const subscribed = await Promise.all(clients.map((client) => client.request('resources/subscribe', { uri })))
  for (const { json } of subscribed) t.match(json, { result: {} })
  const neighbour = await gateway.neighbour()
  const say = (text: string) => clients[0]?.request('tools/call', { name: 'storm__raw', arguments: { text } })
  t.match((await say(lines(900)))?.json, { result: {} })
  await until('the storm is over', () => streams.every(({ messages }) => messages.length > 0), 60_000)
  t.match((await say(lines(1, { last: true })))?.json, { result: {} })
  const isLast = (message: unknown): boolean => JSON.stringify(message).includes('"last":true')
  await until('the last', () => streams.every(({ messages }) => messages.some(isLast)), 60_000)
  const told = streams.reduce((sum, { messages }) => sum + messages.length, 0)
  t.ok(told < 45_000, `${told} messages for 901 updates and 100 subscribers`)
  const { failures, longestMs } = await neighbour.stop()
  t.same(failures, [])
  t.ok(longestMs < 5_000, `the longest call took ${longestMs} ms`)
})
