// Subscriptions are limited for each person, over all of their sessions; those of others are not touched by it.

import t from 'tap'
import { createSubscriptionIndex, personOf, type Subscriber } from '../../src/relay/subscriptions/subscription-index.ts'
import type { UpstreamDefinition } from '../../src/config/snapshot.ts'

const clock = { now: () => 0, timer: () => ({ close() {}, refresh() {}, unref() {} }) }
const subscriberOf = (caller: string, tenant = 'acme'): Subscriber => ({
  person: personOf({ tenant, caller }),
  tenant,
  over: false,
  listening: true,
  updated() {},
  connect: () => Promise.reject(new Error('not asked for')),
  successorOf: () => undefined
})

t.test('a person has 10,000 subscriptions in all sessions together, and 1,000 in each', (t) => {
  const index = createSubscriptionIndex(clock)
  const connection = index.at({ definition: { hash: 'h' } as UpstreamDefinition, scope: 'all', exclusive: false })
  const add = (subscriber: Subscriber, uri: string): void => {
    index.checkRoom(subscriber, uri, uri)
    index.add(connection, uri, subscriber, uri)
  }
  const sessions = Array.from({ length: 11 }, () => subscriberOf('ada'))
  for (const session of sessions.slice(0, 10)) for (let n = 0; n < 1_000; n++) add(session, `test://${n}`)
  const [first, last] = [sessions[0] as Subscriber, sessions[10] as Subscriber]
  t.throws(() => add(first, 'test://more'), { code: 'too_many', message: /This session has 1000/ })
  t.throws(() => add(last, 'test://more'), { code: 'too_many', message: /All sessions .* 10000/ })
  add(subscriberOf('bob'), 'test://more')
  index.remove(connection, 'test://0', first)
  add(last, 'test://more')
  t.throws(() => add(last, 'test://again'), { code: 'too_many' }, 'one place was free')
  t.end()
})

t.test('a tenant has 100,000 subscriptions of all its people together', (t) => {
  const index = createSubscriptionIndex(clock)
  const connection = index.at({ definition: { hash: 'h' } as UpstreamDefinition, scope: 'all', exclusive: false })
  const add = (subscriber: Subscriber, uri: string): void => {
    index.checkRoom(subscriber, uri, uri)
    index.add(connection, uri, subscriber, uri)
  }
  const sessions = Array.from({ length: 100 }, (_, n) => subscriberOf(`person ${n}`))
  for (const session of sessions) for (let n = 0; n < 1_000; n++) add(session, `test://${n}`)
  const next = subscriberOf('one more')
  t.throws(() => add(next, 'test://more'), { code: 'too_many', message: /of the tenant .* 100000/ })
  add(subscriberOf('ada', 'globex'), 'test://more')
  index.remove(connection, 'test://0', sessions[0] as Subscriber)
  add(next, 'test://more')
  t.throws(() => add(next, 'test://again'), { code: 'too_many' }, 'one place was free')
  t.end()
})
