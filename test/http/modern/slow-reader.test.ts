// Answers of 2026-07-28 that nobody reads: what waits is bounded, whatever the call goes on saying, and whoever reads
// late misses no result.

import { type Teardown, until } from '../../kit/until.ts'
import { once } from 'node:events'
import t from 'tap'
import { open } from '../../kit/client.ts'
import { gateway, key } from '../../kit/gateway.ts'
import { modernMessage, modernRequest } from '../../kit/modern-client.ts'
import { startModern } from '../../kit/modern-server.ts'
import { dial } from '../../kit/raw-http.ts'

async function acme(t: Teardown) {
  const upstream = await startModern()
  t.teardown(() => upstream.close())
  const made = await gateway(t, {
    upstreams: { up: { type: 'http', url: upstream.url } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } },
    auth: {
      keys: [
        { name: 'test', key },
        { name: 'other', key: 'gh_another_key_0123456789' }
      ]
    }
  })
  return { made, upstream }
}

t.test('who reads late has the result at the end; of the messages before it some may be left out', async (t) => {
  const { made } = await acme(t)
  const { headers, body } = modernMessage(
    'tools/call',
    { name: 'progress', arguments: { steps: 10_000 } },
    { token: key, meta: { progressToken: 'p'.repeat(1_000) } }
  )
  const response = await open(made.url(), { method: 'POST', headers, body })
  response.pause()
  await until('the call is over', () => made.log.some(({ msg, method }) => msg === 'call' && method === 'tools/call'))
  let text = ''
  response.setEncoding('utf8').on('data', (part: string) => {
    text += part
  })
  response.resume()
  await once(response, 'close')
  const messages = text
    .split('\n\n')
    .filter((event) => event.includes('data: '))
    .map((event) => JSON.parse(event.slice(event.indexOf('data: ') + 6)))
  t.match(messages.at(-1), { id: 1, result: {} })
  const steps = messages.slice(0, -1).map((message) => message.params.progress as number)
  t.ok(steps.length > 0)
  t.same(
    steps,
    [...steps].sort((a, b) => a - b),
    'in order'
  )
})

t.test('beyond 32 MiB that wait to be read the caller is refused until it has read; others are not', async (t) => {
  const { made } = await acme(t)
  const port = Number(new URL(made.publicUrl).port)
  const { headers, body } = modernMessage(
    'tools/call',
    { name: 'big', arguments: { bytes: 14_000_000 } },
    { token: key }
  )
  const sockets = Array.from({ length: 4 }, () => {
    const socket = dial(port).pause()
    socket.write(
      [
        `POST /t/acme/mcp HTTP/1.1`,
        `Host: 127.0.0.1:${port}`,
        `Content-Length: ${Buffer.byteLength(body)}`,
        ...Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}`),
        '',
        body
      ].join('\r\n')
    )
    return socket
  })
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
  })
  await until(
    'all are answered',
    () => made.log.filter(({ msg, method }) => msg === 'call' && method === 'tools/call').length === 4
  )
  const list = (token: string) => modernRequest(made.url(), 'tools/list', {}, { token })
  await until('it is refused', async () => (await list(key)).status === 429)
  t.equal((await list('gh_another_key_0123456789')).status, 200)
  for (const socket of sockets) socket.resume()
  await until('it may ask again', async () => (await list(key)).status === 200)
})
