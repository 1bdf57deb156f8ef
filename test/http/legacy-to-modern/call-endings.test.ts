// How a call of a legacy client at a modern server ends: a broken connection is no cancellation, a cancellation reaches
// the server, and nothing is executed a second time.

import t from 'tap'
import { allCapabilities, type Json } from '../../kit/server-request.ts'
import { listenEvents } from '../../kit/events.ts'
import { gateway, key } from '../../kit/gateway.ts'
import { modernStdio, startModern } from '../../kit/modern-server.ts'
import { legacyTransports, answeringClient } from '../../kit/answering-client.ts'
import { until } from '../../kit/until.ts'

const up = await startModern()
t.teardown(() => up.close())
const acme = await gateway(t, {
  upstreams: { up: { type: 'http', url: up.url, era: 'modern' }, pipe: { ...modernStdio(), era: 'modern' } },
  endpoints: { default: { upstreams: ['up'], prefix: '' }, pipe: { upstreams: ['pipe'], prefix: '' } }
})

for (const revision of ['2025-03-26', '2025-06-18', '2025-11-25']) {
  t.test(
    `${revision}: who loses the connection during a server request comes back to it, and answers it`,
    async (t) => {
      const before = up.server.requests('tools/call', 'roots').length
      const cancelled = up.server.cancelled.length
      const { client, ...ada } = await answeringClient(acme.url(), key, 'Streamable HTTP', revision, allCapabilities)
      if (client === undefined) throw new Error('no client')
      const call = await ada.start('tools/call', { name: 'roots', arguments: { rounds: 2 } })
      const [first] = (await call.serverRequests()) as [Json]
      await ada.answer(first, { roots: [] })
      const [second] = (await call.serverRequests()) as [Json]
      const seen = call.stream?.events().findLast(({ message }) => message?.id === first['id'])?.id
      call.stream?.cut()
      const resumed = await listenEvents(acme.url(), client, seen)
      t.match(await resumed.next('the question again', ({ id }) => id === second['id']), { method: 'roots/list' })
      await ada.answer(second, { roots: [{ uri: 'file:///x' }] })
      const final = (await resumed.next('the answer', ({ id }) => id === call.id)) as Json
      t.same(JSON.parse(final['result'].content[0].text).inputResponses, {
        user_name: { roots: [{ uri: 'file:///x' }] }
      })
      t.equal(up.server.requests('tools/call', 'roots').length, before + 3)
      t.equal(up.server.cancelled.length, cancelled)
      resumed.cut()
    }
  )
}

t.test('who loses the connection while the server works cancels nothing either', async (t) => {
  const cancelled = up.server.cancelled.length
  const { client, ...ada } = await answeringClient(acme.url(), key, 'Streamable HTTP', '2025-11-25')
  if (client === undefined) throw new Error('no client')
  const call = await ada.start('tools/call', { name: 'slow', arguments: {}, _meta: { progressToken: 1 } })
  await until('progress', () => call.messages().some(({ method }) => method === 'notifications/progress'))
  const seen = call.stream?.lastId()
  call.stream?.cut()
  await call.stream?.ended
  up.server.release()
  const resumed = await listenEvents(acme.url(), client, seen)
  t.match(await resumed.next('the answer', ({ id }) => id === call.id), {
    result: { content: [{ text: 'slow is done' }] }
  })
  t.equal(up.server.cancelled.length, cancelled)
  resumed.cut()
})

for (const transport of legacyTransports) {
  for (const endpoint of ['default', 'pipe']) {
    t.test(`${transport}, ${endpoint === 'pipe' ? 'stdio' : 'HTTP'}: a cancellation reaches the server`, async (t) => {
      const client = await answeringClient(acme.url(endpoint), key, transport, '2025-11-25', allCapabilities)
      t.teardown(() => client.close())
      const cancelled = async (): Promise<number> =>
        (
          JSON.parse(
            String((await client.request('tools/call', { name: 'cancelled', arguments: {} }))['result'].content[0].text)
          ) as unknown[]
        ).length
      const before = await cancelled()
      const call = await client.start('tools/call', { name: 'slow', arguments: {}, _meta: { progressToken: 1 } })
      await until('progress', () => call.messages().some(({ method }) => method === 'notifications/progress'))
      await client.notify('notifications/cancelled', { requestId: call.id, reason: 'enough' })
      await until('the cancellation', async () => (await cancelled()) === before + 1)
      t.notOk(
        call.messages().some(({ id }) => id === call.id),
        'and is not answered'
      )
    })

    t.test(
      `${transport}, ${endpoint === 'pipe' ? 'stdio' : 'HTTP'}: cancelled during a server request, the server request is withdrawn and the server not asked again`,
      async (t) => {
        const client = await answeringClient(acme.url(endpoint), key, transport, '2025-11-25', allCapabilities)
        t.teardown(() => client.close())
        const sent = async (): Promise<number> =>
          (
            JSON.parse(
              String(
                (await client.request('tools/call', { name: 'received', arguments: {} }))['result'].content[0].text
              )
            ) as Json[]
          ).filter(({ params }) => params?.name === 'roots').length
        const call = await client.start('tools/call', { name: 'roots', arguments: {} })
        const [question] = (await call.serverRequests()) as [Json]
        const before = await sent()
        await client.notify('notifications/cancelled', { requestId: call.id })
        await until('the withdrawal', () =>
          call
            .messages()
            .some(({ method, params }) => method === 'notifications/cancelled' && params.requestId === question['id'])
        )
        await client.answer(question, { roots: [] })
        t.equal(await sent(), before)
      }
    )
  }
}

t.test('the end of a session ends its server request', async (t) => {
  const { client, ...ada } = await answeringClient(acme.url(), key, 'Streamable HTTP', '2025-11-25', allCapabilities)
  const before = up.server.requests('tools/call', 'roots').length
  const call = await ada.start('tools/call', { name: 'roots', arguments: {} })
  await call.serverRequests()
  t.equal((await client?.end())?.status, 204)
  t.match(await call.final(), { error: { data: { reason: 'session_unknown' } } })
  t.equal(up.server.requests('tools/call', 'roots').length, before + 1)
})

t.test('a server that is lost between two rounds is not asked twice', async (t) => {
  const client = await answeringClient(acme.url(), key, 'Streamable HTTP', '2025-11-25', allCapabilities)
  const before = up.server.requests('tools/call', 'roots').length
  const call = await client.start('tools/call', { name: 'roots', arguments: {} })
  const [question] = (await call.serverRequests()) as [Json]
  up.override(
    ({ message }) => (message?.['params'] as Json | undefined)?.['name'] === 'roots',
    (response) => {
      response.socket?.destroy()
    }
  )
  await client.answer(question, { roots: [] })
  t.match(await call.final(), { error: { code: -32603, data: { outcome: 'unknown' } } })
  t.equal(up.server.requests('tools/call', 'roots').length, before + 1)
})

t.test('a process that ends while a person thinks is started again for the answer', async (t) => {
  const client = await answeringClient(acme.url('pipe'), key, 'Streamable HTTP', '2025-11-25', allCapabilities)
  const pid = async (): Promise<string> =>
    String((await client.request('tools/call', { name: 'pid', arguments: {} }))['result'].content[0].text)
  const before = await pid()
  const call = await client.start('tools/call', { name: 'roots', arguments: {} })
  const [question] = (await call.serverRequests()) as [Json]
  t.match(await client.request('tools/call', { name: 'crash', arguments: {} }), { error: { code: -32603 } })
  await client.answer(question, { roots: [] })
  t.same(JSON.parse((await call.final())['result'].content[0].text), {
    inputResponses: { user_name: { roots: [] } },
    requestState: 'state of round 1'
  })
  t.not(await pid(), before)
})
