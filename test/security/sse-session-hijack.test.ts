// Cases 53 to 56 at the door of HTTP+SSE: the id in the messages URL travels in URLs, so it leaks more easily than a header. In the wrong
// hands, or at the wrong door, it is an unknown one.

import t from 'tap'
import { acme, credentials, initializeBody, keyOf } from '../kit/acme.ts'
import { legacyClient, send } from '../kit/client.ts'
import { oldSseClient, openSse, sseUrl } from '../kit/oldsse.ts'

const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
const cancel = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"slow"}}'
const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

async function tries (url: string, authorization: string, question: string): Promise<unknown[]> {
  const answer = JSON.stringify({ jsonrpc: '2.0', id: question, result: { model: 'forged' } })
  const results: unknown[] = []
  for (const body of [ping, cancel, answer, `[${ping}]`, initializeBody()]) {
    const { status, text } = await send(url, { headers: { ...json, authorization }, body })
    results.push([status, text.replace(/"id":1,/, '')])
  }
  return results
}

for (const kind of credentials) {
  t.test(`another user of the tenant, by ${kind}, neither speaks nor cancels nor answers in it`, async (t) => {
    const house = await acme(t, { script: { answers: 'sse' } })
    const ada = await oldSseClient(house.url(), await house.bearer(kind), '2025-03-26', { sampling: {} })
    await ada.post({ jsonrpc: '2.0', id: 'slow', method: 'tools/call', params: { name: 'slow', _meta: { progressToken: 's' } } })
    await ada.next('a call in flight', ({ method }) => method === 'notifications/progress')
    const asking = ada.request('tools/call', { name: 'ask', arguments: { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } } })
    const question = await ada.next('an open question', ({ method }) => method === 'sampling/createMessage')

    const bob = `Bearer ${await house.bearer(kind, 'bob')}`
    const invented = ada.messagesUrl.replace(/=.*/, `=${'x'.repeat(43)}`)
    const refused = await tries(ada.messagesUrl, bob, question.id)
    t.ok(refused.every((result) => Array.isArray(result) && result[0] === 404))
    t.same(refused, await tries(invented, bob, question.id), 'to the byte as if it never was')
    t.same(await tries(ada.messagesUrl, `Bearer ${await house.bearer(kind === 'JWT' ? 'API key' : 'JWT')}`, question.id), refused, 'the same person by another credential is another one')
    for (const headers of [json, { ...json, authorization: 'Bearer nothing' }, { ...json, cookie: `token=${keyOf.ada}` }]) t.equal((await send(ada.messagesUrl, { headers, body: ping })).status, 401)
    t.equal((await send(`${ada.messagesUrl}&access_token=${keyOf.ada}`, { headers: json, body: ping })).status, 401)

    await ada.post({ jsonrpc: '2.0', id: question.id, result: { role: 'assistant', content: { type: 'text', text: 'x' }, model: 'real' } })
    t.match(JSON.parse((await asking).result.content[0].text), { result: { model: 'real' } }, 'while ada herself answers')
    house.upstream.server.release()
    t.match(await ada.next('her call', ({ id }) => id === 'slow'), { result: { content: [{ text: 'slow is done' }] } })
    t.equal((await send(ada.messagesUrl, { headers: { ...json, authorization: `Bearer ${await house.bearer(kind)}` }, body: ping })).status, 202, 'also with a fresh token')
    ada.close()
  })
}

t.test('an id of one door is nothing at the other, even for its owner', async (t) => {
  const house = await acme(t)
  const authorization = `Bearer ${keyOf.ada}`
  const sse = await oldSseClient(house.url(), keyOf.ada)
  const http = await legacyClient(house.url(), keyOf.ada)
  const id = new URL(sse.messagesUrl).searchParams.get('sessionId') ?? ''
  for (const method of ['POST', 'GET', 'DELETE']) {
    const answer = await send(house.url(), { method, headers: { ...json, authorization, 'mcp-session-id': id }, ...(method === 'POST' ? { body: ping } : {}) })
    t.equal(answer.status, 404, method)
  }
  const messages = sse.messagesUrl.replace(/=.*/, '=')
  t.equal((await send(messages + http.sessionId, { headers: { ...json, authorization }, body: ping })).status, 404)
  t.equal((await send(messages.split('?')[0] ?? '', { headers: { ...json, authorization, 'mcp-session-id': id }, body: ping })).status, 400, 'nor in the header of the other')
  t.equal((await send(messages + id, { headers: { ...json, authorization }, body: ping })).status, 202)
  t.equal((await http.request('ping')).status, 200)
  sse.close()
})

t.test('an id belongs to one endpoint of one tenant, and to one stream', async (t) => {
  const key = 'gh_key_of_beta_0123456789'
  const house = await acme(t, { tenants: { beta: { auth: { keys: [{ name: 'ada', key }] }, upstreams: { up: { command: 'true' } } } } })
  const ada = await oldSseClient(house.url(), keyOf.ada)
  const { search } = new URL(ada.messagesUrl)
  const at = async (url: string, token: string): Promise<number> => (await send(url.replace(/mcp$/, `messages${search}`), { headers: { ...json, authorization: `Bearer ${token}` }, body: ping })).status
  t.equal(await at(house.url('files'), keyOf.ada), 404)
  t.equal(await at(house.url('default', 'beta'), key), 404)
  t.equal(await at(house.url('default', 'beta'), keyOf.ada), 401)
  t.equal(await at(house.url(), key), 401)
  t.equal(await at(house.url(), keyOf.ada), 202)
  for (const near of [search.slice(0, -1), `${search}A`, search.toUpperCase(), `${search}%00`, search.replace('=', '=%20')]) {
    t.equal((await send(ada.messagesUrl.replace(search, near), { headers: ada.headers, body: ping })).status, near === search.toUpperCase() ? 400 : 404, near.slice(11))
  }
  ada.close()
})

t.test('ids are long, random and never used again; one cannot be chosen', async (t) => {
  const house = await acme(t)
  const streams = await Promise.all(Array.from({ length: 50 }, () => openSse(`${sseUrl(house.url())}?sessionId=${'A'.repeat(43)}`, keyOf.ada, { 'mcp-session-id': 'A'.repeat(43) })))
  const ids = streams.map(({ messagesUrl }) => new URL(messagesUrl).searchParams.get('sessionId') ?? '')
  t.equal(new Set(ids).size, 50)
  for (const id of ids) t.equal(Buffer.from(id, 'base64url').length, 32)
  t.notOk(house.log.some((line) => ids.some((id) => JSON.stringify(line).includes(id))), 'and in no line of the log')
  for (const stream of streams) stream.close()
})
