// How a call of a legacy client at a modern server ends: a broken connection is no cancellation, a cancellation reaches the server, and
// nothing is executed a second time.

import t from 'tap'
import { everything } from '../kit/asked.ts'
import type { Json } from '../kit/asked.ts'
import { listenEvents } from '../kit/events.ts'
import { gateway, key } from '../kit/gateway.ts'
import { modernStdio, startModern } from '../kit/modern-server.ts'
import { doors, talker } from '../kit/talker.ts'
import { until } from '../kit/until.ts'

const up = await startModern()
t.teardown(() => up.close())
const house = await gateway(t, {
  upstreams: { up: { type: 'http', url: up.url, era: 'modern' }, pipe: { ...modernStdio(), era: 'modern' } },
  endpoints: { default: { upstreams: ['up'], prefix: '' }, pipe: { upstreams: ['pipe'], prefix: '' } }
})

for (const revision of ['2025-03-26', '2025-06-18', '2025-11-25']) {
  t.test(`${revision}: who loses the connection during a question comes back to it, and answers it`, async (t) => {
    const before = up.server.requests('tools/call', 'roots').length
    const cancelled = up.server.cancelled.length
    const { client, ...ada } = await talker(house.url(), key, 'Streamable HTTP', revision, everything)
    if (client === undefined) throw new Error('no client')
    const call = await ada.start('tools/call', { name: 'roots', arguments: { rounds: 2 } })
    const [first] = await call.questions() as [Json]
    await ada.answer(first, { roots: [] })
    const [second] = await call.questions() as [Json]
    const seen = call.stream?.events().findLast(({ message }) => message?.id === first['id'])?.id
    call.stream?.cut()
    const resumed = await listenEvents(house.url(), client, seen)
    t.match(await resumed.next('the question again', ({ id }) => id === second['id']), { method: 'roots/list' })
    await ada.answer(second, { roots: [{ uri: 'file:///x' }] })
    const final = await resumed.next('the answer', ({ id }) => id === call.id) as Json
    t.same(JSON.parse(final['result'].content[0].text).inputResponses, { user_name: { roots: [{ uri: 'file:///x' }] } })
    t.equal(up.server.requests('tools/call', 'roots').length, before + 3)
    t.equal(up.server.cancelled.length, cancelled)
    resumed.cut()
  })
}

t.test('who loses the connection while the server works cancels nothing either', async (t) => {
  const cancelled = up.server.cancelled.length
  const { client, ...ada } = await talker(house.url(), key, 'Streamable HTTP', '2025-11-25')
  if (client === undefined) throw new Error('no client')
  const call = await ada.start('tools/call', { name: 'slow', arguments: {}, _meta: { progressToken: 1 } })
  await until('progress', () => call.messages().some(({ method }) => method === 'notifications/progress'))
  const seen = call.stream?.lastId()
  call.stream?.cut()
  await call.stream?.ended
  up.server.release()
  const resumed = await listenEvents(house.url(), client, seen)
  t.match(await resumed.next('the answer', ({ id }) => id === call.id), { result: { content: [{ text: 'slow is done' }] } })
  t.equal(up.server.cancelled.length, cancelled)
  resumed.cut()
})

for (const door of doors) {
  for (const endpoint of ['default', 'pipe']) {
    t.test(`${door}, ${endpoint === 'pipe' ? 'stdio' : 'HTTP'}: a cancellation reaches the server`, async (t) => {
      const client = await talker(house.url(endpoint), key, door, '2025-11-25', everything)
      t.teardown(() => client.close())
      const cancelled = async (): Promise<number> => (JSON.parse(String((await client.request('tools/call', { name: 'cancelled', arguments: {} }))['result'].content[0].text)) as unknown[]).length
      const before = await cancelled()
      const call = await client.start('tools/call', { name: 'slow', arguments: {}, _meta: { progressToken: 1 } })
      await until('progress', () => call.messages().some(({ method }) => method === 'notifications/progress'))
      await client.notify('notifications/cancelled', { requestId: call.id, reason: 'enough' })
      await until('the cancellation', async () => await cancelled() === before + 1)
      t.notOk(call.messages().some(({ id }) => id === call.id), 'and is not answered')
    })

    t.test(`${door}, ${endpoint === 'pipe' ? 'stdio' : 'HTTP'}: cancelled during a question, the question is withdrawn and the server not asked again`, async (t) => {
      const client = await talker(house.url(endpoint), key, door, '2025-11-25', everything)
      t.teardown(() => client.close())
      const sent = async (): Promise<number> => (JSON.parse(String((await client.request('tools/call', { name: 'received', arguments: {} }))['result'].content[0].text)) as Json[]).filter(({ params }) => params?.name === 'roots').length
      const call = await client.start('tools/call', { name: 'roots', arguments: {} })
      const [question] = await call.questions() as [Json]
      const before = await sent()
      await client.notify('notifications/cancelled', { requestId: call.id })
      await until('the withdrawal', () => call.messages().some(({ method, params }) => method === 'notifications/cancelled' && params.requestId === question['id']))
      await client.answer(question, { roots: [] })
      t.equal(await sent(), before)
    })
  }
}

t.test('the end of a session ends its question', async (t) => {
  const { client, ...ada } = await talker(house.url(), key, 'Streamable HTTP', '2025-11-25', everything)
  const before = up.server.requests('tools/call', 'roots').length
  const call = await ada.start('tools/call', { name: 'roots', arguments: {} })
  await call.questions()
  t.equal((await client?.end())?.status, 204)
  t.match(await call.final(), { error: { data: { reason: 'session_unknown' } } })
  t.equal(up.server.requests('tools/call', 'roots').length, before + 1)
})

t.test('a server that is lost between two rounds is not asked twice', async (t) => {
  const client = await talker(house.url(), key, 'Streamable HTTP', '2025-11-25', everything)
  const before = up.server.requests('tools/call', 'roots').length
  const call = await client.start('tools/call', { name: 'roots', arguments: {} })
  const [question] = await call.questions() as [Json]
  up.override(({ message }) => (message?.['params'] as Json | undefined)?.['name'] === 'roots', (response) => { response.socket?.destroy() })
  await client.answer(question, { roots: [] })
  t.match(await call.final(), { error: { code: -32603, data: { outcome: 'unknown' } } })
  t.equal(up.server.requests('tools/call', 'roots').length, before + 1)
})

t.test('a process that ends while somebody thinks is started again for the answer', async (t) => {
  const client = await talker(house.url('pipe'), key, 'Streamable HTTP', '2025-11-25', everything)
  const pid = async (): Promise<string> => String((await client.request('tools/call', { name: 'pid', arguments: {} }))['result'].content[0].text)
  const before = await pid()
  const call = await client.start('tools/call', { name: 'roots', arguments: {} })
  const [question] = await call.questions() as [Json]
  t.match(await client.request('tools/call', { name: 'crash', arguments: {} }), { error: { code: -32603 } })
  await client.answer(question, { roots: [] })
  t.same(JSON.parse((await call.final())['result'].content[0].text), { inputResponses: { user_name: { roots: [] } }, requestState: 'state of round 1' })
  t.not(await pid(), before)
})
