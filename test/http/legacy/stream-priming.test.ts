// What each revision is told so that it can resume: ids for all that speak Streamable HTTP, events without data only
// from 2025-11-25 on (2025-11-25 basic/transports "Sending Messages to the Server" 6; older parsers stumble over them).

import t from 'tap'
import { acmeGateway, keyOf } from '../../kit/acme-gateway.ts'
import { legacyClient } from '../../kit/client.ts'
import { listenEvents, openEvents, postEvents } from '../../kit/events.ts'
import { until } from '../../kit/until.ts'

const progress = { name: 'progress', arguments: { steps: 2 }, _meta: { progressToken: 'p' } }
const id = /^[cs][\w-]{12}\.\d+\.[\w-]{16}$/

t.test('2025-11-25: the stream of a call begins with an id and a time to come back after', async (t) => {
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada)
  const { text } = await client.request('tools/call', progress)
  t.match(text, /^id: [^\n]+\nretry: 1000\ndata:\n\nevent: message\nid: [^\n]+\ndata: \{/)
  const ids = [...text.matchAll(/^id: (.*)$/gm)].map(([, found = '']) => found)
  t.equal(ids.length, 4)
  for (const each of ids) t.match(each, id)
  t.equal(new Set(ids).size, 4)
  t.same(
    ids.map((each) => each.split('.')[1]),
    ['0', '1', '2', '3']
  )

  const stream = await listenEvents(acme.url(), client)
  await until('it is primed', () => stream.lastId())
  t.match(stream.text(), /^: open\n\nid: s[^\n]+\nretry: 1000\ndata:\n\n$/)
  stream.cut()
})

for (const revision of ['2024-11-05', '2025-03-26', '2025-06-18']) {
  t.test(`${revision} over Streamable HTTP: ids with the messages, and no event without data`, async (t) => {
    const acme = await acmeGateway(t)
    const client = await legacyClient(acme.url(), keyOf.ada, revision)
    const { text, messages } = await client.request('tools/call', progress)
    t.equal(messages.length, 3)
    t.equal(text.match(/^id: /gm)?.length, 3)
    t.notMatch(text, /^data:$|^retry:/m)

    const stream = await listenEvents(acme.url(), client)
    await client.request('tools/call', { name: 'echo' })
    await until('the upstream can be heard', () => acme.upstream.allListening())
    await client.request('tools/call', { name: 'grow' })
    await stream.next('the change', ({ method }) => method === 'notifications/tools/list_changed')
    t.match(stream.text(), /^: open\n\n(event: message\nid: s[^\n]+\ndata: \{[^\n]+\n\n)+$/)
    const last = stream.lastId()
    stream.cut()
    const again = await listenEvents(acme.url(), client, last)
    await until('it is open', () => again.text())
    t.match(again.text(), /^: open\n\n/)
    t.notMatch(again.text(), /^data:$|^retry:/m, 'nor when it is resumed')
    again.cut()
  })
}

t.test('a call that is silent for a second begins its stream, for clients that can be primed', async (t) => {
  const acme = await acmeGateway(t)
  const [client, old] = [
    await legacyClient(acme.url(), keyOf.ada),
    await legacyClient(acme.url(), keyOf.ada, '2025-06-18')
  ]
  const slow = { name: 'slow' }
  // The scripted server knows its calls by their upstream id alone; these move the ids of the second session out of the
  // way.
  for (let n = 0; n < 8; n++) await old.request('tools/call', { name: 'echo' })
  const older = old.request('tools/call', slow, { id: 'older' })
  const started = performance.now()
  const stream = await postEvents(acme.url(), client, 'newer', 'tools/call', slow)
  t.ok(performance.now() - started >= 900)
  t.equal(stream.type, 'text/event-stream; charset=utf-8')
  await until('it is primed', () => stream.lastId())
  t.same(stream.messages(), [])
  await until('both run', () => acme.upstream.server.calls('slow') === 2)
  acme.upstream.server.release()
  t.equal((await stream.next('the answer', (message) => message.id === 'newer')).result.content[0].text, 'slow is done')
  await stream.ended
  const answer = await older
  t.equal(answer.headers['content-type'], 'application/json', 'nothing would be won for the other')
})

t.test('a client that takes no streams gets none, however long it takes', async (t) => {
  const acme = await acmeGateway(t, { overrides: { keepAliveMs: 20 } })
  const client = await legacyClient(acme.url(), keyOf.ada)
  const answer = openEvents(acme.url(), {
    method: 'POST',
    headers: { ...client.headers, accept: 'application/json' },
    body: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}'
  })
  // By the time that the other one streams, the first could have done so long ago.
  const other = await postEvents(acme.url(), client, 2, 'tools/call', { name: 'slow' })
  t.match(other.type, /event-stream/)
  await until('both run', () => acme.upstream.server.calls('slow') === 2)
  acme.upstream.server.release()
  t.equal((await answer).type, 'application/json')
  await other.ended
})
