// Conversations: a name that a client invents has upstream sessions of its own, whatever it is named on, and a caller
// may have so many.

import t from 'tap'
import { keyPrincipal } from '../../src/auth/principal.ts'
import type { Notification, Result } from '../../src/protocol/messages.ts'
import { until } from '../kit/until.ts'
import { modernSetup, type Double, type ModernSetup } from './modern-kit.ts'
import { tool } from './kit.ts'

const single = { endpoints: { default: { upstreams: ['one'], prefix: '' } } }
const params = { name: 'x' }
const named = (conversation: unknown) => ({ 'io.gatehouse/conversation': conversation })

t.test('a conversation has upstream sessions of its own, of which a caller has a limited number', async (t) => {
  const setup = await modernSetup(
    t,
    { one: { era: 'legacy', tools: [tool('x')], answer: (request) => ({ meta: request.params?.['_meta'] }) } },
    single
  )
  const opened = async (conversation: unknown, who = 'ada'): Promise<number> => {
    const before = setup.connections.length
    const result = await setup.call(
      'tools/call',
      { ...params, _meta: { ...named(conversation), 'com.example/own': 1 } },
      { who }
    )
    t.same(result['meta'], { 'com.example/own': 1 }, 'the name is for us alone')
    return setup.connections.length - before
  }
  await setup.call('tools/call', params)
  t.same([await opened('a'), await opened('b'), await opened('a'), await opened('b')], [1, 1, 0, 0])
  t.equal(await opened('a', 'bob'), 1)
  for (const wrong of ['', 7, null, 'x'.repeat(129), 'line\nbreak'])
    await t.rejects(opened(wrong), { code: 'invalid_params' })
  const most = setup.place().snapshot.limits.sessionsPerPrincipal
  for (let n = 3; n < most; n++) await opened(`more ${n}`)
  await opened('last').catch(() => {})
  await t.rejects(opened('too many'), { code: 'too_many', message: /sessionsPerPrincipal/ })
  t.equal(await opened('a'), 0, 'those that are there can be used')
  setup.later(24 * 60 * 60_000)
  t.ok((await opened('too many')) >= 0, 'what is idle does not count')
})

interface Listening {
  /** What it was promised, once it is. */
  granted(): Promise<unknown>
  leave(): Promise<Result>
}

function listening(setup: ModernSetup, conversation: string, who = 'ada'): Listening {
  const heard: Notification[] = []
  const stop = new AbortController()
  const place = setup.place()
  const over = setup.relay.listen({
    ...place,
    principal: keyPrincipal(place.tenant.id, { name: who, sha256: '', scopes: [] }),
    request: {
      method: 'subscriptions/listen',
      params: { notifications: { resourceSubscriptions: ['test://x'] }, _meta: named(conversation) }
    },
    client: {
      era: 'modern',
      capabilities: {},
      notify: (notification) => {
        heard.push(notification)
      },
      ask: () => Promise.reject(new Error('not asked'))
    },
    signal: stop.signal
  })
  return {
    granted: () => until('the acknowledgment', () => heard[0]?.params?.['notifications']),
    leave() {
      stop.abort()
      return over
    }
  }
}

const all = { resourceSubscriptions: ['test://x'] }
const subscribable: Double = {
  tools: [tool('x')],
  resources: [{ uri: 'test://x', name: 'x' }],
  capabilities: { tools: {}, resources: { subscribe: true } }
}
const modern: Double = {
  ...subscribable,
  answer({ method, params }, client, signal) {
    if (method !== 'subscriptions/listen') return { content: [], resultType: 'complete' }
    client.notify({
      method: 'notifications/subscriptions/acknowledged',
      params: { notifications: params?.['notifications'] }
    })
    return new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(new Error('closed')))
    })
  }
}

for (const [kind, double, type] of [
  ['a legacy upstream', { ...subscribable, era: 'legacy' }, 'http'],
  ['a modern upstream over stdio', modern, 'stdio']
] as const) {
  t.test(`${kind}: the name on a listen stream counts like that on a call, until the stream has ended`, async (t) => {
    const setup = await modernSetup(t, { one: double }, { ...single, type, limits: { sessionsPerPrincipal: 3 } })
    const call = (conversation: string): Promise<Result> =>
      setup.call('tools/call', { ...params, _meta: named(conversation) })
    await setup.call('tools/list')
    const listed = setup.connections.length
    const streams = ['a', 'b', 'c'].map((name) => listening(setup, name))
    for (const each of streams) t.same(await each.granted(), all)
    t.equal(setup.connections.length, listed + 3)
    const more = listening(setup, 'd')
    t.same(await more.granted(), {}, 'nothing is promised over the limit')
    await more.leave()
    await t.rejects(call('d'), { code: 'too_many', message: /sessionsPerPrincipal/ })
    t.equal(setup.connections.length, listed + 3, 'and nothing opened')
    t.ok(await call('a'), 'what is there can be used')
    const bob = listening(setup, 'd', 'bob')
    t.same(await bob.granted(), all, 'another caller has sessions of his own')

    setup.later(24 * 60 * 60_000)
    await t.rejects(call('d'), { code: 'too_many' }, 'a stream that is open is not idle')
    await streams[0]?.leave()
    await t.rejects(call('d'), { code: 'too_many' }, 'its connection stays for a while')
    setup.later(60 * 60_000)
    t.ok(await call('d'))
  })
}

t.test('a connection that cannot be opened takes no place', async (t) => {
  const one: Double = { ...subscribable, era: 'legacy' }
  const setup = await modernSetup(t, { one }, { ...single, limits: { sessionsPerPrincipal: 1 } })
  await setup.call('tools/list')
  one.down = true
  const stream = listening(setup, 'a')
  t.same(await stream.granted(), {})
  one.down = false
  setup.later(24 * 60 * 60_000)
  t.ok(await setup.call('tools/call', { ...params, _meta: named('b') }))
  await stream.leave()
})
