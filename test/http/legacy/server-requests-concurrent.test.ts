// Many server requests at once, with equal ids and tokens wherever the other side chooses them: each answer returns to
// its own call.

import t from 'tap'
import { acmeGateway, keyOf } from '../../kit/acme-gateway.ts'
import { capableClient, callUntilServerRequest, isServerRequest, post } from '../../kit/server-request.ts'
import { postEvents } from '../../kit/events.ts'
import { startUpstream } from '../../kit/upstream.ts'
import { until } from '../../kit/until.ts'

t.test('two servers that ask at once with the same id and the same progress token', async (t) => {
  const servers = { one: await startUpstream(), two: await startUpstream() }
  t.teardown(() => Promise.all([servers.one.close(), servers.two.close()]))
  const made = await acmeGateway(t, {
    upstreams: { one: { url: servers.one.url }, two: { url: servers.two.url } },
    endpoints: { default: { upstreams: ['one', 'two'] } }
  })
  const client = await capableClient(made.url(), keyOf.ada)
  const params = { messages: [], maxTokens: 1, _meta: { progressToken: 1 } }
  const asked = {
    one: await callUntilServerRequest(made.url(), client, 'one__sample', { params }, 1),
    two: await callUntilServerRequest(made.url(), client, 'two__sample', { params }, '1')
  }
  const names = ['one', 'two'] as const
  t.not(asked.one.serverRequest['id'], asked.two.serverRequest['id'])
  // The other way round.
  for (const name of names.toReversed()) {
    await client.notify('notifications/progress', {
      progressToken: asked[name].serverRequest['params']._meta.progressToken,
      progress: 1,
      message: name
    })
    await post(made.url(), client, { id: asked[name].serverRequest['id'], result: { model: name } })
  }
  for (const name of names) {
    t.same((await asked[name].result())['result'], { model: name })
    const { received } = servers[name].server
    const reported = () => received.filter(({ method }) => method === 'notifications/progress')
    await until('the server has it', () => reported().length > 0)
    t.same(
      reported().map((message) => message['params']),
      [{ progressToken: 1, progress: 1, message: name }]
    )
    t.same([...servers[name].server.answers.keys()], ['ask-1'], 'both had chosen the same id')
  }
})

t.test(
  'fifty sessions are asked at the same time, answer in another order, and each call gets its own answer',
  async (t) => {
    const made = await acmeGateway(t)
    const sessions = await Promise.all(
      Array.from({ length: 50 }, async (_, n) => {
        const client = await capableClient(made.url(), n % 2 === 0 ? keyOf.ada : keyOf.bob)
        return {
          n,
          client,
          asked: await callUntilServerRequest(
            made.url(),
            client,
            'elicit',
            { params: { message: `for ${n}`, requestedSchema: { type: 'object', properties: {} } } },
            1
          )
        }
      })
    )
    for (const { n, asked } of sessions)
      if (asked.serverRequest['params'].message !== `for ${n}`) t.fail(`${n} was asked what is another's`)
    await Promise.all(
      sessions
        .toSorted(() => Math.random() - 0.5)
        .map(({ n, client, asked }) =>
          post(made.url(), client, { id: asked.serverRequest['id'], result: { action: 'accept', content: { n } } })
        )
    )
    const results = await Promise.all(sessions.map(({ asked }) => asked.result()))
    t.same(
      results.map(({ result }) => result.content.n),
      sessions.map(({ n }) => n)
    )
  }
)

t.test('one call that asks many things at once gets all answers', async (t) => {
  const made = await acmeGateway(t)
  const client = await capableClient(made.url(), keyOf.ada)
  const stream = await postEvents(made.url(), client, 'many', 'tools/call', { name: 'sample', arguments: { count: 8 } })
  const questions = async (): Promise<Array<{ id: string }>> => {
    await stream.next('the last question', () => stream.messages().filter(isServerRequest).length === 8)
    return stream.messages().filter(isServerRequest)
  }
  const all = await questions()
  for (const [n, { id }] of all.toReversed().entries()) await post(made.url(), client, { id, result: { n } })
  const final = await stream.next('the result', ({ id }) => id === 'many')
  const answers = JSON.parse(final.result.content[0].text) as Array<{ id: string; result: { n: number } }>
  t.same(
    answers.toSorted((a, b) => a.id.localeCompare(b.id)).map(({ result }) => result.n),
    [7, 6, 5, 4, 3, 2, 1, 0]
  )
})
