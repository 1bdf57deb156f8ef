// An upstream answers no calls. Over any transport, and whatever connections they run on, it has at most `maxCalls` of
// them, of which one caller has a part; those who call something else are served as if it were not there.

import t from 'tap'
import { legacyClient, type LegacyClient } from '../kit/client.ts'
import { startSseUpstream } from '../kit/sse-upstream.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'
import { attacked, keys, stdioServer } from './kit.ts'

const maxCalls = 8
const ofOnePerson = 6

const refusalOf = (upstream: string): object => ({
  message: new RegExp(
    `^Upstream ${upstream} gets at most 8 calls at once \\(maxCalls of the upstream\\), 6 of them for`
  ),
  data: { reason: 'too_many', upstream, limit: 'maxCalls' }
})

const call = async (session: LegacyClient, name: string) =>
  (await session.request('tools/call', { name, arguments: {} })).json

const answered = { result: { content: [{}] } }
const slowId = (upstream: string, index: number): string => `${upstream} ${index}`

/** Calls that are not answered. @returns the refusals so far */
function hold(session: LegacyClient, upstream: string, count: number): unknown[] {
  const refused: unknown[] = []
  const slow = { name: `${upstream}__slow`, arguments: {} }
  for (let index = 0; index < count; index++)
    session.request('tools/call', slow, { id: slowId(upstream, index) }).then(
      // Nothing answers what was cancelled.
      ({ json }) => json !== undefined && refused.push(json.error),
      () => {}
    )
  return refused
}

t.test('calls at an upstream that answers none hold up nobody else', { timeout: 120_000 }, async (t) => {
  const [http, sse] = await Promise.all([startUpstream(), startSseUpstream()])
  t.teardown(() => Promise.all([http.close(), sse.close()]))
  const slow: Record<string, object> = {
    each: stdioServer(),
    all: { ...stdioServer(), isolation: 'shared' },
    http: { url: http.url, type: 'streamable-http' },
    sse: { url: sse.url, type: 'sse' }
  }
  const limited = Object.entries(slow).map(([name, upstream]) => [name, { ...upstream, maxCalls }])
  const gateway = await attacked(t, { upstreams: Object.fromEntries(limited) })
  const attacker = await legacyClient(gateway.url, keys.attacker)
  const colleague = await legacyClient(gateway.url, keys.colleague)
  const neighbour = await gateway.neighbour()

  for (const name of Object.keys(slow)) {
    const echo = `${name}__echo`
    t.match(await call(attacker, echo), answered, name)
    const own = hold(attacker, name, ofOnePerson + 1)
    await until('one has more than the part of a caller', () => own.length === 1)
    t.match(own, [refusalOf(name)])
    t.match((await call(attacker, echo)).error, refusalOf(name))
    t.match(await call(colleague, echo), answered, 'the rest is left to colleagues')

    const others = hold(colleague, name, maxCalls - ofOnePerson + 1)
    await until('one has more than there are', () => others.length === 1)
    t.match((await call(colleague, echo)).error, refusalOf(name))
    for (const session of [attacker, colleague])
      t.match(await call(session, 'calm__echo'), answered, 'what is called elsewhere is answered')
    t.match((await attacker.request('tools/list')).json.result.tools, [{}], 'lists are no calls')
    t.equal(own.length, 1, 'what was taken is held')

    for (let index = 0; index < ofOnePerson; index++)
      await attacker.notify('notifications/cancelled', { requestId: slowId(name, index) })
    await until('calls that are given up make room', async () => 'result' in (await call(attacker, echo)))
  }
  t.match((await neighbour.stop()).failures, [])
})
