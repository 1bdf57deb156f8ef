// A long result that nothing is changed in reaches its client as the upstream wrote it: it is not written again.

import t from 'tap'
import { acmeGateway, keyOf } from '../kit/acme-gateway.ts'
import { legacyClient } from '../kit/client.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { isCall, startUpstream } from '../kit/upstream.ts'

const token = keyOf.ada
const secret = 'tok-0123456789abcdef'
const upstream = await startUpstream()
t.teardown(upstream.close)
let result = ''
upstream.override(
  isCall('echo'),
  (response, { message }) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(`{"jsonrpc":"2.0","id":${JSON.stringify(message?.['id'])},"result":${result}}`)
  },
  Infinity
)
const acme = await acmeGateway(t, {
  upstreams: { up: { type: 'http', url: upstream.url, headers: { 'x-token': secret } } }
})
const client = await legacyClient(acme.url(), token)
const call = { name: 'echo', arguments: {} }
const asked = {
  'a session, as JSON': () => client.request('tools/call', call, { headers: { accept: 'application/json' } }),
  'a session, as a stream': () => client.request('tools/call', call, { headers: { accept: 'text/event-stream' } }),
  'a client of 2026-07-28': () => modernRequest(acme.url(), 'tools/call', call, { token })
}
const long = 'é😀\\n'.repeat(15_000)

for (const [who, ask] of Object.entries(asked))
  t.test(`a long result for ${who}`, async (t) => {
    result = `{ "content": [ {"type":"text", "text":"${long}"} ], "_meta": {"\\u0061": 1.0} }`
    const whole = await ask()
    t.ok(
      whole.text.includes(`"content":[ {"type":"text", "text":"${long}"} ]`) || whole.text.includes(result),
      'as it was'
    )
    t.equal(whole.messages.length, 1)
    t.equal(whole.messages[0].result.content[0].text, JSON.parse(`"${long}"`))
    t.match(whole.messages[0].result._meta, { a: 1 })

    result = `{"content":[{"type":"text","text":"${long}","text":"last"}],"left":"${long}"}`
    const twice = await ask()
    t.notMatch(twice.text, /"text": ?"é/, 'a member that comes twice comes once: readers differ in which they take')
    t.equal(twice.messages[0].result.content[0].text, 'last')

    result = `{"content":[{"type":"text",\n"text":"${long}"}],\r\n\r\n"left":1}`
    const lines = await ask()
    t.equal(lines.messages.length, 1, 'a line break does not end the event')
    t.equal(lines.messages[0].result.left, 1)

    result = `{"content":[{"type":"text","text":"${long}"},{"type":"text","text":"my ${secret.replace('-', '\\u002d')}"}]}`
    const masked = await ask()
    t.equal(masked.messages[0].result.content[1].text, 'my ***')
    t.equal(masked.messages[0].result.content[0].text, JSON.parse(`"${long}"`))
    t.notMatch(masked.text, '0123456789abcdef')
  })
