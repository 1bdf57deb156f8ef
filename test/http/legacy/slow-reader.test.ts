// Clients that open streams and do not read them: each costs at most about 1 MiB and is then closed, while others go
// on.

import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import t from 'tap'
import { acmeGateway, keyOf, type AcmeGateway } from '../../kit/acme-gateway.ts'
import { legacyClient, open } from '../../kit/client.ts'
import { listenEvents, readEvents } from '../../kit/events.ts'
import { until } from '../../kit/until.ts'

const mib = 1024 * 1024
const overflows = ({ log }: AcmeGateway): number =>
  log.filter(({ msg }) => msg === 'a client did not read its stream; closed').length

/** Takes the head of the answer and then reads no more. */
async function deaf(url: string, headers: IncomingMessage['headers'], body?: string): Promise<IncomingMessage> {
  const response = await open(url, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { ...headers, ...(body === undefined ? { accept: 'text/event-stream' } : {}) },
    ...(body === undefined ? {} : { body })
  })
  response.pause()
  response.on('error', () => {}) // It is cut off: that is what is tested.
  return response
}

t.test("one that does not read its session's stream is closed; another that reads gets everything", async (t) => {
  const acme = await acmeGateway(t)
  const [lazy, eager] = [await legacyClient(acme.url(), keyOf.ada), await legacyClient(acme.url(), keyOf.bob)]
  for (const client of [lazy, eager]) await client.request('tools/call', { name: 'echo' })
  await until('the upstream can be heard', () => acme.upstream.allListening())
  await deaf(acme.url(), lazy.headers as IncomingMessage['headers'])
  const stream = await listenEvents(acme.url(), eager)
  await until('it is primed', () => stream.lastId())
  const text = 'x'.repeat(256 * 1024)
  let sent = 0
  let heard = 0
  await until('the deaf one is closed', async () => {
    acme.upstream.broadcast({
      jsonrpc: '2.0',
      method: 'notifications/message',
      params: { level: 'error', data: `${sent++} ${text}` }
    })
    await until('the other one hears it', () => stream.messages().length === sent)
    heard = stream.messages().length
    return overflows(acme) === 1
  })
  // What the two kernels take in between is not ours.
  t.ok(sent * text.length < 32 * mib, `after ${Math.round((sent * text.length) / mib)} MiB`)
  t.equal(heard, sent)
  t.notOk(stream.closed)
  t.equal((await lazy.request('ping')).status, 200, 'its session is as good as before')
  stream.cut()
})

t.test('a caller that reads late gets everything all the same, in order', async (t) => {
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada)
  const steps = 1_900
  const call = JSON.stringify({
    jsonrpc: '2.0',
    id: 'big',
    method: 'tools/call',
    params: { name: 'progress', arguments: { steps }, _meta: { progressToken: 'p'.repeat(1_000) } }
  })
  const response = await deaf(acme.url(), client.headers as IncomingMessage['headers'], call)
  await until('the call is over', () => acme.log.some(({ msg, method }) => msg === 'call' && method === 'tools/call'))
  let text = ''
  response.setEncoding('utf8')
  response.on('data', (part: string) => {
    text += part
  })
  response.resume()
  await once(response, 'close')
  const messages = readEvents(text).flatMap(({ message }) => (message === undefined ? [] : [message]))
  t.same(
    messages.map(({ id, params }) => params?.progress ?? id),
    [...Array.from({ length: steps }, (_, n) => n + 1), 'big']
  )
  t.equal(overflows(acme), 0)
})
