// An HTTP upstream that takes requests and answers none, on real sockets: further calls are refused at once instead of
// after their timeout, none of them reaches it or is sent twice, and what it answers again lets calls through. One that
// is only slow is left in peace.

import type { ServerResponse } from 'node:http'
import t from 'tap'
import { legacyClient } from '../kit/client.ts'
import { adminGateway, adminKeys } from '../kit/admin.ts'
import { key } from '../kit/gateway.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { until } from '../kit/until.ts'
import { isCall, isMethod, type Seen, startUpstream } from '../kit/upstream.ts'
import { samplesOf, type Sample } from '../observe/samples.ts'

const refusal = {
  message: /^Upstream files answers nothing, so the request was not sent.*It is tried again in \d+ s/,
  data: { reason: 'upstream_unavailable', upstream: 'files', retryAfterMs: Number }
}
/** What holds a call up would do so for ten minutes. */
const patience = { timeoutMs: 600_000, checkAfterMs: 200 }
const answersNothing = 'an upstream answers nothing: its calls are refused until it does'

/** @param connectMs how long it takes to find out that it is silent */
async function house(t: { teardown(run: () => unknown): void }, connectMs = 2_000) {
  const [upstream, other] = await Promise.all([startUpstream(), startUpstream()])
  t.teardown(() => Promise.all([upstream.close(), other.close()]))
  let isSilent: (seen: Seen) => boolean = () => false
  const held: Array<readonly [ServerResponse, Seen]> = []
  upstream.override(
    (seen) => isSilent(seen),
    (response, seen) => {
      if (isCall('content')(seen)) held.push([response, seen])
    },
    Infinity
  )
  const served = await adminGateway(t, {
    upstreams: { files: { url: upstream.url, ...patience, connectMs }, other: { url: other.url } }
  })
  const session = await legacyClient(served.url(), key)
  const call = async (name: string, signal?: AbortSignal) =>
    (await session.request('tools/call', { name, arguments: {} }, signal && { signal })).json
  t.teardown(() => session.end())
  return {
    upstream,
    held,
    call,
    callers: {
      '2025-11-25': call,
      '2026-07-28': async (name: string) =>
        (await modernRequest(served.url(), 'tools/call', { name, arguments: {} }, { token: key })).json
    },
    /** Of the metric of its circuit breaker. */
    async told(): Promise<number | undefined> {
      const { text } = await served.call('GET', '/metrics', { key: adminKeys.viewer })
      const isIts = ({ name, labels }: Sample): boolean =>
        name === 'gatehouse_upstream_silent_ratio' && labels['gatehouse_upstream'] === 'files'
      return samplesOf(text).find(isIts)?.value
    },
    sent: (tool: string): number => upstream.seen.filter(isCall(tool)).length,
    silence(which: (seen: Seen) => boolean): void {
      isSilent = which
    },
    refuses: () => until('it is known to be silent', () => served.log.some(({ msg }) => msg === answersNothing))
  }
}

t.test(
  'calls at an upstream that answers nothing are refused at once, and reach it when it answers again',
  async (t) => {
    const { upstream, call, callers, told, sent, silence, refuses } = await house(t)
    for (const [era, call] of Object.entries(callers))
      await until(`it answers (${era})`, async () => (await call('files__echo')).result)
    const echoes = sent('echo')
    t.equal(await told(), 0)

    silence(() => true)
    const stop = new AbortController()
    t.teardown(() => stop.abort())
    const waiting = call('files__content', stop.signal).catch(() => undefined)
    await refuses()
    t.equal(await told(), 1, 'the metric says so')
    for (const [era, call] of Object.entries(callers)) {
      t.match((await call('files__echo')).error, refusal, era)
      t.ok((await call('other__echo')).result, 'what is called elsewhere is answered')
    }
    await until('it says for how long', async () =>
      /away for \d+ s/.test((await call('files__echo')).error?.message ?? '')
    )
    t.equal(sent('echo'), echoes, 'what was refused was not sent')

    silence(() => false)
    for (const [era, call] of Object.entries(callers))
      await until(`a call reaches it (${era})`, async () => (await call('files__echo')).result !== undefined)
    // A machine that stands still makes it silent for a moment: a call still waits.
    await until('the metric says so', async () => (await told()) === 0)
    t.equal(sent('content'), 1, 'the call that waited was sent once')
    stop.abort()
    await waiting
    t.ok(upstream.seen.filter(isMethod('tools/call')).length >= echoes + 3)
  }
)

t.test('the answer to a call that still waited lets calls through', async (t) => {
  const { held, call, silence, refuses } = await house(t)
  await until('it answers', async () => (await call('files__echo')).result)
  silence(() => true)
  const waiting = call('files__content')
  await refuses()
  t.match((await call('files__echo')).error, refusal)
  silence(isMethod('initialize'))
  t.equal(held.length, 1, 'it was sent once')
  for (const [response, { message }] of held) {
    const answer = { jsonrpc: '2.0', id: message?.['id'], result: { content: [] } }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  }
  t.match(await waiting, { result: { content: [] } })
  t.ok((await call('files__echo')).result)
})

t.test('an upstream that is only slow is asked whether it answers, and gets its calls', async (t) => {
  const { upstream, call } = await house(t, 60_000)
  t.ok((await call('files__echo')).result)
  const handshakes = (): number => upstream.seen.filter(isMethod('initialize')).length
  const before = handshakes()
  const slow = call('files__slow')
  await until('it is asked, and again', () => handshakes() >= before + 2)
  t.ok((await call('files__echo')).result, 'it is not refused')
  t.ok((await call('files__release')).result)
  t.ok((await slow).result)
})
