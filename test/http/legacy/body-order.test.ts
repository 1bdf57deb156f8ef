// A large message is read in steps, while those of others are read and answered. What its own session sends after it
// waits, so that nothing about a request comes before the request.

import { connect } from 'node:net'
import t from 'tap'
import { acmeGateway, keyOf } from '../../kit/acme-gateway.ts'
import { legacyClient } from '../../kit/client.ts'

/** Megabytes of values take many steps. */
const large = `[${'1,'.repeat(240_000)}1]`
const call = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"x":${large}}}}`
const cancellation = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}'
const ping = '{"jsonrpc":"2.0","id":8,"method":"ping"}'

for (const [what, second, expected] of [
  ['a cancellation', cancellation, /^HTTP\/1\.1 200 (?:(?!"result")[^])*HTTP\/1\.1 202 (?:(?!"result")[^])*$/],
  ['a ping', ping, /^HTTP\/1\.1 200 [^]*"id":7,"result":[^]*HTTP\/1\.1 200 [^]*"id":8,"result":\{\}/]
] as const)
  t.test(`${what} that comes right after a large request does not overtake it`, async (t) => {
    const acme = await acmeGateway(t)
    const { headers } = await legacyClient(acme.url(), keyOf.ada)
    const post = (body: string, connection: string): string =>
      [
        'POST /t/acme/mcp HTTP/1.1',
        `Host: 127.0.0.1:${acme.port}`,
        ...Object.entries({
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          ...headers,
          connection,
          'content-length': body.length
        }).map(([name, value]) => `${name}: ${value}`),
        '',
        body
      ].join('\r\n')
    // Both on one connection, so that nothing but the gateway can change their order.
    const socket = connect(acme.port, '127.0.0.1')
    socket.write(post(call, 'keep-alive') + post(second, 'close'))
    let text = ''
    for await (const part of socket.setEncoding('utf8')) text += part
    t.match(text.slice(0, 20_000).replaceAll('1,', '') + text.slice(-2_000), expected)
  })
