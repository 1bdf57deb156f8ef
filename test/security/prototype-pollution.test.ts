// Attack: `__proto__`, `constructor` and the like as names in data. They reach the upstream as they were sent and
// change nothing here.

import t from 'tap'
import { acmeGateway, keyOf } from '../kit/acme-gateway.ts'
import { legacyClient, send } from '../kit/client.ts'

const names = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'valueOf',
  'hasOwnProperty',
  '__defineGetter__',
  'toJSON',
  'then'
]

t.test('hostile names in every place of a message are data', async (t) => {
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada)
  const { headers } = client
  const post = (body: string) => send(acme.url(), { headers, body })

  const args = `{"__proto__":{"polluted":1},"\\u005f\\u005fproto__2":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"toJSON":"x","then":1,"a":{"__proto__":{"polluted":1}}}`
  const echoed = await post(
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":${args},"__proto__":{"name":"fail"},"_meta":{"__proto__":{"progressToken":1}}}}`
  )
  t.same(JSON.parse(echoed.json.result.content[0].text), JSON.parse(args), 'arguments arrive as they were sent')
  t.ok(echoed.json.result.content[0].text.startsWith('{"__proto__":{"polluted":1}'))

  for (const name of names) {
    t.equal((await client.request('tools/call', { name })).json.error.code, -32602, `tool ${name}`)
    t.equal((await client.request('prompts/get', { name })).json.error.code, -32602, `prompt ${name}`)
    t.equal((await client.request(name)).json.error.code, -32601, `method ${name}`)
    t.equal((await client.request('logging/setLevel', { level: name })).json.error.code, -32602, `level ${name}`)
    t.equal((await client.request('tools/list', { cursor: name })).json.error.code, -32602, `cursor ${name}`)
    t.same(
      (await client.request('ping', undefined, { id: name })).json,
      { jsonrpc: '2.0', id: name, result: {} },
      `id ${name}`
    )
    t.equal((await post(`{"jsonrpc":"2.0","id":1,"method":"ping","${name}":{}}`)).status, 400, `member ${name}`)
    t.equal(
      (
        await send(acme.url(), {
          headers: { ...headers, [name]: 'x' },
          body: '{"jsonrpc":"2.0","id":1,"method":"ping"}'
        })
      ).status,
      200,
      `header ${name}`
    )
    t.equal((await send(`${acme.publicUrl}/t/${name}/mcp`, { headers, body: '{}' })).status, 404, `tenant ${name}`)
    t.equal(
      (
        await send(acme.url(), {
          headers: { ...headers, 'mcp-session-id': name },
          body: '{"jsonrpc":"2.0","id":1,"method":"ping"}'
        })
      ).status,
      404,
      `session ${name}`
    )
  }
  t.equal(({} as Record<string, unknown>)['polluted'], undefined)
  t.same(Object.keys(Object.prototype), [])
  t.notOk(
    acme.log.some(({ level }) => Number(level) >= 50),
    'and nothing failed inside'
  )
})

t.test('hostile names from an upstream are data as well', async (t) => {
  const tool = (json: string) => JSON.parse(json) as unknown
  const acme = await acmeGateway(t, {
    script: {
      tools: [
        tool(
          '{"name":"constructor","inputSchema":{"type":"object","__proto__":{"polluted":1}},"__proto__":{"polluted":1}}'
        ),
        tool('{"name":"__proto__","inputSchema":{}}'),
        tool('{"name":"toString","inputSchema":{}}')
      ]
    }
  })
  const client = await legacyClient(acme.url(), keyOf.ada)
  const { tools } = (await client.request('tools/list')).json.result as { tools: Array<{ name: string }> }
  t.same(
    tools.map(({ name }) => name),
    ['constructor', 'toString']
  )
  t.equal(({} as Record<string, unknown>)['polluted'], undefined)
  t.match(
    (await client.request('tools/call', { name: 'constructor' })).json.error,
    { code: -32602, message: 'Unknown tool: constructor' },
    'a listed name is called at the upstream, which does not know it'
  )
  t.equal(acme.upstream.server.calls('constructor'), 1)
  await client.request('tools/call', { name: 'valueOf' })
  t.equal(acme.upstream.server.calls('valueOf'), 0, 'an unlisted one is not')
})
