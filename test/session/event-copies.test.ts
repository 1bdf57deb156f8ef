// The copies of streamed events in the store: only what a client may come back for, within the limits of a session and
// of the process.

import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { createMemoryAccount } from '../../src/limits/memory.ts'
import { createStreams, type Streams, type StreamsOptions } from '../../src/session/streams.ts'
import type { ClientStream } from '../../src/session/stream.ts'
import { eventsTtlMs } from '../../src/store/keys.ts'
import type { Store } from '../../src/store/port.ts'
import { createSealer } from '../../src/store/seal.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { quiet } from '../store/kit.ts'
import { clock, reader, type Reader, type TestClock } from './reader.ts'

const [primed, plain] = [{ primes: true }, { primes: false }]

interface Setup {
  readonly streams: Streams
  /** Another process on the same store. */
  readonly other: Streams
  readonly time: TestClock
  /** What was copied to the store, in order, whatever the stream. */
  readonly copies: string[]
}

async function setup(t: Test, copyLimits?: StreamsOptions['copyLimits']): Promise<Setup> {
  const time = clock()
  const store = await createSqliteStore({ path: ':memory:', clock: time, log: quiet })
  const sealer = await createSealer({ store, randomBytes, timer: (ms, run) => setTimeout(run, ms), log: quiet })
  const copies: string[] = []
  const counted: Store = {
    ...store,
    append(key, entry, options) {
      copies.push(entry)
      return store.append(key, entry, options)
    }
  }
  const process = (): Streams =>
    createStreams({
      store: counted,
      sealer,
      clock: time,
      randomBytes,
      log: quiet,
      holders: { node: 'one', isHeld: async (_, stream) => all.some((each) => each.has(stream)) },
      ...(copyLimits === undefined ? {} : { copyLimits })
    })
  const all = [process(), process()] as const
  const [streams, other] = all
  t.teardown(async () => {
    streams.close()
    other.close()
    sealer.close()
    await store.close()
  })
  return { streams, other, time, copies }
}

function opened(
  streams: Streams,
  session: string,
  wishes: Parameters<Streams['open']>[2],
  kind: 'call' | 'session' = 'call'
): { stream: ClientStream; sink: Reader } {
  const stream = streams.open(session, kind, wishes)
  const sink = reader()
  stream.attach(sink)
  stream.prime()
  return { stream, sink }
}
/** So that each copy is `{"x":"…"}` of this many characters with its number of one digit and the colon. */
const sized = (length: number): { x: string } => ({ x: 'x'.repeat(length - 2 - '{"x":""}'.length) })
const dataOf = ({ events }: Reader): string[] => events.map(({ data }) => data)
const turn = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve)
  })

t.test('the only answer on a stream is not copied where no id came before it', async (t) => {
  const { streams, copies } = await setup(t)
  const alone = opened(streams, 'a', plain)
  alone.stream.send({ n: 1 })
  alone.stream.finish()
  await turn()
  t.same(copies, [])
  t.same(dataOf(alone.sink), ['{"n":1}'], 'the client has it all the same')
  opened(streams, 'a', plain).stream.finish()
  t.same(copies, [], 'nor is the end of nothing')

  const asked = opened(streams, 'a', primed)
  asked.stream.send({ n: 1 })
  asked.stream.finish()
  t.same(copies.splice(0), ['0:', '1:{"n":1}', 'end'], 'a primed client can come back for it')
  const own = opened(streams, 'a', plain, 'session')
  own.stream.send({ n: 1 })
  t.same(copies, ['0:{"n":1}'], 'and what is told on the stream of a session is never the last')
})

t.test('messages ahead of the answer are copied, at once or with what follows', async (t) => {
  const { streams, other, copies } = await setup(t)
  const { stream, sink } = opened(streams, 'a', plain)
  stream.send({ n: 1 })
  await turn()
  t.same(copies, ['0:{"n":1}'])
  const meanwhile = reader()
  t.equal(
    (await other.resume('a', sink.lastId, meanwhile, plain)).kind,
    'replayed',
    'whoever comes back elsewhere meanwhile is not a stranger'
  )
  stream.send({ n: 2 })
  stream.finish()
  const after = reader()
  await other.resume('a', sink.events[0]?.id ?? '', after, plain)
  t.same(dataOf(after), ['{"n":2}'])

  copies.length = 0
  const quick = opened(streams, 'a', plain)
  for (const n of [1, 2]) quick.stream.send({ n })
  quick.stream.finish()
  await turn()
  t.same(copies, ['0:{"n":1}', '1:{"n":2}', 'end'], 'each once, in order')
})

t.test('the copies of one session are limited until they expire; other sessions have their own limit', async (t) => {
  const { streams, other, time, copies } = await setup(t, { session: 100, process: 1_000 })
  const { stream, sink } = opened(streams, 'a', primed)
  stream.send(sized(60))
  stream.send(sized(60))
  stream.send(sized(30))
  t.same(
    copies.map(({ length }) => length),
    [2, 60, 30],
    'what does not fit is left out, what fits is not'
  )
  t.equal(sink.events.length, 3, 'the client misses nothing')
  const live = reader()
  await streams.resume('a', sink.primes[0] ?? '', live, primed)
  t.same(dataOf(live), dataOf(sink), 'nor does it when it comes back here')
  const elsewhere = reader()
  await other.resume('a', sink.primes[0] ?? '', elsewhere, primed)
  t.same(
    dataOf(elsewhere),
    [0, 2].map((at) => dataOf(sink)[at])
  )

  copies.length = 0
  opened(streams, 'b', primed).stream.send(sized(60))
  t.equal(copies.length, 2, 'another session')
  const second = opened(streams, 'a', primed).stream
  second.send(sized(60))
  t.equal(copies.length, 3, 'another stream of the same')
  time.pass(eventsTtlMs + 1)
  second.send(sized(60))
  t.equal(copies.length, 4, 'when the first copies are gone')
})

t.test(
  'the copies of all sessions together are limited, those of a tenant to half, of a caller to a quarter',
  async (t) => {
    const { streams, time, copies } = await setup(t, { session: 100, process: 160 })
    const memory = createMemoryAccount()
    /** @returns whether it was copied */
    function send(session: string, tenant: string, caller: string, length: number): boolean {
      const before = copies.length
      opened(streams, session, { ...plain, memory: memory.share(tenant, caller) }, 'session').stream.send(sized(length))
      return copies.length > before
    }
    t.ok(send('a', 'acme', 'ada', 40))
    t.notOk(send('b', 'acme', 'ada', 10), 'another session of the same caller')
    t.ok(send('c', 'acme', 'bob', 40), 'another caller')
    t.notOk(send('d', 'acme', 'eve', 10), 'a third one of the same tenant')
    t.ok(send('e', 'other', 'ada', 40), 'another tenant')
    t.ok(send('f', 'third', 'ada', 20))
    t.notOk(send('g', 'fourth', 'ada', 30), 'more than all may have')
    t.ok(send('h', 'fourth', 'ada', 20))
    time.pass(eventsTtlMs + 1)
    t.ok(send('a', 'acme', 'ada', 40), 'when the first copies are gone')
    t.notOk(send('b', 'acme', 'ada', 10))
  }
)

t.test('the end of a stream is copied where something of it was, whatever the limit', async (t) => {
  const { streams, other, copies } = await setup(t, { session: 63, process: 1_000 })
  const { stream, sink } = opened(streams, 'a', primed)
  stream.send(sized(60))
  stream.finish()
  t.equal(copies.at(-1), 'end')
  t.equal((await other.resume('a', sink.lastId, reader(), primed)).kind, 'over')
  copies.length = 0
  const none = opened(streams, 'a', primed)
  none.stream.send(sized(60))
  none.stream.finish()
  t.same(copies, [])
  t.equal((await other.resume('a', none.sink.lastId, reader(), primed)).kind, 'unknown')
})

t.test('a call whose answer could not be copied has no end in the store: it is lost, not over', async (t) => {
  const { streams, other, copies } = await setup(t, { session: 120, process: 1_000 })
  async function comeBack(answer: { x: string }) {
    const { stream, sink } = opened(streams, answer.x, { ...primed, request: 7 })
    for (const message of [sized(40), answer]) stream.send(message)
    stream.finish()
    const late = reader()
    const { kind } = await other.resume(answer.x, sink.events[0]?.id ?? '', late, primed)
    t.equal((await other.resume(answer.x, sink.lastId, reader(), primed)).kind, 'over', 'whoever had the answer')
    return { kind, last: JSON.parse(dataOf(late).at(-1) ?? '') as unknown }
  }
  t.same(await comeBack(sized(30)), { kind: 'replayed', last: sized(30) }, 'the control')
  t.equal(copies.at(-1), 'end')
  t.match(await comeBack(sized(90)), {
    kind: 'replayed',
    last: { id: 7, error: { data: { reason: 'upstream_lost', outcome: 'unknown' } } }
  })
})
