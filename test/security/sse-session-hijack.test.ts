// Attack: a stolen session id of HTTP+SSE, which leaks more easily since it stands in a URL. With another credential,
// or at another endpoint or transport, it is an unknown one.

import t from 'tap'
import { acmeGateway, credentials, initializeBody, keyOf } from '../kit/acme-gateway.ts'
import { legacyClient, send, withoutRequestId } from '../kit/client.ts'
import { httpSseClient, openSse, sseUrl } from '../kit/http-sse-client.ts'

const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
const cancel = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"slow"}}'
const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

async function tries(url: string, authorization: string, serverRequest: string): Promise<unknown[]> {
  const answer = JSON.stringify({ jsonrpc: '2.0', id: serverRequest, result: { model: 'forged' } })
  const results: unknown[] = []
  for (const body of [ping, cancel, answer, `[${ping}]`, initializeBody()]) {
    const { status, text } = await send(url, { headers: { ...json, authorization }, body })
    results.push([status, withoutRequestId(text).replace(/"id":1,/, '')])
  }
  return results
}

for (const kind of credentials) {
  t.test(`another user of the tenant, by ${kind}, neither speaks nor cancels nor answers in it`, async (t) => {
    const acme = await acmeGateway(t, { script: { answers: 'sse' } })
    const ada = await httpSseClient(acme.url(), await acme.bearer(kind), '2025-03-26', { sampling: {} })
    await ada.post({
      jsonrpc: '2.0',
      id: 'slow',
      method: 'tools/call',
      params: { name: 'slow', _meta: { progressToken: 's' } }
    })
    await ada.next('a call in flight', ({ method }) => method === 'notifications/progress')
    const asking = ada.request('tools/call', {
      name: 'ask',
      arguments: { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } }
    })
    const serverRequest = await ada.next('an open server request', ({ method }) => method === 'sampling/createMessage')

    const bob = `Bearer ${await acme.bearer(kind, 'bob')}`
    const invented = ada.messagesUrl.replace(/=.*/, `=${'x'.repeat(43)}`)
    const refused = await tries(ada.messagesUrl, bob, serverRequest.id)
    t.ok(refused.every((result) => Array.isArray(result) && result[0] === 404))
    t.same(refused, await tries(invented, bob, serverRequest.id), 'to the byte as if it never was')
    t.same(
      await tries(ada.messagesUrl, `Bearer ${await acme.bearer(kind === 'JWT' ? 'API key' : 'JWT')}`, serverRequest.id),
      refused,
      'the same person by another credential is another one'
    )
    for (const headers of [
      json,
      { ...json, authorization: 'Bearer nothing' },
      { ...json, cookie: `token=${keyOf.ada}` }
    ])
      t.equal((await send(ada.messagesUrl, { headers, body: ping })).status, 401)
    t.equal((await send(`${ada.messagesUrl}&access_token=${keyOf.ada}`, { headers: json, body: ping })).status, 401)

    await ada.post({
      jsonrpc: '2.0',
      id: serverRequest.id,
      result: { role: 'assistant', content: { type: 'text', text: 'x' }, model: 'real' }
    })
    t.match(
      JSON.parse((await asking).result.content[0].text),
      { result: { model: 'real' } },
      'while ada herself answers'
    )
    acme.upstream.server.release()
    t.match(await ada.next('her call', ({ id }) => id === 'slow'), { result: { content: [{ text: 'slow is done' }] } })
    t.equal(
      (
        await send(ada.messagesUrl, {
          headers: { ...json, authorization: `Bearer ${await acme.bearer(kind)}` },
          body: ping
        })
      ).status,
      202,
      'also with a fresh token'
    )
    ada.close()
  })
}

t.test('an id of one transport means nothing at the other, even for its owner', async (t) => {
  const acme = await acmeGateway(t)
  const authorization = `Bearer ${keyOf.ada}`
  const sse = await httpSseClient(acme.url(), keyOf.ada)
  const http = await legacyClient(acme.url(), keyOf.ada)
  const id = new URL(sse.messagesUrl).searchParams.get('sessionId') ?? ''
  for (const method of ['POST', 'GET', 'DELETE']) {
    const answer = await send(acme.url(), {
      method,
      headers: { ...json, authorization, 'mcp-session-id': id },
      ...(method === 'POST' ? { body: ping } : {})
    })
    t.equal(answer.status, 404, method)
  }
  const messages = sse.messagesUrl.replace(/=.*/, '=')
  t.equal((await send(messages + http.sessionId, { headers: { ...json, authorization }, body: ping })).status, 404)
  t.equal(
    (
      await send(messages.split('?')[0] ?? '', {
        headers: { ...json, authorization, 'mcp-session-id': id },
        body: ping
      })
    ).status,
    400,
    'nor in the header of the other'
  )
  t.equal((await send(messages + id, { headers: { ...json, authorization }, body: ping })).status, 202)
  t.equal((await http.request('ping')).status, 200)
  sse.close()
})

t.test('an id belongs to one endpoint of one tenant, and to one stream', async (t) => {
  const key = 'gh_key_of_beta_0123456789'
  const acme = await acmeGateway(t, {
    tenants: { beta: { auth: { keys: [{ name: 'ada', key }] }, upstreams: { up: { command: 'true' } } } }
  })
  const ada = await httpSseClient(acme.url(), keyOf.ada)
  const { search } = new URL(ada.messagesUrl)
  const at = async (url: string, token: string): Promise<number> =>
    (
      await send(url.replace(/mcp$/, `messages${search}`), {
        headers: { ...json, authorization: `Bearer ${token}` },
        body: ping
      })
    ).status
  t.equal(await at(acme.url('files'), keyOf.ada), 404)
  t.equal(await at(acme.url('default', 'beta'), key), 404)
  t.equal(await at(acme.url('default', 'beta'), keyOf.ada), 401)
  t.equal(await at(acme.url(), key), 401)
  t.equal(await at(acme.url(), keyOf.ada), 202)
  for (const near of [
    search.slice(0, -1),
    `${search}A`,
    search.toUpperCase(),
    `${search}%00`,
    search.replace('=', '=%20')
  ]) {
    t.equal(
      (await send(ada.messagesUrl.replace(search, near), { headers: ada.headers, body: ping })).status,
      near === search.toUpperCase() ? 400 : 404,
      near.slice(11)
    )
  }
  ada.close()
})

t.test('session ids are long, random and never reused, and cannot be chosen by the client', async (t) => {
  const acme = await acmeGateway(t)
  const streams = await Promise.all(
    Array.from({ length: 50 }, () =>
      openSse(`${sseUrl(acme.url())}?sessionId=${'A'.repeat(43)}`, keyOf.ada, { 'mcp-session-id': 'A'.repeat(43) })
    )
  )
  const ids = streams.map(({ messagesUrl }) => new URL(messagesUrl).searchParams.get('sessionId') ?? '')
  t.equal(new Set(ids).size, 50)
  for (const id of ids) t.equal(Buffer.from(id.replace(/^[0-9a-f]{8}-/, ''), 'base64url').length, 32)
  t.notOk(
    acme.log.some((line) => ids.some((id) => JSON.stringify(line).includes(id))),
    'and in no line of the log'
  )
  for (const stream of streams) stream.close()
})
