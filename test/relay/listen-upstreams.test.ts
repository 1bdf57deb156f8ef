// What listen streams have from upstreams: resources and tasks, merged, each under the name that its client knows, over
// breaks and reloads.

import t from 'tap'
import { type Result, RpcError } from '../../src/protocol/messages.ts'
import { until } from '../kit/until.ts'
import { ackOf, type Double, type Listener, listenSetup, type ListenSetup, said, taskClient } from './listen-kit.ts'
import { tool } from './kit.ts'

const acked = (...listeners: Listener[]) =>
  until('all are acknowledged', () => listeners.every((each) => ackOf(each) !== undefined))
const updated = 'notifications/resources/updated'
function idOfTask({ place, taskIds }: ListenSetup, id: string): string {
  const { snapshot, tenant, endpoint } = place()
  const [one] = endpoint.members
  if (one === undefined) throw new Error('no member')
  const principal = {
    kind: 'key',
    tenant: tenant.id,
    issuer: 'urn:gatehouse:key',
    subject: 'ada',
    clientId: 'ada',
    scopes: new Set<string>(),
    groups: [],
    roles: [],
    expiresAt: undefined
  } as const
  return taskIds.toClient({ snapshot, tenant, endpoint, principal }, { upstream: one.upstream, id })
}
const leg = (setup: ListenSetup, upstream: string) =>
  until(`a stream is open at ${upstream}`, () => setup.open(upstream)[0])

t.test('updates of two upstreams come on one stream, under the names that the client knows', async (t) => {
  const setup = await listenSetup(t, { one: {}, two: {} })
  const uris = ['gatehouse://one/test://a', 'gatehouse://two/test://a', 'gatehouse://two/test://dir/']
  const ada = setup.listener({ resourceSubscriptions: [...uris, uris[0], 'gatehouse://three/test://a'] })
  await acked(ada)
  t.same(ackOf(ada), { resourceSubscriptions: uris }, 'each once, in its order; what leads nowhere is left out')
  const [one, two] = [await leg(setup, 'one'), await leg(setup, 'two')]
  t.same(
    [one.filter, two.filter],
    [{ resourceSubscriptions: ['test://a'] }, { resourceSubscriptions: ['test://a', 'test://dir/'] }]
  )
  one.say(updated, { uri: 'test://a', _meta: { 'test/kept': 1 } })
  two.say(updated, { uri: 'test://a', padding: 'x', _meta: { padding: 'x'.repeat(5_000) } })
  two.say(updated, { uri: 'test://dir/file' })
  t.same(said(ada), [`${updated} ${uris[0]}`, `${updated} ${uris[1]}`, `${updated} gatehouse://two/test://dir/file`])
  t.same(ada.heard[1]?.params?.['_meta'], { 'test/kept': 1 })
  t.same(ada.heard[2]?.params, { uri: uris[1] }, 'what has no meaning there, or is too long for it, does not pass')
})

t.test('what an upstream says beyond what it was asked for goes nowhere', async (t) => {
  const setup = await listenSetup(t, { one: {} })
  const [ada, bob] = [
    setup.listener({ toolsListChanged: true, resourceSubscriptions: ['test://a'] }, { endpoint: 'only-one' }),
    setup.listener({ resourceSubscriptions: ['test://b'] }, { endpoint: 'only-one', who: 'bob' })
  ]
  await acked(ada, bob)
  const [hers] = setup.open('one')
  hers?.say(updated, { uri: 'test://b' })
  hers?.say(updated, { uri: 'test://ab' })
  hers?.say(updated, {})
  hers?.say(updated)
  hers?.say('notifications/tools/list_changed')
  hers?.say('notifications/message', { level: 'info', data: 'x' })
  hers?.say('notifications/progress', { progressToken: 1, progress: 1 })
  hers?.say('notifications/tasks', { taskId: 'x' })
  hers?.say('notifications/invented', {})
  t.same([said(ada), said(bob)], [[], []])
  hers?.say(updated, { uri: 'test://a' })
  t.same([said(ada), said(bob)], [[`${updated} test://a`], []], 'and only to whose stream it came on')
})

t.test('an acknowledgment names what upstreams acknowledged, and nothing is added later', async (t) => {
  const slow: Double = { silent: true }
  const setup = await listenSetup(t, {
    part: { grants: () => ({ resourceSubscriptions: ['test://a', 'test://never-asked'] }) },
    slow,
    old: { era: 'legacy', capabilities: { resources: {} } },
    plain: { capabilities: { resources: {} } },
    refusing: { refuses: new RpcError({ code: -32601, message: 'no such method' }) },
    down: { down: true }
  })
  const names = ['part', 'slow', 'old', 'plain', 'refusing', 'down']
  const ada = setup.listener({
    resourceSubscriptions: names.flatMap((name) => [`gatehouse://${name}/test://a`, `gatehouse://${name}/test://b`])
  })
  const late = await leg(setup, 'slow')
  t.same(ada.heard, [], 'it waits')
  await until('for so long', () => setup.clock.waits.includes(1_500))
  setup.clock.move(1_500)
  await acked(ada)
  t.same(ackOf(ada), { resourceSubscriptions: ['gatehouse://part/test://a'] })
  t.ok(late.closed, 'what was not promised is not kept open')
  late.ack()
  late.say(updated, { uri: 'test://a' })
  t.same(said(ada), [])
  setup.clock.move(120_000)
  t.same(
    setup.legs.filter(({ closed }) => !closed).map(({ upstream }) => upstream),
    ['part'],
    'nothing is tried again that was never promised'
  )
})

t.test(
  'a client that leaves takes its streams at the upstreams along, before and after the acknowledgment',
  async (t) => {
    const setup = await listenSetup(t, { one: { silent: true }, two: {} })
    const filter = { resourceSubscriptions: ['gatehouse://one/test://a', 'gatehouse://two/test://a'] }
    const early = setup.listener(filter)
    await leg(setup, 'one')
    early.leave()
    await early.over
    t.same(early.heard, [])
    t.ok(setup.legs.every(({ closed }) => closed))
    const [later, staying] = [setup.listener(filter), setup.listener(filter)]
    setup.clock.move(1_500)
    await until('the first upstream is not waited for', () => {
      setup.clock.move(1_500)
      return ackOf(later) !== undefined && ackOf(staying) !== undefined
    })
    t.equal(setup.open('two').length, 2)
    later.leave()
    await later.over
    t.equal(setup.open('two').length, 1, 'the other one stays')
  }
)

t.test('a stream that breaks is opened again, later each time, and everything counts as changed', async (t) => {
  const one: Double = {}
  const setup = await listenSetup(t, { one })
  const ada = setup.listener({ resourceSubscriptions: ['test://a', 'test://b'] }, { endpoint: 'only-one' })
  await acked(ada)
  ;(await leg(setup, 'one')).fail()
  await until('it waits', () => setup.clock.waits.includes(500))
  t.same(said(ada), [], 'nothing is told while it is away')
  one.down = true
  setup.clock.move(500)
  await until('it waits longer', () => setup.clock.waits.includes(1_000))
  one.down = false
  setup.clock.move(1_000)
  const again = await leg(setup, 'one')
  t.same(again.filter, { resourceSubscriptions: ['test://a', 'test://b'] })
  t.same(said(ada), [`${updated} test://a`, `${updated} test://b`], 'nobody knows what was missed')
  again.say(updated, { uri: 'test://b' })
  t.equal(said(ada).length, 3)
  t.equal(
    ada.heard.filter(({ method }) => method.endsWith('acknowledged')).length,
    1,
    'one acknowledgment, for all time'
  )
  setup.clock.move(5_000)
  again.end()
  await until('one that has worked for a while is soon opened again, however it ended', () =>
    setup.clock.waits.includes(500)
  )
  ada.leave()
  await ada.over
  t.notOk(setup.clock.waits.includes(500), 'and not for somebody who has left')
})

t.test('after a break the state of a task is asked for', async (t) => {
  const setup = await listenSetup(t, {
    one: {
      answer: ({ params }) => ({
        resultType: 'complete',
        taskId: params?.['taskId'],
        status: 'completed',
        _meta: { secret: 1 }
      })
    }
  })
  const id = idOfTask(setup, 'task-1')
  const ada = setup.listener({ taskIds: [id] }, { capabilities: taskClient })
  await acked(ada)
  ;(await leg(setup, 'one')).fail()
  await until('it waits', () => setup.clock.waits.includes(500))
  setup.clock.move(500)
  await until('its state is told', () => said(ada).length === 1)
  t.same(ada.heard[1], { method: 'notifications/tasks', params: { taskId: id, status: 'completed' } })
  t.same(
    setup.requests.map(({ method }) => method),
    ['subscriptions/listen', 'subscriptions/listen', 'tasks/get']
  )
})

t.test('what waits for the acknowledgment is bounded in bytes', async (t) => {
  const setup = await listenSetup(t, { one: {}, slow: { silent: true } })
  const ada = setup.listener({ resourceSubscriptions: ['gatehouse://one/test://dir/', 'gatehouse://slow/test://a'] })
  const [one, slow] = [await leg(setup, 'one'), await leg(setup, 'slow')]
  const long = (n: number): string => `test://dir/${n}/${'x'.repeat(12_500)}`
  for (let n = 0; n < 50; n++) one.say(updated, { uri: long(n) })
  // The newest of one thing takes the place of the one before.
  for (let n = 0; n < 50; n++) one.say(updated, { uri: long(0) })
  one.say(updated, { uri: 'test://dir/short' })
  slow.ack()
  await acked(ada)
  t.equal(said(ada).length, 11)
  t.match(said(ada).at(-1), /short$/)
  one.say(updated, { uri: long(20) })
  t.equal(said(ada).length, 12, 'afterwards it is for the connection to take')
})

t.test('an update costs the same, however many URIs come before its own', async (t) => {
  const setup = await listenSetup(t, { one: {} })
  // Alike up to their ends, and of one length: each comparison reads all of it.
  const uris = Array.from({ length: 1_000 }, (_, n) => `test://${'x'.repeat(4_000)}${1_000 + n}`)
  const ada = setup.listener({ resourceSubscriptions: uris }, { endpoint: 'only-one' })
  await acked(ada)
  const one = await leg(setup, 'one')
  const timed = (at: number): number => {
    const copies = Array.from({ length: 500 }, () => Buffer.from(uris[at] ?? '').toString())
    const before = process.threadCpuUsage()
    for (const uri of copies) one.say(updated, { uri })
    const { user, system } = process.threadCpuUsage(before)
    return (user + system) / 1000
  }
  timed(0)
  const [first, last] = [timed(0), timed(999)]
  t.equal(said(ada).length, 1_500)
  t.ok(last < first * 10 + 20, `${first} and ${last} ms of CPU`)
})

t.test('a stream that breaks while tasks are asked for asks for them again, and not twice at once', async (t) => {
  const answers: Array<PromiseWithResolvers<Result>> = []
  const setup = await listenSetup(t, {
    one: {
      answer() {
        const answer = Promise.withResolvers<Result>()
        answers.push(answer)
        return answer.promise
      }
    }
  })
  const ada = setup.listener({ taskIds: ['a', 'b'].map((id) => idOfTask(setup, id)) }, { capabilities: taskClient })
  await acked(ada)
  for (let n = 1; n <= 3; n++) {
    ;(await leg(setup, 'one')).fail()
    await until('it waits', () => setup.clock.waits.some((ms) => ms >= 500 && ms < 5_000))
    setup.clock.move(5_000)
    await until('the first task is asked for', () => answers.length === n)
  }
  answers[0]?.resolve({ resultType: 'complete', taskId: 'a', status: 'late' })
  answers[1]?.reject(new Error('late'))
  answers[2]?.resolve({ resultType: 'complete', taskId: 'a', status: 'working' })
  await until('the second one is asked for', () => answers.length > 3)
  t.same(
    ada.heard.slice(1).map(({ params }) => params?.['status']),
    ['working'],
    'only by the last'
  )
  t.equal(answers.length, 4)
})

t.test('a reload ends what can no longer be promised, and tells the others what has changed', async (t) => {
  const setup = await listenSetup(t, { one: { tools: [tool('a')] }, two: { tools: [tool('a')] } })
  const lists = setup.listener({ toolsListChanged: true })
  const ofOne = setup.listener({ toolsListChanged: true, resourceSubscriptions: ['gatehouse://one/test://a'] })
  const ofTwo = setup.listener({ resourceSubscriptions: ['gatehouse://two/test://a'] })
  const other = setup.listener({ toolsListChanged: true }, { endpoint: 'other' })
  await acked(lists, ofOne, ofTwo, other)
  setup.reload(() => {})
  t.same([lists, ofOne, ofTwo, other].flatMap(said), [], 'nothing changed')
  setup.reload((config) => {
    config.endpoints['default'] = { upstreams: ['one'] }
    delete config.endpoints['other']
  })
  t.same(await ofTwo.over, { resultType: 'complete' })
  t.same(await other.over, { resultType: 'complete' })
  t.same(await ofOne.over, { resultType: 'complete' }, 'its resource has another name now')
  t.same(said(ofOne), ['notifications/tools/list_changed'])
  t.same(said(lists), ['notifications/tools/list_changed'])
  t.equal(setup.legs.filter(({ closed }) => !closed).length, 0)
  setup.listen.close()
  t.same(await lists.over, { resultType: 'complete' }, 'until the gateway stops')
  await t.rejects(setup.listener({}).over, { code: 'shutting_down' })
})
