// Attack: errors are provoked to learn what is inside. An error says what happened and what to do, but no stack, path,
// address, key or credential.

import t from 'tap'
import { acmeGateway, keyOf } from '../kit/acme-gateway.ts'
import { legacyClient, send } from '../kit/client.ts'
import { isMethod } from '../kit/upstream.ts'

const inside =
  /node_modules|\/src\/|\.ts\b|\bat [\w.]+ \(|\/tmp\/|\/home\/|127\.0\.0\.1|ENOENT|spawn|sqlite|[Rr]edis|canary|[a-z]Error\b|undefined|\[object/

t.test('no error shows a stack, path, address, key or credential', async (t) => {
  const acme = await acmeGateway(t, {
    upstreams: {
      dead: { type: 'http', url: 'http://127.0.0.1:9/canary-path?canary=1', headers: { 'X-Key': 'canary' } },
      missing: { command: '/nowhere/canary-command', args: ['canary'], env: { CANARY: 'canary' } },
      dying: { command: process.execPath, args: ['-e', 'console.error("canary"); process.exit(3)'] }
    },
    endpoints: {
      default: { upstreams: ['dead', 'missing', 'dying'] },
      dead: { upstreams: ['dead'], prefix: '' },
      missing: { upstreams: ['missing'], prefix: '' },
      dying: { upstreams: ['dying'], prefix: '' }
    },
    limits: { coldStartMs: 300 }
  })
  for (const endpoint of ['default', 'dead', 'missing', 'dying']) {
    const client = await legacyClient(acme.url(endpoint), keyOf.ada)
    for (const [method, params] of [
      ['tools/list'],
      ['tools/call', { name: 'dead__echo' }],
      ['resources/read', { uri: 'x:y' }],
      ['resources/read', { uri: 'gatehouse://dead/x:y' }],
      ['resources/read', { uri: 'gatehouse://missing/x:y' }],
      ['resources/read', { uri: 'gatehouse://dying/x:y' }],
      ['prompts/get', { name: 'x' }],
      ['completion/complete', { ref: { type: 'ref/resource', uri: 'gatehouse://dying/x:y' }, argument: {} }]
    ] as const) {
      const answer = await client.request(method, params)
      t.equal(answer.status, 200)
      t.notMatch(answer.text.replaceAll('gatehouse://', ''), inside, `${endpoint} ${method} ${JSON.stringify(params)}`)
    }
  }
})

t.test('the nonsense that an upstream sends is not quoted', async (t) => {
  for (const body of [
    '<html>canary</html>',
    '{"canary"',
    '',
    '"canary"',
    '[{"canary":1}]',
    '{"jsonrpc":"2.0","id":"canary","result":{}}',
    '{"jsonrpc":"2.0","id":null,"error":"canary"}'
  ]) {
    const acme = await acmeGateway(t)
    const client = await legacyClient(acme.url(), keyOf.ada)
    acme.upstream.override(isMethod('tools/call'), (response) => {
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(body)
    })
    const answer = await client.request('tools/call', { name: 'echo' }, { id: 1 })
    t.match(answer.json, { id: 1, error: { code: -32603 } }, body)
    t.notMatch(answer.text, inside)
    await acme.close()
  }
})

t.test('refusals before authentication show nothing either', async (t) => {
  const acme = await acmeGateway(t)
  const { headers } = await legacyClient(acme.url(), keyOf.ada)
  const told: string[] = []
  for (const body of [
    '{canary',
    '{"canary":1}',
    '"canary"',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":nope}}}'
  ])
    told.push((await send(acme.url(), { headers, body })).text)
  for (const path of ['/%zz', '/t/%ff/mcp', '/nothing', `/t/${'a'.repeat(300)}/mcp`])
    told.push(
      (await acme.exchange(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${acme.port}\r\nConnection: close\r\n\r\n`)).text
    )
  for (const line of ['BAD', 'GET / HTTP/1.1\r\nHost: x\r\nBad Header: canary'])
    told.push((await acme.exchange(`${line}\r\n\r\n`)).text)
  for (const text of told) t.notMatch(text.replace('unknown member "canary"', ''), new RegExp(`${inside.source}|FST_`))
})
