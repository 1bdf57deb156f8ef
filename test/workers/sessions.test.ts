// Several processes on one port are one gateway to clients of every era: whichever of them has a connection answers.

import t from 'tap'
import { legacyClient } from '../kit/client.ts'
import { key } from '../kit/gateway.ts'
import { httpSseClient } from '../kit/http-sse-client.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { ownProcess, storeOfWorkers, storesOfWorkers, workers } from './kit.ts'

const isCall = ({ msg }: Record<string, unknown>): boolean => msg === 'call'
const isNotice = ({ message }: Record<string, unknown>): boolean => message === 'notifications/roots/list_changed'
/** Each on a connection of its own, and connections go to the workers in turn. */
const texts = ['a', 'b', 'c', 'd', 'e', 'f']

for (const kind of storesOfWorkers) {
  t.test(`two workers on ${kind}`, async (t) => {
    const gateway = await workers(t, { ...ownProcess, store: await storeOfWorkers(t, kind) })
    t.equal(gateway.stdout.length, 1, 'one ready line')

    t.test('both answer the calls of one session, whose server has one process', async (t) => {
      const client = await legacyClient(gateway.mcp, key)
      const call = async (name: string): Promise<unknown> =>
        (await client.request('tools/call', { name, arguments: {} })).json.result.content[0].text
      t.match((await client.request('resources/subscribe', { uri: 'test://one' })).json, { result: {} })
      const pids: unknown[] = []
      for (const _ of texts) pids.push(await call('pid'))
      t.equal(new Set(pids).size, 1)
      // A call has its line where the session lives; what is no call, where it came.
      for (const _ of texts) t.equal((await client.notify('notifications/roots/list_changed')).status, 202)
      await gateway.logged('notices at both', () => gateway.workersOf(isNotice).length === 2)

      const stream = await client.listen()
      t.equal(await call('touch'), 'touched')
      await stream.next(({ method }) => method === 'notifications/resources/updated')
      stream.close()
      t.equal((await client.end()).status, 204)
      for (const _ of texts) t.equal((await client.request('tools/list')).status, 404, 'at either of them')
    })

    t.test('both answer a client of 2026-07-28, and one of HTTP+SSE', async (t) => {
      const modern = await modernRequest(gateway.mcp, 'tools/list', {}, { token: key })
      t.equal(modern.status, 200)
      for (const text of texts) {
        const call = { name: 'echo', arguments: { text } }
        t.match((await modernRequest(gateway.mcp, 'tools/call', call, { token: key })).text, `"text":"${text}"`)
      }
      await gateway.logged('calls at both', () => gateway.workersOf(isCall).length === 2)
      const old = await httpSseClient(gateway.mcp, key)
      for (const text of texts)
        t.match(await old.request('tools/call', { name: 'echo', arguments: { text } }), {
          result: { content: [{ text: JSON.stringify({ text }) }] }
        })
      old.close()
    })

    t.test('a signal to the primary ends all of them in order', async (t) => {
      t.same(await gateway.stop(), { code: 0, signal: null })
      t.same(
        gateway.workersOf(({ msg, code }) => msg === 'stopped' && code === 0),
        [1, 2]
      )
    })
  })
}
