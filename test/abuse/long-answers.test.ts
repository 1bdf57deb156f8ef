// Attack: answers so long that to write them as JSON keeps the event loop for a second. Instead, they are written in
// steps.

import type { OutgoingHttpHeaders } from 'node:http'
import t from 'tap'
import { legacyClient, open } from '../kit/client.ts'
import { httpSseClient } from '../kit/http-sse-client.ts'
import { modernMessage } from '../kit/modern-client.ts'
import { isCall, startUpstream } from '../kit/upstream.ts'
import { attacked, keys } from './kit.ts'

/** In one go, each of these takes several times as long. */
const maxTurnMs = 75

const upstream = await startUpstream()
t.teardown(upstream.close)
/** Each of its characters is written as two. */
const text = `"${'\\"'.repeat(7_500_000)}"`
upstream.override(
  isCall('echo'),
  (response, { message }) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(`{"jsonrpc":"2.0","id":${JSON.stringify(message?.['id'])},"result":{"content":[],"x":${text}}}`)
  },
  Infinity
)
const gateway = await attacked(t, { upstreams: { http: { url: upstream.url } }, watchTurns: true })
const call = { name: 'http__echo', arguments: {} }
const client = await legacyClient(gateway.url, keys.attacker)
const sse = await httpSseClient(`${gateway.origin}/t/acme/sse`, keys.attacker)
t.teardown(() => sse.close())

/** The test does not parse it: that takes longer than all the gateway does with it. */
async function bytesOf({ headers, body }: { headers: OutgoingHttpHeaders; body: string }): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of await open(gateway.url, { method: 'POST', headers, body })) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}
const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: call })
const ofSession = (accept: string) => bytesOf({ headers: { ...client.headers, accept }, body })
const modern = modernMessage('tools/call', call, { token: keys.attacker })

const asked: Readonly<Record<string, () => Promise<Buffer>>> = {
  'a session, as JSON': () => ofSession('application/json'),
  'a session, as a stream': () => ofSession('text/event-stream'),
  'a client of 2026-07-28, as JSON': () => bytesOf(modern),
  'a client of 2026-07-28, as a stream': () =>
    bytesOf({ ...modern, headers: { ...modern.headers, accept: 'text/event-stream' } }),
  async 'a session over HTTP+SSE'() {
    await sse.request('tools/call', call)
    return Buffer.from(sse.text())
  }
}

// Before it is hot, code takes several times as long.
await ofSession('application/json')
for (const [who, ask] of Object.entries(asked))
  t.test(`an answer of 15 MB to ${who}, arrives whole and stalls nobody`, async (t) => {
    const ms = await gateway.longestTurnMs(maxTurnMs, async () =>
      t.ok((await ask()).includes(text), 'letter by letter')
    )
    t.ok(ms < maxTurnMs, `the longest turn took ${ms} ms of CPU`)
  })
