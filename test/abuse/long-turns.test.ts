// Attack: messages that are long, and within every limit, so that one turn of the event loop does all that is to be done
// with them: what is masked, what is sent to an upstream, what is sent to a client that comes back. Instead, it is done
// in steps.

import t from 'tap'
import { type Answer, legacyClient, send } from '../kit/client.ts'
import { readEvents } from '../kit/events.ts'
import { type ModernSeen, startModern } from '../kit/modern-server.ts'
import { answers, round } from '../kit/rounds.ts'
import { startSseUpstream } from '../kit/sse-upstream.ts'
import { isCall, startUpstream } from '../kit/upstream.ts'
import { attacked, keys, stdioServer } from './kit.ts'

/** In one go, each of these takes several times as long. */
const maxTurnMs = 45

const secrets = Array.from({ length: 12 }, (_, at) => `s3cr3t-${at}-0123456789`)
const upstream = await startUpstream()
t.teardown(upstream.close)
const modern = await startModern()
const sse = await startSseUpstream()
t.teardown(sse.close)
t.teardown(modern.close)
const gateway = await attacked(t, {
  upstreams: {
    masked: { url: upstream.url, headers: Object.fromEntries(secrets.map((secret, at) => [`x-key-${at}`, secret])) },
    http: { url: upstream.url },
    modern: { url: modern.url },
    sse: { type: 'sse', url: sse.url },
    stdio: stdioServer()
  },
  limits: { bodyBytes: 16_000_000 },
  watchTurns: true
})
const client = await legacyClient(gateway.url, keys.attacker)

/** What the HTTP server answers to the next call. */
function answerWith(x: string): void {
  upstream.override(isCall('echo'), (response, { message }) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(`{"jsonrpc":"2.0","id":${JSON.stringify(message?.['id'])},"result":{"content":[],"x":${x}}}`)
  })
}
const accept = { accept: 'application/json' }
const echo = (name: string, args: object = {}) =>
  client.request('tools/call', { name: `${name}__echo`, arguments: args }, { headers: accept })

const withSecrets = {
  'one text': `"${`${secrets.join('x')}${'y'.repeat(800)}`.repeat(12_000)}"`,
  // Each long enough for a search of its end, none with an escape that ends the search.
  'many texts': `[${`"${secrets[3]}","${'y'.repeat(100)}",`.repeat(100_000)}1]`
}

for (const [what, text] of Object.entries(withSecrets)) {
  t.test(`secrets in a long answer of ${what} are masked, and nobody is stalled`, async (t) => {
    // Before it is hot, code takes several times as long.
    answerWith(text)
    await echo('masked')
    let shown = ''
    const ms = await gateway.longestTurnMs(maxTurnMs, async () => {
      answerWith(text)
      shown = (await echo('masked')).text
    })
    t.ok(shown.includes(secrets.reduce((all, secret) => all.replaceAll(secret, '***'), text)), 'letter by letter')
    t.ok(ms < maxTurnMs, `the longest turn took ${ms} ms of CPU`)
  })
}

t.test('a long answer of a server without secrets comes as it is', async (t) => {
  answerWith(withSecrets['many texts'])
  t.ok((await echo('http')).text.includes(withSecrets['many texts']))
})

const long = '\\"\n'.repeat(2_400_000)
const longCalls: Readonly<Record<string, () => Promise<Answer>>> = {
  async http() {
    answerWith('1')
    return await echo('http', { text: long })
  },
  stdio: () => client.request('tools/call', { name: 'stdio__raw', arguments: { text: '', long } })
}

/** In one go it takes 75 ms where these steps take 20. */
const maxWriteMs = 60

for (const [name, call] of Object.entries(longCalls)) {
  t.test(`14 MB of arguments reach a server over ${name}, and nobody is stalled`, async (t) => {
    await call()
    const ms = await gateway.longestTurnMs(maxWriteMs, async () => t.ok((await call()).json?.result !== undefined))
    t.ok(ms < maxWriteMs, `the longest turn took ${ms} ms of CPU`)
  })
}

t.test('long arguments reach their server letter by letter, over every transport', async (t) => {
  const given = { text: 'ä\u2028"\\\u2029€'.repeat(50_000), n: Array.from({ length: 50_000 }, (_, at) => [at]) }
  for (const name of ['http', 'stdio', 'modern', 'sse']) {
    const { json } = await echo(name, given)
    t.ok(JSON.stringify(json?.result?.structuredContent?.arguments) === JSON.stringify(given), name)
  }
})

t.test(
  'long requests that are written at once, and short ones between them, each reach their server whole',
  async (t) => {
    for (const name of ['http', 'stdio', 'modern', 'sse']) {
      const given = Array.from({ length: 12 }, (_, at) => `${at}`.repeat(at % 2 === 0 ? 70_000 * 2 : 1))
      const answers = await Promise.all(given.map((text) => echo(name, { text })))
      const received = answers.map(({ json }) => json?.result?.structuredContent?.arguments)
      t.ok(JSON.stringify(received) === JSON.stringify(given.map((text) => ({ text }))), name)
    }
  }
)

/** Objects of many members, each with a name of its own: to sort and to write them takes longest. */
const dense = Array.from({ length: 12 }, (_, at) =>
  Object.fromEntries(Array.from({ length: 9_000 }, (_, n) => [`k${at}_${n}`, n]))
)
/** In one go it takes more than 100 ms where these steps take 20. */
const maxStateMs = 65

for (const name of ['modern', 'http']) {
  t.test(`input is asked for long arguments at ${name}, and nobody is stalled`, async (t) => {
    const caller = { url: gateway.url, token: keys.attacker }
    const params = { name: `${name}__roots`, arguments: { dense, one: 1, two: 2 } }
    const ms = await gateway.longestTurnMs(maxStateMs, async () => {
      const asked = await round(caller, params)
      const reordered = { ...params, arguments: { two: 2, one: 1, dense } }
      const { answer } = await round(caller, reordered, answers(asked, { roots: [] }))
      t.ok(asked.state, 'it was asked')
      t.match(answer.json?.result, { resultType: 'complete' })
    })
    t.ok(ms < maxStateMs, `the longest turn took ${ms} ms of CPU`)
    const back = answers(await round(caller, params), { roots: [] })
    const { answer } = await round(caller, { ...params, arguments: { dense, one: 1, two: 3 } }, back)
    t.match(answer.json?.error, { data: { reason: 'invalid_state' } }, 'a state is good for its own arguments only')
  })
}

t.test('a requestState of 8 MiB is refused, one of 256 Ki is brought back, and nobody is stalled', async (t) => {
  const caller = { url: gateway.url, token: keys.attacker }
  const params = { name: 'modern__echo', arguments: {} }
  const isEcho = ({ message }: ModernSeen): boolean => message?.['method'] === 'tools/call'
  const answerNext = (result: object): void =>
    modern.override(isEcho, (response, { message }) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result }))
    })
  const kept = 'x'.repeat(262_144)
  answerNext({ resultType: 'input_required', requestState: kept })
  const asked = await round(caller, params)
  answerNext({ resultType: 'complete', content: [] })
  const { answer } = await round(caller, params, answers(asked, {}))
  t.match(answer.json?.result, { resultType: 'complete' }, answer.text.slice(0, 500))
  const sent = modern.seen.at(-1)?.message?.['params'] as { requestState?: string } | undefined
  t.ok(sent?.requestState === kept, 'the server has it back')
  const ms = await gateway.longestTurnMs(maxWriteMs, async () => {
    answerNext({ resultType: 'input_required', requestState: 'x'.repeat(8 * 1024 * 1024) })
    const refused = (await round(caller, params)).answer.json?.error
    t.match(refused, { message: /requestState of more than 262144/, data: { reason: 'upstream_protocol' } })
  })
  t.ok(ms < maxWriteMs, `the longest turn took ${ms} ms of CPU`)
})

t.test('a client that comes back for 8 MB of events gets what is kept of them, and nobody is stalled', async (t) => {
  const text = 'äöüé'.repeat(110_000)
  upstream.override(isCall('slow'), (response, { message }) => {
    const events = Array.from({ length: 18 }, (_, at) => ({
      jsonrpc: '2.0',
      method: 'notifications/message',
      params: { level: 'error', data: `${at}${text}` }
    }))
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const event of events) response.write(`data: ${JSON.stringify(event)}\n\n`)
    response.end(`data: {"jsonrpc":"2.0","id":${JSON.stringify(message?.['id'])},"result":{"content":[]}}\n\n`)
  })
  const first = readEvents((await client.request('tools/call', { name: 'http__slow', arguments: {} })).text)
  // Its call has ended: what is left of the stream is in the store.
  const headers = { ...client.headers, 'last-event-id': String(first[0]?.id) }
  let again = ''
  const ms = await gateway.longestTurnMs(maxTurnMs, async () => {
    again = (await send(gateway.url, { method: 'GET', headers })).text
  })
  const kept = readEvents(again)
  t.ok(Buffer.byteLength(again) > 7_000_000 && kept.length > 8, `${kept.length} events`)
  t.same(kept, first.slice(-kept.length))
  t.ok(ms < maxTurnMs, `the longest turn took ${ms} ms of CPU`)
})
