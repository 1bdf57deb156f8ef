// Streams by session: who may come back to which, and what is left of one that ended, or that another process has.

import t, { type Test } from 'tap'
import { randomBytes } from 'node:crypto'
import { createStreams, type StreamFeatures, type Streams } from '../../src/session/streams.ts'
import { GatewayError } from '../../src/protocol/messages.ts'
import { eventsKey, eventsTtlMs } from '../../src/store/keys.ts'
import type { Store } from '../../src/store/port.ts'
import { createSealer } from '../../src/store/seal.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { quiet } from '../store/kit.ts'
import { until } from '../kit/until.ts'
import { clock, reader, type Reader, type TestClock } from './reader.ts'

const primed = { primes: true }

interface House {
  readonly store: Store
  readonly time: TestClock
  /** The streams of one more process on the store. */
  process(lingerMs?: number, store?: Store): Promise<Streams>
  /** Whether the processes of this name say that they hold a stream. Default: the truth. */
  readonly held: { by?: (node: string) => boolean | Promise<boolean> }
}

async function house(t: Test): Promise<House> {
  const time = clock()
  const store = await createSqliteStore({ path: ':memory:', clock: time, log: quiet })
  t.teardown(() => store.close())
  const held: House['held'] = {}
  const all: Streams[] = []
  return {
    store,
    time,
    held,
    async process(lingerMs, own = store) {
      const sealer = await createSealer({ store, randomBytes, timer: (ms, run) => setTimeout(run, ms), log: quiet })
      const streams = createStreams({
        store: own,
        sealer,
        clock: time,
        randomBytes,
        log: quiet,
        holders: {
          node: 'one',
          isHeld: async (node, stream) => await (held.by?.(node) ?? all.some((each) => each.has(stream)))
        },
        ...(lingerMs === undefined ? {} : { lingerMs })
      })
      all.push(streams)
      t.teardown(() => {
        sealer.close()
        streams.close()
      })
      return streams
    }
  }
}

const dataOf = ({ events }: Reader): string[] => events.map(({ data }) => data)
/** A stream with three messages and a reader that has seen them. */
function three(streams: Streams, session: string, kind: 'call' | 'session' = 'call', wishes: StreamFeatures = primed) {
  const stream = streams.open(session, kind, wishes)
  const sink = reader()
  const attachment = stream.attach(sink)
  stream.prime()
  for (const n of [1, 2, 3]) stream.send({ n })
  return { stream, sink, attachment, ids: [...sink.primes, ...sink.events.map(({ id }) => id)] }
}

t.test('an event id names stream and number with a proof, and no two are alike', async (t) => {
  const streams = await (await house(t)).process()
  const ids = ['a', 'a', 'b'].flatMap((session) => three(streams, session).ids)
  for (const id of ids) t.match(id, /^c[\w-]{12}\.\d+\.[\w-]{16}$/)
  t.equal(new Set(ids).size, ids.length)
  t.match(three(streams, 'a', 'session').ids[0], /^s[\w-]{12}\.0\.[\w-]{16}$/)
})

t.test('a call whose stream nobody holds any more ends with an error, after what is stored of it', async (t) => {
  const { process, held } = await house(t)
  const [one, other] = [await process(), await process()]
  const { ids } = three(one, 'mine', 'call', { ...primed, request: 'the call' })
  const asked: string[] = []
  held.by = (node) => asked.push(node) > 0
  const first = reader()
  await other.resume('mine', ids[2] ?? '', first, primed)
  t.same(dataOf(first), ['{"n":3}'], 'the control: it is held')
  t.equal(first.paused.length, 1, 'and the client comes back')
  held.by = () => false
  const second = reader()
  t.match(await other.resume('mine', ids[2] ?? '', second, primed), { kind: 'replayed' })
  const [stored, last] = dataOf(second)
  t.equal(stored, '{"n":3}')
  t.match(JSON.parse(last ?? ''), { id: 'the call', error: { data: { reason: 'upstream_lost', outcome: 'unknown' } } })
  t.same(asked, ['one'])
})

t.test('a call that is answered while its process is asked ends with its answer', async (t) => {
  const { process, held } = await house(t)
  const [one, other] = [await process(), await process()]
  const { stream, ids } = three(one, 'mine', 'call', { ...primed, request: 1 })
  held.by = () => {
    stream.send({ answer: 1 })
    stream.finish()
    return false
  }
  const sink = reader()
  await other.resume('mine', ids.at(-1) ?? '', sink, primed)
  t.same(dataOf(sink), ['{"answer":1}'])
})

t.test("only ids of the session's own streams replay anything", async (t) => {
  const { process } = await house(t)
  const streams = await process()
  const mine = three(streams, 'mine')
  const also = three(streams, 'mine')
  const theirs = three(streams, 'theirs')
  const [stream = '', seq = '', proof = ''] = (mine.ids[1] ?? '').split('.')
  const [otherStream = '', , otherProof = ''] = (also.ids[1] ?? '').split('.')
  const foreign: Record<string, string> = {
    'of another session': theirs.ids[1] ?? '',
    'with the proof of another stream': `${stream}.${seq}.${otherProof}`,
    'with the stream of another proof': `${otherStream}.${seq}.${proof}`,
    'of the future': `${stream}.4.${proof}`,
    'of the past': `${stream}.0.${proof}`,
    negative: `${stream}.-1.${proof}`,
    'the same number in another spelling': `${stream}.01.${proof}`,
    'a number in letters': `${stream}.1e0.${proof}`,
    huge: `${stream}.${'9'.repeat(400)}.${proof}`,
    'of 10 kB': `${mine.ids[1] ?? ''}${'x'.repeat(10_000)}`,
    'of 10 kB in parts': `${mine.ids[1] ?? ''}.${'.'.repeat(10_000)}`,
    'with a forged proof': `${stream}.${seq}.${'A'.repeat(16)}`,
    'with a longer proof': `${stream}.${seq}.${proof}=`,
    'without a proof': `${stream}.${seq}.`,
    'without anything': '',
    'of an earlier gateway': '1',
    'of the other kind': `s${stream.slice(1)}.${seq}.${proof}`,
    'a key of the store': eventsKey('mine', stream)
  }
  for (const [what, id] of Object.entries(foreign)) {
    const sink = reader()
    t.equal((await streams.resume('mine', id, sink, primed)).kind, 'unknown', what)
    t.same([sink.events, sink.primes, sink.ended], [[], [], false], what)
  }
  t.ok(mine.stream.isAttached() && theirs.stream.isAttached(), 'nobody was disturbed')
  const sink = reader()
  t.match(await streams.resume('mine', mine.ids[1] ?? '', sink, primed), { kind: 'connected', of: 'call' })
  t.same(dataOf(sink), ['{"n":2}', '{"n":3}'])
})

t.test('a call answered meanwhile is replayed from the store, and is then over', async (t) => {
  const { process } = await house(t)
  const streams = await process()
  const { stream, ids } = three(streams, 'a')
  stream.finish()
  t.equal(streams.size, 0, 'nothing of it stays in memory')
  for (const [at, id] of ids.slice(0, 3).entries()) {
    const sink = reader()
    t.equal((await streams.resume('a', id, sink, primed)).kind, 'replayed')
    t.same(dataOf(sink), ['{"n":1}', '{"n":2}', '{"n":3}'].slice(at))
    t.same(
      sink.events.map((event) => event.id),
      ids.slice(at + 1),
      'under the ids that they had'
    )
    t.ok(sink.ended)
  }
  const sink = reader()
  t.equal((await streams.resume('a', ids[3] ?? '', sink, primed)).kind, 'over', 'nothing is left to say')
  t.same([sink.events, sink.ended], [[], false])
  t.equal((await streams.resume('b', ids[1] ?? '', reader(), primed)).kind, 'unknown')
})

t.test('numbers of many digits and any other text are replayed unchanged', async (t) => {
  const { process } = await house(t)
  const streams = await process()
  const stream = streams.open('a', 'call', primed)
  const sink = reader()
  stream.attach(sink)
  stream.prime()
  const message = JSON.parse('{"text":"\\u2028\\r\\n:\\u0000\\ud800"}') as Record<string, unknown>
  message['big'] = (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON('123456789012345678901234567890.5')
  stream.send(message)
  stream.finish()
  const late = reader()
  await streams.resume('a', sink.primes[0] ?? '', late, primed)
  t.same(dataOf(late), dataOf(sink))
  t.match(dataOf(late)[0], /"big":123456789012345678901234567890\.5/)
})

t.test(
  'at another process the client of a running call gets the stored events, and is told to come back',
  async (t) => {
    const { process } = await house(t)
    const [here, there] = [await process(), await process()]
    const { stream, ids } = three(here, 'a')
    const first = reader()
    t.equal((await there.resume('a', ids[1] ?? '', first, primed)).kind, 'replayed')
    t.same(dataOf(first), ['{"n":2}', '{"n":3}'])
    t.same(
      first.paused.map(({ id }) => id),
      [ids[3]]
    )
    const idle = reader()
    t.equal((await there.resume('a', first.lastId, idle, primed)).kind, 'replayed')
    t.same([idle.events, idle.paused.length], [[], 1], 'nothing new: come back again')
    stream.send({ n: 4 })
    stream.finish()
    const second = reader()
    t.equal((await there.resume('a', idle.lastId, second, primed)).kind, 'replayed')
    t.same([dataOf(second), second.paused, second.ended], [['{"n":4}'], [], true])
    t.equal((await there.resume('a', second.lastId, reader(), primed)).kind, 'over')

    const old = three(here, 'a', 'call', { primes: false })
    const third = reader()
    await there.resume('a', old.ids[0] ?? '', third, { primes: false })
    t.same([third.primes, third.paused, third.ended], [[], [], true], 'an legacy client is given no event without data')
  }
)

t.test('the stream of a session goes on at the process that the client comes back to', async (t) => {
  const { process } = await house(t)
  const [before, after] = [await process(), await process()]
  const { ids, stream } = three(before, 'a', 'session')
  before.leave()
  t.notOk(stream.isAttached())
  before.close()
  const sink = reader()
  const resumed = await after.resume('a', ids[1] ?? '', sink, primed)
  t.same(dataOf(sink), ['{"n":2}', '{"n":3}'])
  if (resumed.kind !== 'continued') return t.fail(resumed.kind)
  resumed.stream.prime()
  resumed.stream.send({ n: 4 })
  t.same(dataOf(sink).at(-1), '{"n":4}')
  const again = reader()
  t.match(await after.resume('a', sink.lastId, again, primed), { kind: 'connected', of: 'session' })
})

t.test('what comes on the old stream of a session while its client comes back elsewhere is not lost', async (t) => {
  const { process, store, held } = await house(t)
  const before = await process()
  const { ids, stream } = three(before, 'a', 'session')
  before.leave()
  let reads = 0
  const after = await process(undefined, {
    ...store,
    async entries(key) {
      const read = await store.entries(key)
      // The home of the session has told the old stream something more, and hears of the new one after that.
      if (++reads === 2) {
        stream.send({ n: 4 })
        stream.finish()
      }
      return read
    }
  })
  const sink = reader()
  const resumed = await after.resume('a', ids[3] ?? '', sink, primed, undefined, async (next) => next.send({ n: 5 }))
  t.equal(resumed.kind, 'continued')
  t.same(dataOf(sink), ['{"n":4}', '{"n":5}'], 'in their order')

  const killed = await process()
  const left = three(killed, 'b', 'session')
  const asked: string[] = []
  held.by = (node) => {
    // The last that it said has just reached the store.
    if (asked.push(node) === 1) left.stream.send({ n: 4 })
    return false
  }
  reads = 2
  const last = reader()
  t.equal((await after.resume('b', left.ids[3] ?? '', last, primed)).kind, 'continued')
  t.same([dataOf(last), asked, reads], [['{"n":4}'], ['one'], 5], 'of a process that is gone nothing more is awaited')

  delete held.by
  const alive = setInterval(() => {}, 1_000)
  t.teardown(() => clearInterval(alive))
  const { ids: silent } = three(killed, 'c', 'session')
  t.equal((await after.resume('c', silent[3] ?? '', reader(), primed)).kind, 'continued', 'nor any for ever')
})

t.test('a session stream that was replaced by another is over', async (t) => {
  const { process } = await house(t)
  const streams = await process()
  const { ids, stream } = three(streams, 'a', 'session')
  stream.finish()
  const sink = reader()
  t.equal((await streams.resume('a', ids[2] ?? '', sink, primed)).kind, 'replayed')
  t.same(dataOf(sink), ['{"n":3}'])
  t.equal(
    (await streams.resume('a', ids[3] ?? '', reader(), primed)).kind,
    'over',
    'else two connections of one client would push each other out for ever'
  )
})

t.test('ten minutes after its last event a call stream is unknown, and a session stream begins again', async (t) => {
  const { process, time } = await house(t)
  const streams = await process()
  const call = three(streams, 'a')
  const own = three(streams, 'a', 'session')
  call.stream.finish()
  own.attachment.detach()
  streams.leave()
  time.pass(eventsTtlMs - 1)
  const early = reader()
  t.equal((await streams.resume('a', call.ids[0] ?? '', early, primed)).kind, 'replayed')
  t.equal(early.events.length, 3)
  time.pass(2)
  const late = reader()
  t.equal((await streams.resume('a', call.ids[0] ?? '', late, primed)).kind, 'unknown')
  const other = await process()
  t.equal((await other.resume('a', own.ids[0] ?? '', late, primed)).kind, 'continued')
  t.same(late.events, [])
})

t.test('a session stream without a connection is dropped after a while; a call stream is not', async (t) => {
  const { process, time } = await house(t)
  const streams = await process(20)
  const call = three(streams, 'a')
  const own = three(streams, 'a', 'session')
  const heard = three(streams, 'b', 'session')
  call.attachment.detach()
  own.attachment.detach()
  t.equal(streams.size, 3)
  time.pass(21)
  await until('it is swept', () => streams.size === 2)
  t.ok(heard.stream.isAttached())
  const sink = reader()
  t.match(await streams.resume('a', call.ids[3] ?? '', sink, primed), { kind: 'connected', of: 'call' })
  call.stream.send({ n: 4 })
  t.same(dataOf(sink), ['{"n":4}'])
  t.equal(
    (await streams.resume('a', own.ids[1] ?? '', reader(), primed)).kind,
    'continued',
    'and the client may come back all the same'
  )
})

t.test('nothing is stored for an ended session, but its calls can still end on their streams', async (t) => {
  const { process, store } = await house(t)
  const streams = await process()
  const { stream, sink, ids } = three(streams, 'a')
  const other = three(streams, 'b')
  const kept = async ({ ids }: { ids: string[] }, session: string): Promise<number> =>
    (await store.entries(eventsKey(session, ids[0]?.split('.')[0] ?? ''))).length
  t.equal(await kept({ ids }, 'a'), 4)
  streams.drop('a')
  t.equal(streams.size, 1, 'the other one')
  stream.send({ error: 'the session ended' })
  stream.finish()
  t.same(dataOf(sink).at(-1), '{"error":"the session ended"}')
  t.ok(sink.ended)
  t.equal(await kept({ ids }, 'a'), 0, 'nor in the store')
  t.equal(await kept(other, 'b'), 4, 'what belongs to others stays')
})

t.test('an entry of the store that is no event is not sent', async (t) => {
  const { process, store } = await house(t)
  const streams = await process()
  const { stream, ids } = three(streams, 'a')
  const key = eventsKey('a', ids[0]?.split('.')[0] ?? '')
  const hostile = [
    '',
    ':',
    'x',
    '9',
    '9:',
    '9:x',
    '9:{}\n\ndata: {"forged":1}',
    '9:{}\r',
    '-9:{}',
    '1e3:{}',
    '[9,{}]',
    'null',
    '2:{"n":"a second time"}'
  ]
  for (const entry of hostile) await store.append(key, entry, { ttlMs: 60_000, keep: 100 })
  stream.finish()
  const sink = reader()
  t.equal((await streams.resume('a', ids[0] ?? '', sink, primed)).kind, 'replayed')
  t.same(dataOf(sink), ['{"n":1}', '{"n":2}', '{"n":3}'])
})

t.test('while the store is away, streams of this process go on and can be resumed', async (t) => {
  const { process, store } = await house(t)
  const away = (): Promise<never> => Promise.reject(new GatewayError('unavailable', 'away'))
  const streams = await process(undefined, { ...store, append: away, entries: away })
  const { stream, ids } = three(streams, 'a')
  const sink = reader()
  t.match(await streams.resume('a', ids[1] ?? '', sink, primed), { kind: 'connected' })
  stream.send({ n: 4 })
  t.same(dataOf(sink), ['{"n":2}', '{"n":3}', '{"n":4}'])
  stream.finish()
  t.ok(sink.ended)
  await t.rejects(streams.resume('a', ids[1] ?? '', reader(), primed), { code: 'unavailable' })
})

t.test('when the process stops, listeners are told to come back and calls may end', async (t) => {
  const { process } = await house(t)
  const streams = await process()
  const call = three(streams, 'a')
  const own = three(streams, 'a', 'session')
  streams.leave()
  t.same(own.sink.paused, [{ id: own.ids[3], retryMs: 3_000 }])
  t.notOk(call.sink.ended)
  const late = streams.open('b', 'session', primed)
  const sink = reader()
  late.attach(sink)
  late.prime()
  late.finish()
  t.ok(sink.ended, 'whoever comes too late is not kept')
  call.stream.send({ n: 4 })
  call.stream.finish()
  t.same(dataOf(call.sink).at(-1), '{"n":4}')
})
