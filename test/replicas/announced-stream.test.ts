// A client that sees its new stream may count on it: the process that its session lives at knows of the stream by then.

import pino from 'pino'
import t from 'tap'
import { createRedisStore } from '../../src/store/redis.ts'
import type { Store } from '../../src/store/port.ts'
import { gateway, key } from '../kit/gateway.ts'
import { legacyClient, open } from '../kit/client.ts'
import { redis } from '../kit/redis.ts'
import { scriptedStdio } from '../kit/server-request.ts'
import { until } from '../kit/until.ts'

t.test('a stream at another process begins when the home of the session was told of it', async (t) => {
  const { url } = await redis(t)
  const store = await createRedisStore({ url, clock: Date, log: pino({ level: 'silent' }) })
  const held: Array<() => void> = []
  let holds = false
  let began = false
  /** What this process tells others waits while it is held. */
  const slow: Store = {
    ...store,
    get live() {
      return store.live
    },
    async publish(channel, message) {
      if (holds && channel.startsWith('node:')) await new Promise<void>((resolve) => held.push(resolve))
      return await store.publish(channel, message)
    }
  }
  const upstreams = { pipe: scriptedStdio }
  const endpoints = { default: { upstreams: ['pipe'], prefix: '' } }
  const home = await gateway(t, { upstreams, endpoints, store: url })
  const other = await gateway(t, { upstreams, endpoints, overrides: { store: slow } })
  const client = await legacyClient(home.url(), key)
  const call = (name: string) => client.request('tools/call', { name: name, arguments: {} })
  const uri = 'test://one'
  t.match((await client.request('resources/subscribe', { uri })).json, { result: {} })

  holds = true
  const listening = open(other.url(), { method: 'GET', headers: { ...client.headers, accept: 'text/event-stream' } })
  void listening.then(() => (began = true))
  await until('the stream is about to be announced', () => held.length > 0)
  t.equal((await legacyClient(other.url(), key)).initialized.status, 200, 'the process goes on meanwhile')
  t.equal(began, false)
  holds = false
  for (const release of held) release()
  const stream = await listening
  let text = ''
  stream.setEncoding('utf8').on('data', (piece: string) => (text += piece))
  t.match((await call('touch')).json, { result: { content: [{ text: 'touched' }] } })
  await until('the update comes on the new stream', () => text.includes('resources/updated'))
  stream.destroy()
})
