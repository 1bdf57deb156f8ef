// Once a person has finished the page that they were sent to, at whichever process: the client that was sent there by
// error -32042 is told, and a call of 2026-07-28 that has come back goes on by itself.

import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import { type Answer, eventsOf, legacyClient, open, send } from '../kit/client.ts'
import { signedIn, submit } from '../kit/connect-page.ts'
import { gateway } from '../kit/gateway.ts'
import { modernMessage, modernRequest } from '../kit/modern-client.ts'
import { redis } from '../kit/redis.ts'
import { startUpstream } from '../kit/upstream.ts'

const upstream = await startUpstream()
t.teardown(() => upstream.close())
const own = { type: 'http', url: upstream.url, auth: { type: 'userSecret', header: 'X-Api-Key', prefix: '' } }
const { url: store } = await redis(t)
const options = {
  // One for each test: what is connected stays so.
  upstreams: { one: own, two: own, three: own, four: own },
  auth: { keys: ['ada', 'bob'].map((name) => ({ name, key: keyOf[name as 'ada'] })) },
  top: { vault: { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] } },
  store
}
// The head of a streamed answer comes early, and says that the call waits.
const quick = { overrides: { keepAliveMs: 150 } }
const [made, other] = [await gateway(t, { ...options, ...quick }), await gateway(t, options)]
const withPages = { elicitation: { url: {} } }
const echo = (upstreamName: string) => ({ name: `${upstreamName}__echo`, arguments: { text: 'hello' } })
const isComplete = ({ method }: { method?: string }): boolean => method === 'notifications/elicitation/complete'

async function connect(t: Test, link: string, secret = 'the secret'): Promise<void> {
  const { tab, page } = await signedIn(link, keyOf.ada)
  t.match((await submit(tab, page, 'secret', { secret })).html, />connected</)
}

const linkAt = ({ publicUrl }: { publicUrl: string }, link: string): string =>
  publicUrl + new URL(link).pathname + new URL(link).search

t.test('the client that was sent to the page is told, and nobody else', async (t) => {
  const clientAt = (url: string, key: string) => legacyClient(url, key, '2025-11-25', withPages)
  const [ada, elsewhere, bob] = await Promise.all([
    clientAt(made.url(), keyOf.ada),
    clientAt(other.url(), keyOf.ada),
    clientAt(made.url(), keyOf.bob)
  ])
  const [ofAda, ofElsewhere, ofBob] = await Promise.all([ada.listen(), elsewhere.listen(), bob.listen()])
  const elicitationOf = ({ json, text }: Answer): { elicitationId: string; url: string } => {
    t.equal(json.error?.code, -32042, text)
    return json.error.data.elicitations[0]
  }
  const first = elicitationOf(await ada.request('tools/call', echo('one')))
  const again = elicitationOf(await ada.request('tools/call', echo('one')))
  t.equal(again.elicitationId, first.elicitationId, 'one page of one client has one id')
  const second = elicitationOf(await ada.request('tools/call', echo('two')))
  // The same session, at a process that has not seen it.
  const body = { jsonrpc: '2.0', id: 'moved', method: 'tools/call', params: echo('three') }
  const moved = elicitationOf(await send(other.url(), { headers: ada.headers, body: JSON.stringify(body) }))
  const toBob = elicitationOf(await bob.request('tools/call', echo('one')))
  t.equal(new Set([first, second, moved, toBob].map(({ elicitationId }) => elicitationId)).size, 4)

  await connect(t, linkAt(other, first.url))
  t.same((await ofAda.next(isComplete)).params, { elicitationId: first.elicitationId })
  t.ok((await ada.request('tools/call', echo('one'))).json.result, 'the call is repeated')
  await connect(t, linkAt(made, moved.url))
  const isOfMoved = ({ params }: { params?: { elicitationId?: string } }): boolean =>
    params?.elicitationId === moved.elicitationId
  await ofAda.next(isOfMoved)
  t.equal(ofAda.messages.filter(isComplete).length, 2, 'each once, and not of what is not connected')

  // What came to the others by now is all there is.
  for (const each of [ofElsewhere, ofBob]) t.same(each.messages.filter(isComplete), [])
  await ofElsewhere.next(({ method }) => method === 'notifications/tools/list_changed')
})

t.test('a call of 2026-07-28 that comes back from the page goes on when it is finished', async (t) => {
  const modern = { token: keyOf.ada, capabilities: withPages }
  const asked = await modernRequest(made.url(), 'tools/call', echo('two'), modern)
  t.equal(asked.json.result?.resultType, 'input_required', asked.text)
  const { requestState, inputRequests } = asked.json.result
  const [[name, { params }] = ['', { params: { url: '' } }]] = Object.entries<{ params: { url: string } }>(
    inputRequests
  )
  const backWith = (action: string) => ({ ...echo('two'), requestState, inputResponses: { [name]: { action } } })

  const declined = await modernRequest(made.url(), 'tools/call', backWith('decline'), modern)
  t.match(declined.json.result, { isError: true, content: [{ text: /declined/ }] })
  const before = upstream.server.calls('echo')
  const waiting = await open(made.url(), { method: 'POST', ...modernMessage('tools/call', backWith('accept'), modern) })
  t.match(waiting.headers['content-type'], /event-stream/, 'it is answered later')
  t.equal(upstream.server.calls('echo'), before)
  await connect(t, linkAt(other, params.url))
  const chunks: Buffer[] = []
  for await (const chunk of waiting) chunks.push(chunk as Buffer)
  t.match(eventsOf(Buffer.concat(chunks).toString()), [
    { result: { resultType: 'complete', content: [{ text: /hello/ }] } }
  ])
  t.equal(upstream.server.calls('echo'), before + 1)
})

t.test('who does not finish the page is asked again', async (t) => {
  const modern = { token: keyOf.ada, capabilities: withPages }
  const hasty = await gateway(t, { ...options, overrides: { parkedMs: 50, keepAliveMs: 150 } })
  const again = ({ json }: Answer) => {
    const { requestState, inputRequests } = json.result
    const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((key) => [key, { action: 'accept' }]))
    return modernMessage('tools/call', { ...echo('four'), requestState, inputResponses }, modern)
  }
  const first = await modernRequest(hasty.url(), 'tools/call', echo('four'), modern)
  const second = await send(hasty.url(), again(first))
  t.equal(second.json.result?.resultType, 'input_required', 'after a while')
  const third = await gateway(t, { ...options, ...quick })
  const waiting = await open(third.url(), { method: 'POST', ...again(second) })
  const closing = third.close()
  const chunks: Buffer[] = []
  for await (const chunk of waiting) chunks.push(chunk as Buffer)
  const [stopped] = eventsOf(Buffer.concat(chunks).toString())
  t.match(stopped, { result: { resultType: 'input_required' } }, 'where the process stops, it does not wait')
  await closing
})
