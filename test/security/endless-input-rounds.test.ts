// Attack: a modern server answers every retry with `input_required` again, or with thousands of input requests at
// once. The rounds end with an error that says why, and the client of the session gets a bounded number of requests.

import t, { type Test } from 'tap'
import { capableClient, isServerRequest, post, type Json } from '../kit/server-request.ts'
import { postEvents } from '../kit/events.ts'
import { gateway, key } from '../kit/gateway.ts'
import { startModern } from '../kit/modern-server.ts'

const serverRequest = {
  method: 'elicitation/create',
  params: { mode: 'form', message: 'And?', requestedSchema: { type: 'object', properties: {} } }
}
const rounds = 8

/**
 * A call to a server that answers each request with this result, and what its client has been through when it is over.
 */
async function through(t: Test, result: (n: number) => Json) {
  const modern = await startModern()
  t.teardown(() => modern.close())
  let calls = 0
  modern.override(
    ({ message }) => message?.['method'] === 'tools/call',
    (response, { message }) => {
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result: result(++calls) }))
    },
    Infinity
  )
  const { url } = await gateway(t, {
    upstreams: { up: { type: 'http', url: modern.url, era: 'modern' } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } }
  })
  const client = await capableClient(url(), key)
  const stream = await postEvents(url(), client, 'the call', 'tools/call', { name: 'echo', arguments: {} })
  const answered = new Set<unknown>()
  if (stream.type?.startsWith('application/json') === true) await stream.ended
  const final = stream.closed
    ? (JSON.parse(stream.text()) as Json)
    : ((await stream.next('the end', (message: Json) => {
        for (const { id } of stream.messages().filter(isServerRequest) as Array<{ id: unknown }>) {
          if (answered.has(id)) continue
          answered.add(id)
          void post(url(), client, { id, result: { action: 'accept', content: {} } })
        }
        return message['id'] === 'the call'
      })) as Json)
  return { final, asked: answered.size, calls: () => calls, client }
}

t.test('a server that requires input for ever is sent no ninth retry', async (t) => {
  const { final, asked, calls, client } = await through(t, (n) => ({
    resultType: 'input_required',
    inputRequests: { again: serverRequest },
    requestState: `round ${n}`
  }))
  t.match(final, { error: { code: -32603, message: /more than 8 times/, data: { reason: 'upstream_protocol' } } })
  t.equal(asked, rounds)
  t.equal(calls(), rounds + 1)
  t.equal((await client.request('ping')).status, 200, 'the session goes on')
})

t.test('a server that only wants to be called again is called as often, and with a pause', async (t) => {
  const began = performance.now()
  const { final, asked, calls } = await through(t, (n) => ({
    resultType: 'input_required',
    requestState: `round ${n}`
  }))
  t.match(final, { error: { message: /more than 8 times/ } })
  t.equal(asked, 0)
  t.equal(calls(), rounds + 1)
  t.ok(performance.now() - began > 7 * 250, 'it is not hurried')
})

t.test('ten thousand input requests at once reach no client', async (t) => {
  const all = Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`k${n}`, serverRequest]))
  const { final, asked, calls } = await through(t, () => ({
    resultType: 'input_required',
    inputRequests: all,
    requestState: 's'
  }))
  t.match(final, { error: { message: /more than 32 input requests/ } })
  t.equal(asked, 0)
  t.equal(calls(), 1)
})

t.test('a server that needs eight rounds gets them', async (t) => {
  const { final, asked } = await through(t, (n) =>
    n <= rounds
      ? { resultType: 'input_required', inputRequests: { again: serverRequest }, requestState: `round ${n}` }
      : { resultType: 'complete', content: [{ type: 'text', text: 'done' }] }
  )
  t.match(final, { result: { content: [{ text: 'done' }] } })
  t.equal(asked, rounds)
})
