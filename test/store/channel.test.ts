// The embedded store of a primary where one end of the channel does not read.

import { EventEmitter } from 'node:events'
import t, { type Test } from 'tap'
import { createChannelStore } from '../../src/store/channel/channel-store.ts'
import { createStoreServer } from '../../src/store/channel/serve-store.ts'
import type { Store } from '../../src/store/port.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { openChannel } from '../../src/workers/channel.ts'
import type { ToPrimary, ToWorker } from '../../src/workers/messages.ts'
import { ofPrimary } from './adapters.ts'
import { quiet, until } from './kit.ts'

t.test('while the primary hangs every call fails, and nothing is missed unnoticed', async (t) => {
  const { store, other, primary } = await ofPrimary(t, 1_500)
  let lost = 0
  const heard: string[] = []
  store.onLost(() => lost++)
  await store.subscribe('before', (message) => heard.push(message))
  await store.set('key', 'value')
  primary.kill('SIGSTOP')
  await t.rejects(store.get('key'), { code: 'unavailable' })
  await t.rejects(store.publish('before', 'x'), { code: 'unavailable' })
  t.equal(store.live, false)
  t.equal(lost, 1)
  await store.subscribe('meanwhile', (message) => heard.push(message))
  await t.rejects(store.set('key', 'of a call that failed'), { code: 'unavailable' })
  await t.rejects(store.count('counter', 1, 60_000), { code: 'unavailable' })
  primary.kill('SIGCONT')
  await until(() => store.live && other.live)
  t.equal(lost, 2, 'what was read in between may be out of date')
  t.equal(await store.get('key'), 'value', 'what failed is not run later')
  t.equal(await store.count('counter', 1, 60_000), 1)
  const before = heard.length
  await other.publish('before', 'a')
  await other.publish('meanwhile', 'b')
  await until(() => heard.length === before + 2)
  t.same(heard.slice(before), ['a', 'b'])
})

t.test('an unsubscription that failed is made good', async (t) => {
  const { store, other, primary } = await ofPrimary(t, 1_500)
  const stop = await store.subscribe('channel', () => {})
  t.equal(await other.publish('channel', 'x'), 1, 'the control')
  primary.kill('SIGSTOP')
  await t.rejects(store.get('key'), { code: 'unavailable' })
  await stop()
  primary.kill('SIGCONT')
  await until(() => store.live && other.live)
  await until(async () => (await other.publish('channel', 'x').catch(() => 1)) === 0)
})

t.test('a call counts by all of its texts', async (t) => {
  const sent: object[] = []
  const end = Object.assign(new EventEmitter(), { send: (message: object) => sent.push(message) > 0 })
  const store = createChannelStore(openChannel<ToWorker, ToPrimary>(end as never), false, quiet)
  t.teardown(() => store.close())
  const is = 'x'.repeat(2 ** 24)
  for (const key of ['a', 'b']) store.delete(key, { is }).catch(() => {})
  await t.rejects(store.delete('c', { is }), { cause: { message: 'the primary does not read what this worker sends' } })
  t.equal(sent.length, 1, 'the control')
})

t.test('a call may take the primary longer, as long as it answers others', async (t) => {
  const alive = setInterval(() => {}, 1_000)
  t.teardown(() => clearInterval(alive))
  const value = 'x'.repeat(2 ** 20)
  const calls: Array<(store: Store) => Promise<unknown>> = [
    (store) => store.append('log', value, { ttlMs: 60_000, keep: 10 }),
    (store) => store.get('key'),
    (store) => store.set('key', 'short'),
    (store) => store.delete('key'),
    (store) => store.touch('key', 60_000)
  ]
  for (const call of calls) {
    const { store, lost, pings, answer } = ofPings(t, 20)
    await call(store)
    t.same([lost(), pings()], [0, 20])
    answer(false)
    await t.rejects(call(store), { code: 'unavailable' }, 'the control')
    t.equal(lost(), 1)
  }
})

t.test(
  'a call whose answer never comes fails in the end, and the primary that answers others is not away',
  async (t) => {
    const alive = setInterval(() => {}, 1_000)
    t.teardown(() => clearInterval(alive))
    const { store, lost } = ofPings(t, Infinity)
    await t.rejects(store.get('key'), { code: 'unavailable' })
    t.equal(lost(), 0)
    t.equal(store.live, true)
  }
)

/** A store whose primary answers pings, and the last other call with this ping. */
function ofPings(t: Test, last: number) {
  const end = new EventEmitter()
  let [call, pings, lost, answers] = [0, 0, 0, true]
  const answer = (id: number): void => void setImmediate(() => end.emit('message', { kind: 'stored', id }))
  const send = ({ id, operation }: { id: number; operation: string }): boolean => {
    if (operation !== 'ping') call = id
    if (operation === 'ping' && ++pings === last) answer(call)
    if (operation === 'ping' && answers) answer(id)
    return true
  }
  const channel = openChannel<ToWorker, ToPrimary>(Object.assign(end, { send }) as never)
  const store = createChannelStore(channel, false, quiet, 10)
  t.teardown(() => store.close())
  store.onLost(() => lost++)
  return { store, lost: () => lost, pings: () => pings, answer: (does: boolean) => (answers = does) }
}

t.test('messages to a worker that does not read are bounded, and it is told that some were left out', async (t) => {
  const store = await createSqliteStore({ path: ':memory:', clock: { now: () => 1_000 }, log: quiet })
  t.teardown(() => store.close())
  const server = createStoreServer(store, quiet)
  const sent: ToWorker[][] = [[], []]
  const unwritten: Array<(error: Error | null) => void> = []
  let reads = false
  const workers = [0, 1].map((at) => {
    const end = Object.assign(new EventEmitter(), {
      send(message: object, _socket: unknown, _options: unknown, written: (error: Error | null) => void) {
        sent[at]?.push(message as ToWorker)
        if (at === 1 || reads) setImmediate(written, null)
        else unwritten.push(written)
        return true
      }
    })
    server.serve(openChannel<ToPrimary, ToWorker>(end as never), at)
    return (id: number, operation: string, ...args: unknown[]): void =>
      void end.emit('message', { kind: 'store', id, operation, args } satisfies ToPrimary)
  })
  const [stopped, busy] = workers
  stopped?.(1, 'subscribe', 'channel')
  const message = 'x'.repeat(2 ** 20)
  for (let id = 0; id < 64; id++) busy?.(id, 'publish', 'channel', message)
  await until(() => sent[1]?.length === 64)
  const reached = sent[1]?.map((each) => (each.kind === 'stored' ? each.value : undefined))
  t.same(
    reached?.slice(0, 31),
    Array.from({ length: 31 }, () => 1)
  )
  t.same(
    reached?.slice(32),
    Array.from({ length: 32 }, () => 0),
    'nobody else would get them'
  )
  t.notOk(sent[0]?.some(({ kind }) => kind === 'lost'))
  reads = true
  for (const written of unwritten.splice(0)) written(null)
  t.equal(sent[0]?.filter(({ kind }) => kind === 'lost').length, 1)
  busy?.(64, 'publish', 'channel', 'small')
  await until(() => sent[0]?.at(-1)?.kind === 'published')
})
