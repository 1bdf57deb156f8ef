// What the log says of connections that end by themselves: a server that dies takes one of each session with it, and one
// that ends again and again is no news.

import t from 'tap'
import { stdioServer } from '../abuse/kit.ts'
import { legacyClient } from '../kit/client.ts'
import { handClock, handshake, recordingEvents, callOf, never, realClock, recordingClient } from '../kit/connector.ts'
import { stdioDefinition, testConnector } from '../kit/connector.ts'
import { gateway, key } from '../kit/gateway.ts'
import { until } from '../kit/until.ts'
import { createPool } from '../../src/upstream/pool/pool.ts'

t.test('of an upstream that loses the connections of many sessions at once, one line is logged', async (t) => {
  const { log, url } = await gateway(t, { upstreams: { up: { ...stdioServer(), era: 'legacy' } } })
  const pids = await Promise.all(
    Array.from({ length: 4 }, async () => {
      const { json } = await (await legacyClient(url(), key)).request('tools/call', { name: 'up__pid', arguments: {} })
      return Number(json.result.content[0].text)
    })
  )
  t.equal(new Set(pids).size, 4, 'each has a process of its own')
  for (const pid of pids) process.kill(pid, 'SIGKILL')
  await until('all have ended', () => log.filter(({ msg }) => msg === 'the upstream process ended').length >= 4)
  const warned = log.filter(({ level, upstream }) => level === 40 && upstream === 'up')
  t.match(warned, [
    {
      msg: 'a connection to the upstream ended',
      tenant: 'acme',
      reason: 'The process of upstream up ended (signal SIGKILL).'
    }
  ])
  t.equal(warned.length, 1)
})

t.test('those that end in the next minute are counted, and told once a minute as long as there are some', async (t) => {
  const clock = handClock()
  const { connector, log, logged } = testConnector()
  const pool = createPool({ connector, clock, random: () => 0, log })
  t.teardown(() => pool.close())
  const told = () => logged.filter(({ level }) => level === 40).map(({ msg, connections }) => [msg, connections])
  const first = ['a connection to the upstream ended', undefined]
  const lose = async (scope: string): Promise<void> => {
    const events = recordingEvents()
    const upstream = await pool.acquire(stdioDefinition(), scope, handshake, events)
    const { content } = await upstream.request(callOf('pid'), recordingClient(), never)
    process.kill(Number((content as Array<{ text: string }>)[0]?.text), 'SIGKILL')
    await until('its owner was told', () => events.ended.length === 1)
  }
  for (const scope of ['a', 'b', 'c']) await lose(scope)
  t.same(told(), [first])
  clock.advance(60_000)
  const more = ['more connections to the upstream ended', 2]
  t.same(told(), [first, more])
  clock.advance(60_000)
  t.same(told(), [first, more], 'nothing where none has ended')
  await lose('d')
  t.same(told(), [first, more, first])
})

t.test('a child that floods its standard error is told of once, not with each line', async (t) => {
  // Of the minute in which it is told once only so much passes as the test says.
  const hands = handClock()
  const { connector, logged } = testConnector({ clock: { ...realClock, now: hands.now } })
  const upstream = await connector.connect(stdioDefinition(), handshake, recordingEvents())
  t.teardown(() => upstream.close())
  const flood = (times: number) =>
    upstream.request(callOf('stderr', { text: 'x\n'.repeat(300), times }), recordingClient(), never)
  const lines = () => logged.filter(({ stderr }) => stderr !== undefined).length
  await flood(1)
  const before = await until('the burst is used up', () => (lines() >= 200 ? lines() : undefined))
  const warned = () => logged.filter(({ msg }) => msg.startsWith('left out lines'))
  // At 20 lines a second, a few more are let through while it goes on.
  await until('more lines are let through', async () => {
    hands.advance(100)
    await flood(1)
    return warned().length > 0 && lines() >= before + 20
  })
  t.equal(warned().length, 1)
  t.ok(Number(warned()[0]?.['lines']) > 0)
})
