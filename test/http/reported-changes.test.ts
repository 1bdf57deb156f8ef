// What an upstream reports as changed, its clients hear of, be the list the same or not: only the server knows what it
// means. What the gateway suspects by itself is compared first.

import t from 'tap'
import { legacyClient } from '../kit/client.ts'
import { gateway, key } from '../kit/gateway.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { modernListen, type ModernStream } from '../kit/modern-listen.ts'
import { startModern } from '../kit/modern-server.ts'
import { until } from '../kit/until.ts'

const all = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true }
const changed = (kind: string): string => `notifications/${kind}/list_changed`

async function acknowledged(url: string, name = 'one'): Promise<ModernStream> {
  const stream = await modernListen(url, all, { token: key, meta: { 'io.gatehouse/conversation': name } })
  await stream.next(({ method }) => method === 'notifications/subscriptions/acknowledged')
  return stream
}

t.test('a report of a server of 2026-07-28 reaches the clients of both eras, a flood of them as a few', async (t) => {
  const upstream = await startModern()
  t.teardown(() => upstream.close())
  const acme = await gateway(t, { upstreams: { up: { type: 'http', url: upstream.url } } })
  const stream = await acknowledged(acme.url())
  const session = await legacyClient(acme.url(), key)
  const listening = await session.listen()
  await until('the gateway listens', () => upstream.server.listens.size > 0)
  const heard = (kind: string): number => listening.messages.filter(({ method }) => method === changed(kind)).length

  upstream.server.listChanged('prompts')
  await until('the stream hears of it', () => stream.said().includes(changed('prompts')))
  await until('the session hears of it', () => heard('prompts') > 0)
  t.same(new Set(stream.said()), new Set([changed('prompts')]), 'and of nothing else')

  for (let n = 0; n < 500; n++) upstream.server.listChanged('resources')
  upstream.server.script.tools.push({ name: 'grown', inputSchema: { type: 'object' } })
  upstream.server.listChanged('tools')
  await until('a real change is told too', () => stream.said().includes(changed('tools')) && heard('tools') > 0)
  const told = stream.said().filter((each) => each === changed('resources')).length
  t.ok(told >= 1 && told <= 5 && heard('resources') <= 5, `told ${told} and ${heard('resources')} times`)
  const { json } = await modernRequest(acme.url(), 'tools/list', {}, { token: key })
  t.match(json.result.tools.at(-1), { name: 'up__grown' })
})

t.test('a stream of the server that broke is no report: what is the same then is not told', async (t) => {
  const upstream = await startModern()
  t.teardown(() => upstream.close())
  const acme = await gateway(t, { upstreams: { up: { type: 'http', url: upstream.url } } })
  const stream = await acknowledged(acme.url())
  await until('the gateway listens', () => upstream.server.listens.size === 1)
  const reads = upstream.server.requests('tools/list').length
  upstream.server.endListens('broken')
  await until('it listens again', () => upstream.server.listens.size === 1)
  await until('it has read again', () => upstream.server.requests('tools/list').length > reads)
  upstream.server.listChanged('prompts')
  await until('what is reported then is told', () => stream.said().length > 0)
  t.same(new Set(stream.said()), new Set([changed('prompts')]))
})

t.test('a report on the process of one client is for that client, whatever its era', async (t) => {
  const server = new URL('../kit/stdio-server.ts', import.meta.url).pathname
  const acme = await gateway(t, {
    upstreams: { up: { type: 'stdio', command: process.execPath, args: [server, '{}'] } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } }
  })
  const report = { jsonrpc: '2.0', method: changed('tools') }
  const call = { name: 'raw', arguments: { text: `${JSON.stringify(report)}\n` } }
  const [one, two] = [await acknowledged(acme.url(), 'one'), await acknowledged(acme.url(), 'two')]
  const [ada, bob] = [await legacyClient(acme.url(), key), await legacyClient(acme.url(), key)]
  const [hers, his] = [await ada.listen(), await bob.listen()]

  t.match((await ada.request('tools/call', call)).json, { result: {} })
  await until('the session hears of it', () => hers.messages.length > 0)
  t.same(hers.messages, [report])
  const meta = { 'io.gatehouse/conversation': 'one' }
  t.match((await modernRequest(acme.url(), 'tools/call', call, { token: key, meta })).json, { result: {} })
  await until('the conversation hears of it', () => one.said().length > 0)
  t.same(one.said(), [changed('tools')])
  t.same([his.messages, two.said()], [[], []], 'others hear nothing')
})
