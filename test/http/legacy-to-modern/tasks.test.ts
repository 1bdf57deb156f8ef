// Tasks of 2025-11-25 at a server whose tasks are those of the extension of 2026-07-28: whoever asks for a task gets
// one, whoever does not gets the result, whatever the server made of the call.

import t from 'tap'
import { allCapabilities, type Json } from '../../kit/server-request.ts'
import { acmeGateway, keyOf } from '../../kit/acme-gateway.ts'
import { modernWays, startModern } from '../../kit/modern-server.ts'
import { legacyTransports, legacyRevisions, answeringClient, type AnsweringClient } from '../../kit/answering-client.ts'
import { until } from '../../kit/until.ts'

const up = await startModern()
t.teardown(() => up.close())
const acme = await acmeGateway(t, modernWays(up.url))
const related = 'io.modelcontextprotocol/related-task'
const call = (name: string, task?: Json, args: Json = {}): Json => ({
  name,
  arguments: args,
  ...(task === undefined ? {} : { task })
})
/** Over stdio the session has a server of its own, and steers it itself. */
const finish = (client: AnsweringClient, prefix = ''): Promise<Json> =>
  client.request('tools/call', call(`${prefix}finish`))

t.test('what is offered: tasks, and their use in each tool, to those who know them', async (t) => {
  for (const transport of legacyTransports) {
    for (const revision of legacyRevisions) {
      for (const endpoint of ['default', 'all']) {
        const client = await answeringClient(acme.url(endpoint), keyOf.ada, transport, revision)
        t.same(
          client.capabilities['tasks'],
          revision < '2025-11-25' ? undefined : { cancel: {}, requests: { tools: { call: {} } } }
        )
        t.notOk(client.capabilities['extensions'])
        const { tools } = (await client.request('tools/list'))['result'] as { tools: Json[] }
        t.same(tools[0]?.['execution'], revision < '2025-11-25' ? undefined : { taskSupport: 'optional' })
        if (revision < '2025-11-25')
          t.match(await client.request('tasks/get', { taskId: 'x' }), { error: { code: -32601 } })
        client.close()
      }
    }
  }
})

for (const transport of legacyTransports) {
  for (const endpoint of ['default', 'pipe', 'all']) {
    t.test(`${transport}, endpoint ${endpoint}: a task, its states, its result`, async (t) => {
      const client = await answeringClient(acme.url(endpoint), keyOf.ada, transport, '2025-11-25')
      t.teardown(() => client.close())
      const prefix = endpoint === 'all' ? 'pipe__' : ''
      const { task } = (await client.request('tools/call', call(`${prefix}task`, { ttl: 60_000 })))['result'] as {
        task: Json
      }
      t.match(task, {
        taskId: String,
        status: 'working',
        createdAt: String,
        lastUpdatedAt: String,
        ttl: 60_000,
        pollInterval: 20
      })
      t.same(
        Object.keys(task).filter((member) => ['ttlMs', 'pollIntervalMs', 'resultType'].includes(member)),
        []
      )
      const { taskId } = task
      const first = await client.request('tasks/get', { taskId })
      t.match(first['result'], { taskId, status: 'working', ttl: 60_000 })
      t.notOk('resultType' in first['result'])
      const waiting = await client.start('tasks/result', { taskId })
      await finish(client, prefix)
      t.match((await waiting.final())['result'], {
        content: [{ text: 'made' }],
        isError: false,
        _meta: { [related]: { taskId } }
      })
      t.match((await client.request('tasks/get', { taskId }))['result'], { taskId, status: 'completed' })
      t.notOk('result' in (await client.request('tasks/get', { taskId }))['result'])
      t.match(
        await client.request('tasks/cancel', { taskId }),
        { error: { code: -32602 } },
        'what has ended cannot be cancelled'
      )
      t.match(
        (await client.request('tasks/result', { taskId }))['result'],
        { content: [{ text: 'made' }] },
        'and has its result still'
      )
    })

    t.test(`${transport}, endpoint ${endpoint}: a call that is done at once is a task that has ended`, async (t) => {
      const client = await answeringClient(acme.url(endpoint), keyOf.ada, transport, '2025-11-25')
      t.teardown(() => client.close())
      const prefix = endpoint === 'all' ? 'pipe__' : ''
      for (const [tool, status] of [
        ['echo', 'completed'],
        ['fail', 'failed']
      ] as const) {
        const { task } = (await client.request('tools/call', call(`${prefix}${tool}`, {}, { a: 1 })))['result'] as {
          task: Json
        }
        t.match(task, { taskId: String, status, ttl: 600_000 })
        const { taskId } = task
        t.match((await client.request('tasks/get', { taskId }))['result'], { taskId, status })
        t.match((await client.request('tasks/result', { taskId }))['result'], {
          content: [{}],
          _meta: { [related]: { taskId } }
        })
        t.match(await client.request('tasks/cancel', { taskId }), { error: { code: -32602 } })
        // Another session of the same person, which may be served by another process.
        const later = await answeringClient(acme.url(endpoint), keyOf.ada, transport, '2025-11-25')
        t.match((await later.request('tasks/result', { taskId }))['result'], { content: [{}] })
        later.close()
        const bob = await answeringClient(acme.url(endpoint), keyOf.bob, transport, '2025-11-25')
        for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel'])
          t.match(await bob.request(method, { taskId }), { error: { code: -32602 } }, `${method} of somebody else's`)
        bob.close()
      }
      t.match(
        await client.request('tools/call', call(`${prefix}rpcerror`, {})),
        { error: { code: -32050 } },
        'an error is none'
      )
      const { task: lacking } = (await client.request('tools/call', call(`${prefix}roots`, {})))['result'] as {
        task: Json
      }
      t.equal(lacking['status'], 'failed', 'what could not be asked, by a client that expects a task')
      t.match((await client.request('tasks/result', { taskId: lacking['taskId'] }))['result'], {
        isError: true,
        content: [{ text: /roots/ }]
      })
    })

    t.test(`${transport}, endpoint ${endpoint}: a cancelled task is cancelled, and stays so`, async (t) => {
      const client = await answeringClient(acme.url(endpoint), keyOf.ada, transport, '2025-11-25')
      t.teardown(() => client.close())
      const prefix = endpoint === 'all' ? 'pipe__' : ''
      const { taskId } = (await client.request('tools/call', call(`${prefix}task`, {})))['result'].task as Json
      t.match((await client.request('tasks/cancel', { taskId }))['result'], {
        taskId,
        status: 'cancelled',
        ttl: 60_000,
        createdAt: String,
        lastUpdatedAt: String
      })
      await finish(client, prefix)
      t.match((await client.request('tasks/get', { taskId }))['result'], { taskId, status: 'cancelled' })
      t.match(await client.request('tasks/result', { taskId }), { error: { code: -32603, message: /cancelled/ } })
      t.match(await client.request('tasks/cancel', { taskId }), { error: { code: -32602 } })
    })
  }
}

t.test('a task that needs input asks the client that waits for its result, once', async (t) => {
  for (const transport of legacyTransports) {
    const client = await answeringClient(acme.url(), keyOf.ada, transport, '2025-11-25', allCapabilities)
    const { taskId } = (await client.request('tools/call', call('confirm', {})))['result'].task as Json
    t.match((await client.request('tasks/get', { taskId }))['result'], { status: 'input_required' })
    t.notOk('inputRequests' in (await client.request('tasks/get', { taskId }))['result'])
    const [first, second] = [
      await client.start('tasks/result', { taskId }),
      await client.start('tasks/result', { taskId })
    ]
    const questions = () =>
      new Map(
        [...first.messages(), ...second.messages()]
          .filter(({ method }) => method === 'elicitation/create')
          .map((message) => [message['id'] as string, message])
      )
    const question = await until('the question', () => [...questions().values()][0])
    t.match(question['params'], { message: 'who?', _meta: { [related]: { taskId } } })
    const before = up.server.requests('tasks/get').length
    await until('the other one has looked again', () => up.server.requests('tasks/get').length > before + 3)
    t.equal(questions().size, 1)
    await client.answer(question, { action: 'accept', content: { name: 'ada' } })
    for (const running of [first, second])
      t.same(JSON.parse((await running.final())['result'].content[0].text), {
        who: { action: 'accept', content: { name: 'ada' } }
      })
    t.equal(questions().size, 1)
    t.equal(
      up.server
        .requests('tasks/update')
        .filter(({ params }) => (params as Json)['taskId'] === [...up.server.tasks.all.keys()].at(-1)).length,
      1
    )
    client.close()
  }
})

t.test(
  'a client that wants no task waits for the result, gets its progress and answers its server requests',
  async (t) => {
    for (const transport of legacyTransports) {
      for (const revision of legacyRevisions) {
        const client = await answeringClient(acme.url(), keyOf.ada, transport, revision, allCapabilities)
        const made = up.server.tasks.all.size
        // Below 2025-11-25 the parameter means nothing.
        const running = await client.start('tools/call', {
          ...call('task', revision < '2025-11-25' ? {} : undefined),
          _meta: { progressToken: 'p' }
        })
        const task = await until(
          'the task',
          () => up.server.tasks.all.size > made && [...up.server.tasks.all.values()].at(-1)
        )
        for (const message of ['half', 'nearly']) {
          ;(task as unknown as Json)['statusMessage'] = message
          await until(
            'progress',
            () =>
              running.messages().filter(({ method }) => method === 'notifications/progress').length ===
              (message === 'half' ? 1 : 2)
          )
        }
        const progress = running
          .messages()
          .filter(({ method }) => method === 'notifications/progress')
          .map(({ params }) => params as Json)
        const text = (message: string): Json => (revision < '2025-03-26' ? {} : { message })
        t.same(
          progress,
          [
            { progressToken: 'p', progress: 1, ...text('half') },
            { progressToken: 'p', progress: 2, ...text('nearly') }
          ],
          revision
        )
        up.server.tasks.finish({ content: [{ type: 'text', text: 'made' }], structuredContent: [1] })
        const { result } = (await running.final()) as { result: Json }
        t.match(result, { content: [{ text: 'made' }] })
        t.same(result['structuredContent'], revision < '2025-06-18' ? undefined : { result: [1] })
        t.notOk(related in ((result['_meta'] as Json | undefined) ?? {}))

        const confirm = await client.start('tools/call', call('confirm'))
        if (revision < '2025-06-18') {
          t.match((await confirm.final())['result'], { isError: true, content: [{ text: /elicitation/ }] })
          await until('its end', () => [...up.server.tasks.all.values()].at(-1)?.status === 'cancelled')
        } else {
          const [question] = (await confirm.serverRequests()) as [Json]
          t.notOk(question['params']._meta)
          await client.answer(question, { action: 'decline' })
          t.same(JSON.parse((await confirm.final())['result'].content[0].text), { who: { action: 'decline' } })
        }
        client.close()
      }
    }
  }
)

t.test(
  'a task that nobody waits for any more is cancelled; one that fails, or is cancelled by its server, ends the call',
  async (t) => {
    for (const transport of legacyTransports) {
      const client = await answeringClient(acme.url(), keyOf.ada, transport, '2025-11-25', allCapabilities)
      const newest = () => [...up.server.tasks.all.values()].at(-1)
      const start = async () => {
        const made = up.server.tasks.all.size
        const running = await client.start('tools/call', call('task'))
        await until('the task', () => up.server.tasks.all.size > made)
        return running
      }
      const given = await start()
      await client.notify('notifications/cancelled', { requestId: given.id })
      await until('its end', () => newest()?.status === 'cancelled')

      const failing = await start()
      Object.assign(newest() ?? {}, {
        status: 'failed',
        error: { code: -32050, message: 'it broke', data: { kept: true } }
      })
      t.match(await failing.final(), { error: { code: -32050, message: 'it broke', data: { kept: true } } })
      const reserved = await start()
      Object.assign(newest() ?? {}, {
        status: 'failed',
        error: { code: -32021, message: 'no', data: { requiredCapabilities: { x: {} } } }
      })
      t.match(await reserved.final(), { result: { isError: true } })
      const cancelled = await start()
      Object.assign(newest() ?? {}, { status: 'cancelled' })
      t.match(await cancelled.final(), { error: { code: -32603, message: /cancelled/ } })

      const asking = await client.start('tools/call', call('confirm'))
      const [question] = (await asking.serverRequests()) as [Json]
      await client.refuse(question, { code: -1, message: 'no' })
      t.match(await asking.final(), { error: { code: -1 } })
      await until('its end', () => newest()?.status === 'cancelled')
      client.close()
    }
  }
)

t.test('an answer of the server that is lost on the way is asked for again; the call is not', async (t) => {
  const client = await answeringClient(acme.url(), keyOf.ada, 'Streamable HTTP', '2025-11-25')
  const before = up.server.requests('tools/call', 'task').length
  up.override(
    ({ message }) => message?.['method'] === 'tasks/get',
    (response) => {
      response.socket?.destroy()
    },
    2
  )
  const running = await client.start('tools/call', call('task'))
  await until('the task', () => up.server.requests('tools/call', 'task').length > before)
  up.server.tasks.finish({ content: [{ type: 'text', text: 'made' }] })
  t.match((await running.final())['result'], { content: [{ text: 'made' }] })
  t.equal(up.server.requests('tools/call', 'task').length, before + 1)
})

t.test('ids that are none', async (t) => {
  const client = await answeringClient(acme.url(), keyOf.ada, 'Streamable HTTP', '2025-11-25')
  for (const taskId of ['', 'x', 'as.x', 'own.x']) {
    for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel'])
      t.match(await client.request(method, { taskId }), { error: { code: -32602 } }, `${method} ${taskId}`)
  }
  t.match(await client.request('tasks/list'), { error: { code: -32601 } }, 'not offered')
})

t.test('a server of both eras that has tasks in the newer one only: what is offered is kept', async (t) => {
  const both = await startModern({ legacy: true })
  t.teardown(() => both.close())
  const made = await acmeGateway(t, { upstreams: { up: { type: 'http', url: both.url } } })
  const client = await answeringClient(made.url(), keyOf.ada, 'Streamable HTTP', '2025-11-25', allCapabilities)
  t.ok(client.capabilities['tasks'])
  const { task } = (await client.request('tools/call', call('echo', {}, { a: 1 })))['result'] as { task: Json }
  t.match(task, { status: 'completed' })
  const { taskId } = task
  t.match((await client.request('tasks/get', { taskId }))['result'], { taskId, status: 'completed' })
  t.match((await client.request('tasks/result', { taskId }))['result'], {
    content: [{}],
    _meta: { [related]: { taskId } }
  })
  t.match(await client.request('tasks/cancel', { taskId }), { error: { code: -32602 } })
  const received = both.legacy?.received.find(({ method }) => method === 'tools/call') as Json
  t.notOk('task' in received['params'], 'it was called in the older one, which knows no such parameter')
  t.equal(both.server.requests('tools/call').length, 0)
})
