// Attack: a body that is no valid UTF-8, or begins with a byte order mark, so that a check and the upstream would read
// different text.

import t from 'tap'
import { acmeGateway, keyOf } from '../kit/acme-gateway.ts'
import { legacyClient, send } from '../kit/client.ts'

t.test('a body is valid UTF-8 without a byte order mark', async (t) => {
  const acme = await acmeGateway(t)
  const { headers } = await legacyClient(acme.url(), keyOf.ada)
  const call = (bytes: Buffer) =>
    Buffer.concat([
      Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":"'),
      bytes,
      Buffer.from('"}}}')
    ])
  const post = (body: Buffer) => send(acme.url(), { headers, body })

  for (const [what, bytes] of [
    ['a lone continuation', [0x80]],
    ['an overlong NUL', [0xc0, 0x80]],
    ['an overlong quote', [0xc0, 0xa2]],
    ['an encoded surrogate', [0xed, 0xa0, 0x80]],
    ['a surrogate pair in bytes', [0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80]],
    ['latin-1', [0xe9]],
    ['a cut sequence', [0xf0, 0x9f, 0x98]],
    ['0xFF', [0xff]],
    ['beyond Unicode', [0xf5, 0x80, 0x80, 0x80]]
  ] as const) {
    const answer = await post(call(Buffer.from(bytes)))
    t.equal(answer.status, 400, what)
    t.equal(answer.json.error.code, -32700)
  }
  const plain = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
  t.equal(
    (await post(Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(plain)]))).status,
    400,
    'a byte order mark'
  )
  t.equal((await post(Buffer.from(plain, 'utf16le'))).status, 400, 'UTF-16')
  t.equal(
    (await post(Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(plain, 'utf16le')]))).status,
    400,
    'UTF-16 with a mark'
  )
  t.equal((await post(Buffer.from(`${plain}\0`))).status, 400, 'a NUL behind it')
  t.equal(acme.upstream.server.calls('echo'), 0)

  const all = 'ü 漢字 \u{1f600} \u2028 \u0085 \ufeff \u200b'
  t.equal(
    (await post(call(Buffer.from(all)))).json.result.structuredContent.arguments.a,
    all,
    'valid UTF-8 arrives unchanged'
  )
  const escaped = await post(call(Buffer.from('a\\u0000b\\ud800c')))
  t.equal(
    escaped.json.result.structuredContent.arguments.a,
    'a\0b\ud800c',
    'NUL and lone surrogates as escapes are data'
  )
})
