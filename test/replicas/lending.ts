// What tests of sessions at servers over HTTP need that several replicas are in: the messages between replicas are
// counted, since a call in a borrowed session takes none.

import { Redis } from 'ioredis'
import type { LegacyClient } from '../kit/client.ts'
import { post } from '../kit/server-request.ts'
import { patienceMs, type Teardown, until } from '../kit/until.ts'

export async function tool(url: string, client: LegacyClient, name: string, args: object = {}): Promise<string> {
  const params = { name, arguments: args }
  const { json, text } = await post(url, client, { id: `${name} ${Math.random()}`, method: 'tools/call', params })
  return String(json?.result?.content?.[0]?.text ?? text)
}

/** @param storeUrl of the Redis of the replicas */
export async function countMessages(t: Teardown, storeUrl: string) {
  const [heard, said] = [new Redis(storeUrl), new Redis(storeUrl)]
  t.teardown(() => [heard, said].forEach((each) => each.disconnect()))
  let [messages, markers] = [0, 0]
  /** Characters of each, by channel. */
  const lengths = new Map<string, number[]>()
  await heard.psubscribe('*node:*')
  heard.on('pmessage', (_pattern, channel: string, text: string) => {
    if (channel === 'marker-node:') return markers++
    lengths.set(channel, [...(lengths.get(channel) ?? []), text.length])
    return messages++
  })

  /** All that was published before has been counted. */
  async function settled(): Promise<number> {
    const before = markers
    await said.publish('marker-node:', '')
    await until('the marker has come', () => markers > before)
    return messages
  }

  /** Messages between replicas while the work is done. */
  async function messagesOf(work: () => Promise<unknown>): Promise<number> {
    const before = await settled()
    await work()
    return (await settled()) - before
  }

  return {
    messagesOf,
    /** Of each replica that got any: how many messages of at least so many characters. */
    async long(chars: number): Promise<number[]> {
      await settled()
      return [...lengths.values()].map((all) => all.filter((length) => length >= chars).length).filter((n) => n > 0)
    },
    /** Calls go on until one of them needs no other replica. */
    async lentTo(url: string, client: LegacyClient, name = 'get', ms = patienceMs): Promise<void> {
      await until('the session is lent', async () => (await messagesOf(() => tool(url, client, name))) === 0, ms)
    }
  }
}
