// Tools that work only as tasks of 2025-11-25, and clients of older revisions, which know no tasks: the gateway follows
// the task for them.

import t from 'tap'
import { allCapabilities, type Json } from '../kit/server-request.ts'
import { acmeGateway, keyOf } from '../kit/acme-gateway.ts'
import { legacyTransports, legacyRevisions, answeringClient } from '../kit/answering-client.ts'
import { httpTaskServer, made, stdioTaskServer } from '../kit/task-server.ts'
import { startUpstream } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'

const other = await startUpstream()
t.teardown(() => other.close())
const acme = await acmeGateway(t, {
  upstreams: { up: await httpTaskServer(t), pipe: stdioTaskServer, other: { type: 'http', url: other.url } },
  endpoints: { default: { upstreams: ['up', 'other'] }, pipe: { upstreams: ['pipe', 'other'] } }
})
const older = legacyRevisions.filter((revision) => revision < '2025-11-25')

for (const [endpoint, prefix] of [
  ['default', 'up__'],
  ['pipe', 'pipe__']
] as const) {
  for (const transport of legacyTransports) {
    t.test(
      `endpoint ${endpoint}, ${transport}: the call lasts as long as the task, and gets its progress`,
      async (t) => {
        for (const revision of older) {
          const client = await answeringClient(acme.url(endpoint), keyOf.ada, transport, revision, allCapabilities)
          // The parameter means nothing below 2025-11-25.
          for (const more of [{}, { task: {} }]) {
            const running = await client.start('tools/call', {
              name: `${prefix}toil`,
              arguments: {},
              _meta: { progressToken: 'p' },
              ...more
            })
            const progress = await until('progress', () =>
              running.messages().find(({ method }) => method === 'notifications/progress')
            )
            t.same(progress['params'], {
              progressToken: 'p',
              progress: 1,
              ...(revision > '2024-11-05' && { message: 'toil is under way' })
            })
            t.match(await client.request('tools/call', { name: `${prefix}finish`, arguments: {} }), {
              result: { content: [{ text: 'finished' }] }
            })
            const answer = await running.final()
            t.match(answer['result'], { content: made.content.slice(0, 1) }, revision)
            t.notMatch(
              JSON.stringify([running.messages(), answer]),
              /related-task|taskId|tasks\//,
              'of tasks it hears nothing'
            )
          }
          client.close()
        }
      }
    )

    t.test(
      `endpoint ${endpoint}, ${transport}: server requests of the task reach the client during the call`,
      async (t) => {
        for (const revision of older) {
          const client = await answeringClient(acme.url(endpoint), keyOf.ada, transport, revision, allCapabilities)
          const running = await client.start('tools/call', { name: `${prefix}confirm`, arguments: {} })
          if (revision < '2025-06-18')
            t.match(
              (await running.final())['result'],
              { isError: true },
              "the server's own, since this revision has no elicitation"
            )
          else {
            const [question] = (await running.serverRequests()) as [Json]
            t.match(question, { method: 'elicitation/create', params: { message: /Sure\?/ } })
            t.notMatch(JSON.stringify(question), /related-task/)
            await client.answer(question, { action: 'accept', content: { sure: true } })
            t.same(JSON.parse((await running.final())['result'].content[0].text), {
              action: 'accept',
              content: { sure: true }
            })
          }
          client.close()
        }
      }
    )

    t.test(
      `endpoint ${endpoint}, ${transport}: a client of 2025-11-25 is told to ask for a task, and gets one when it does`,
      async (t) => {
        const client = await answeringClient(acme.url(endpoint), keyOf.ada, transport, '2025-11-25', allCapabilities)
        const plain = await client.request('tools/call', { name: `${prefix}toil`, arguments: {} })
        t.ok(plain['error']?.['code'] === -32601 || plain['result']?.isError === true, 'in the words of the server')
        t.match(await client.request('tools/call', { name: `${prefix}toil`, arguments: {}, task: {} }), {
          result: { task: { status: 'working' } }
        })
        client.close()
      }
    )
  }
}
