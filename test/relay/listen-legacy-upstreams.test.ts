// Resources of legacy upstreams on listen streams: subscribed while somebody listens, promised only what the server
// agreed to, made whole again.

import t from 'tap'
import { type Request, type Result, RpcError } from '../../src/protocol/messages.ts'
import { until } from '../kit/until.ts'
import { ackOf, type Double, type Listener, listenSetup, type ListenSetup, said } from './listen-kit.ts'

const acked = (...listeners: Listener[]) =>
  until('all are acknowledged', () => listeners.every((each) => ackOf(each) !== undefined))
const updated = 'notifications/resources/updated'
const old = (more: Double = {}): Double => ({ era: 'legacy', ...more })
const sent = (setup: ListenSetup) =>
  setup.requests.map(({ method, params }) => `${method.replace('resources/', '')} ${String(params?.['uri'])}`)

t.test('a legacy upstream is subscribed to once for all who listen, and told when nobody does any more', async (t) => {
  const setup = await listenSetup(t, { one: old(), two: {} })
  const uri = 'gatehouse://one/test://a'
  const ada = setup.listener({ resourceSubscriptions: [uri, 'gatehouse://one/test://b', 'gatehouse://two/test://a'] })
  await acked(ada)
  t.same(ackOf(ada), { resourceSubscriptions: [uri, 'gatehouse://one/test://b', 'gatehouse://two/test://a'] })
  const bob = setup.listener({ resourceSubscriptions: [uri] })
  await acked(bob)
  t.same(
    sent(setup).filter((line) => !line.startsWith('subscriptions')),
    ['subscribe test://a', 'subscribe test://b']
  )

  setup.tell('one', updated, { uri: 'test://c' })
  setup.tell('one', updated, {})
  setup.tell('one', 'notifications/message', { level: 'info', data: 'x' })
  setup.tell('one', updated, { uri: 'test://a', _meta: { 'test/kept': 1 } })
  setup.tell('one', updated, { uri: 'test://b/below' })
  await until('both are told', () => said(ada).length === 2 && said(bob).length === 1)
  t.same(
    [said(ada), said(bob)],
    [[`${updated} ${uri}`, `${updated} gatehouse://one/test://b/below`], [`${updated} ${uri}`]]
  )
  t.same(ada.heard[1]?.params?.['_meta'], { 'test/kept': 1 })

  ada.leave()
  await until('what only she listened to is given up', () => sent(setup).includes('unsubscribe test://b'))
  t.notOk(sent(setup).includes('unsubscribe test://a'))
  setup.tell('one', updated, { uri: 'test://a' })
  await until('he who listens is told', () => said(bob).length === 2)
  t.equal(said(ada).length, 2)
  bob.leave()
  await until('and the rest', () => sent(setup).includes('unsubscribe test://a'))
})

t.test('who wants what a legacy upstream was asked for already waits for none of its other requests', async (t) => {
  const held = Promise.withResolvers<Result>()
  const answer = ({ params }: Request): Result | Promise<Result> =>
    String(params?.['uri']).includes('slow') ? held.promise : {}
  const setup = await listenSetup(t, { one: old({ answer: async (request) => answer(request) }), two: {} })
  const uri = 'gatehouse://one/test://a'
  const ada = setup.listener({ resourceSubscriptions: [uri] })
  await acked(ada)
  const slow = Array.from({ length: 20 }, (_, n) => `gatehouse://one/test://slow-${n}`)
  const bob = setup.listener({ resourceSubscriptions: slow })
  await until('as many wait as are sent at a time', () => sent(setup).length === 1 + 8)
  const eve = setup.listener({ resourceSubscriptions: [uri] })
  await acked(eve)
  t.same(ackOf(eve), { resourceSubscriptions: [uri] })
  t.equal(sent(setup).length, 1 + 8)
  setup.tell('one', updated, { uri: 'test://a' })
  await until('she is told', () => said(eve).length === 1)
  for (const each of [eve, ada]) each.leave()
  held.resolve({})
  await acked(bob)
  await until('what nobody listens to is given up', () => sent(setup).includes('unsubscribe test://a'))
})

t.test('what a legacy upstream refuses, or is too slow to agree to, is not promised, and not kept', async (t) => {
  const slow = Promise.withResolvers<Result>()
  const answer = ({ params }: Request): Result | Promise<Result> => {
    if (params?.['uri'] === 'test://slow') return slow.promise
    if (params?.['uri'] === 'test://no') throw new RpcError({ code: -32002, message: 'no such resource' })
    return {}
  }
  const setup = await listenSetup(t, {
    one: old({ answer: async (request) => answer(request) }),
    plain: old({ capabilities: { resources: {} } }),
    down: old({ down: true })
  })
  const wanted = [
    'gatehouse://one/test://a',
    'gatehouse://one/test://no',
    'gatehouse://one/test://slow',
    'gatehouse://plain/test://a',
    'gatehouse://down/test://a'
  ]
  const ada = setup.listener({ resourceSubscriptions: wanted })
  await until('all is asked for', () => sent(setup).length === 3)
  t.equal(ackOf(ada), undefined)
  setup.clock.move(10_000)
  await acked(ada)
  t.same(ackOf(ada), { resourceSubscriptions: wanted.slice(0, 1) })
  slow.resolve({})
  await until('what came too late is ended', () => sent(setup).includes('unsubscribe test://slow'))
  setup.tell('one', updated, { uri: 'test://slow' })
  setup.tell('one', updated, { uri: 'test://a' })
  await until('she is told of what was promised', () => said(ada).length > 0)
  t.same(said(ada), [`${updated} ${wanted[0]}`])
  t.notOk(sent(setup).includes('unsubscribe test://a'))
})

t.test(
  'a connection that breaks is opened again while somebody listens, and then each resource may have changed',
  async (t) => {
    const one = old()
    const setup = await listenSetup(t, { one })
    const uris = ['gatehouse://one/test://a', 'gatehouse://one/test://b'].map((uri) =>
      uri.replace('gatehouse://one/', '')
    )
    const ada = setup.listener({ resourceSubscriptions: uris }, { endpoint: 'only-one' })
    await acked(ada)
    t.same(ackOf(ada), { resourceSubscriptions: uris })
    one.down = true
    setup.cut('one')
    setup.clock.move(500)
    await until('it is tried', () => setup.clock.waits.includes(1_000))
    t.same(said(ada), [])
    one.down = false
    setup.clock.move(1_000)
    await until('both are subscribed again', () => said(ada).length === 2)
    t.same(
      said(ada).toSorted(),
      uris.map((uri) => `${updated} ${uri}`)
    )
    t.equal(sent(setup).filter((line) => line.startsWith('subscribe')).length, 4)
    setup.tell('one', updated, { uri: uris[0] })
    await until('she is told of the next change', () => said(ada).length === 3)
    ada.leave()
    await until('both are ended', () => sent(setup).filter((line) => line.startsWith('unsubscribe')).length === 2)
    setup.cut('one')
    setup.clock.move(60_000)
    t.equal(sent(setup).length, 6, 'for nobody it is not opened')
  }
)

t.test('a connection that somebody listens on is not idle', async (t) => {
  const setup = await listenSetup(t, { one: old() })
  const ada = setup.listener({ resourceSubscriptions: ['test://a'] }, { endpoint: 'only-one' })
  await acked(ada)
  for (let n = 0; n < 3; n++) {
    const before = setup.touched.length
    setup.clock.move(5_000)
    t.ok(setup.touched.length > before)
  }
  ada.leave()
  await until('it is given up', () => sent(setup).includes('unsubscribe test://a'))
  setup.clock.move(5_000)
  const before = setup.touched.length
  setup.clock.move(5_000)
  t.equal(setup.touched.length, before)
})

t.test('whoever comes while the last one leaves is subscribed when it is promised so', async (t) => {
  const leaving = Promise.withResolvers<Result>()
  const setup = await listenSetup(t, {
    one: old({ answer: ({ method }) => (method === 'resources/unsubscribe' ? leaving.promise : {}) })
  })
  const filter = { resourceSubscriptions: ['test://a'] }
  const ada = setup.listener(filter, { endpoint: 'only-one' })
  await acked(ada)
  ada.leave()
  await until('the server is told', () => sent(setup).includes('unsubscribe test://a'))
  const bob = setup.listener(filter, { endpoint: 'only-one' })
  t.equal(ackOf(bob), undefined)
  leaving.resolve({})
  await acked(bob)
  t.same(sent(setup), ['subscribe test://a', 'unsubscribe test://a', 'subscribe test://a'])
})

t.test('a connection is given back by whoever took it, also where the stream ends while it is opened', async (t) => {
  const [asked, opening] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const one = old()
  const setup = await listenSetup(t, {
    one,
    plain: old({ capabilities: { resources: {} } }),
    slow: old({
      opening: () => {
        asked.resolve()
        return opening.promise
      }
    }),
    modern: {}
  })
  const ada = setup.listener({
    resourceSubscriptions: ['one', 'plain', 'modern'].map((name) => `gatehouse://${name}/test://a`)
  })
  await acked(ada)
  t.same(
    [...setup.taken].map(({ scope }) => scope).toSorted(),
    ['of modern', 'of one'],
    'where nothing was promised nothing is kept'
  )
  one.down = true
  setup.cut('one')
  setup.clock.move(500)
  await until('it is tried', () => setup.clock.waits.includes(1_000))
  one.down = false
  setup.clock.move(1_000)
  await until('it is subscribed again', () => said(ada).length === 1)
  t.equal(setup.taken.size, 2)
  ada.leave()
  await until('all are given back', () => setup.taken.size === 0)
  const bob = setup.listener({ resourceSubscriptions: ['gatehouse://slow/test://a'] })
  await asked.promise
  bob.leave()
  await bob.over
  opening.resolve()
  await new Promise((resolve) => {
    setImmediate(resolve)
  })
  t.equal(setup.taken.size, 0)
})
