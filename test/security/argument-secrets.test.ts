// Attack: a caller has a tool say the arguments that the endpoint fills in, which come from references because they are
// secrets.

import t from 'tap'
import { join } from 'node:path'
import { stdioServer } from '../abuse/kit.ts'
import { legacyClient } from '../kit/client.ts'
import { gateway, key } from '../kit/gateway.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { startModern } from '../kit/modern-server.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'

const word = 'correct horse battery'
const password = 'p4ss/of"acme'
const leak = /correct horse|p4ss/
const inputSchema = { type: 'object', properties: { word: { type: 'string' }, dsn: { type: 'string' } } }
const tools = ['echo', 'rpcerror'].map((name) => ({ name, inputSchema }))

t.test('what an endpoint takes from a reference, no result, error, list or log line shows', async (t) => {
  const folder = t.testdir({ word: `${word}\n`, password })
  const reference = (name: string): string => '${file:' + join(folder, name) + '}'
  const [older, newer] = [await startUpstream({ tools }), await startModern({ tools })]
  t.teardown(() => Promise.all([older.close(), newer.close()]))
  const filled = {
    fixed: { word: reference('word'), deep: { list: [reference('password')] }, team: 'sales of acme' },
    defaults: { dsn: `db://acme:${reference('password')}@db.example/x`, plain: 'shown as it is' }
  }
  const acme = await gateway(t, {
    upstreams: {
      older: { type: 'http', url: older.url },
      newer: { type: 'http', url: newer.url },
      child: stdioServer()
    },
    endpoints: {
      default: {
        upstreams: ['older', 'newer', 'child'],
        tools: {
          'older/echo': filled,
          'newer/echo': filled,
          'older/rpcerror': { fixed: { message: reference('word'), data: { word: reference('word') } } },
          'child/stderr': { fixed: { text: `the ${reference('word')}\n` } }
        }
      }
    }
  })
  const session = await legacyClient(acme.url(), key)
  const doors = [
    (method: string, params: Record<string, unknown>) => session.request(method, params),
    (method: string, params: Record<string, unknown>) => modernRequest(acme.url(), method, params, { token: key })
  ]
  for (const ask of doors) {
    const listed = await ask('tools/list', {})
    t.notMatch(listed.text, leak)
    t.match(listed.text, 'older__echo')
    for (const name of ['older__echo', 'newer__echo']) {
      const { text, json } = await ask('tools/call', { name, arguments: { more: [word] } })
      t.notMatch(text, leak, name)
      t.match(json.result.structuredContent.arguments, {
        word: '***',
        deep: { list: ['***'] },
        dsn: '***',
        team: 'sales of acme',
        plain: 'shown as it is'
      })
      const own = await ask('tools/call', { name, arguments: { dsn: 'db://own' } })
      t.match(own.json.result.structuredContent.arguments, { dsn: 'db://own' }, 'a caller may send its own')
    }
    const refused = await ask('tools/call', { name: 'older__rpcerror', arguments: {} })
    t.notMatch(refused.text, leak)
    t.match(refused.json, { error: { message: /\*\*\*|does not have/ } })
  }
  const sent = older.seen.flatMap(({ message }) => {
    const { name, arguments: args } = (message?.['params'] ?? {}) as Record<string, unknown>
    return name === 'echo' ? [args] : []
  })
  const dsn = `db://acme:${password}@db.example/x`
  t.match(sent[0], { word, deep: { list: [password] }, dsn }, 'the server gets them')

  t.match((await session.request('tools/call', { name: 'child__stderr', arguments: {} })).json, { result: {} })
  await until('the line of the child is logged', () => /\*\*\*|correct horse/.test(JSON.stringify(acme.log)))
  t.notMatch(JSON.stringify(acme.log), leak)
})

t.test('a default that is written as it is stays in the schema, and other servers are not masked', async (t) => {
  const folder = t.testdir({ word })
  const [one, two] = [await startUpstream({ tools }), await startUpstream({ tools })]
  t.teardown(() => Promise.all([one.close(), two.close()]))
  const acme = await gateway(t, {
    upstreams: { one: { type: 'http', url: one.url }, two: { type: 'http', url: two.url } },
    endpoints: {
      default: {
        upstreams: ['one', 'two'],
        tools: { 'one/echo': { defaults: { word: '${file:' + join(folder, 'word') + '}', dsn: 'that of all' } } }
      }
    }
  })
  const session = await legacyClient(acme.url(), key)
  const [tool] = (await session.request('tools/list')).json.result.tools
  t.same(tool.inputSchema.properties, { word: { type: 'string' }, dsn: { type: 'string', default: 'that of all' } })
  const { json } = await session.request('tools/call', { name: 'two__echo', arguments: { said: word } })
  t.match(json.result.structuredContent.arguments, { said: word })
})
