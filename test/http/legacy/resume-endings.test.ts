// Coming back for a stream that the store has: what is kept is sent to nobody who would not be let in now, to no
// session that has ended, and not many times at once. The store answers when the test lets it: whatever happens
// meanwhile, happens while it is asked.

import t, { type Test } from 'tap'
import { acmeGateway, keyOf, type AcmeGateway } from '../../kit/acme-gateway.ts'
import { legacyClient, send, type Answer, type LegacyClient } from '../../kit/client.ts'
import { listenEvents, postEvents } from '../../kit/events.ts'
import { configOf } from '../../kit/gateway.ts'
import { until } from '../../kit/until.ts'
import { GatewayError } from '../../../src/protocol/messages.ts'
import type { Store } from '../../../src/store/port.ts'
import { createSqliteStore } from '../../../src/store/sqlite.ts'
import { quiet } from '../../store/kit.ts'

interface Held extends AcmeGateway {
  /** From now on, the store keeps those who ask for events waiting. */
  hold(): void
  /** Events that are kept in the store, over all streams. */
  kept(): Promise<number>
  /** How many wait. */
  readonly waiting: number
  release(): void
}

// The store has lists of other kinds, too.
const eventsPrefix = 'events:'

const inMemory = (): Promise<Store> => createSqliteStore({ path: ':memory:', clock: Date, log: quiet })

async function acme(t: Test): Promise<Held> {
  const store = await inMemory()
  const waiting: Array<() => void> = []
  let holding = false
  const keys = new Set<string>()
  const slow: Store = {
    ...store,
    async append(key, entry, options) {
      if (key.startsWith(eventsPrefix)) keys.add(key)
      await store.append(key, entry, options)
    },
    async entries(key) {
      if (holding)
        await new Promise<void>((resolve) => {
          waiting.push(resolve)
        })
      return await store.entries(key)
    }
  }
  const made = await acmeGateway(t, { overrides: { store: slow, keepAliveMs: 50 } })
  return {
    ...made,
    get log() {
      return made.log
    },
    hold() {
      holding = true
    },
    kept: async () => (await Promise.all([...keys].map((key) => store.entries(key)))).flat().length,
    get waiting() {
      return waiting.length
    },
    release() {
      holding = false
      for (const go of waiting.splice(0)) go()
    }
  }
}

/** A call that has ended. @returns where its first events can be missed from */
async function ended(acme: Held, client: LegacyClient): Promise<string> {
  const stream = await postEvents(acme.url(), client, 'the call', 'tools/call', {
    name: 'progress',
    arguments: { steps: 3 },
    _meta: { progressToken: 'p' }
  })
  await stream.ended
  return stream.events()[0]?.id ?? ''
}

const comeBack = (acme: Held, client: LegacyClient, id: string): Promise<Answer> =>
  send(acme.url(), { method: 'GET', headers: { ...client.headers, accept: 'text/event-stream', 'last-event-id': id } })

t.test('to a session that ends meanwhile nothing is sent; without its end, all of it', async (t) => {
  const made = await acme(t)
  const [ending, staying] = [await legacyClient(made.url(), keyOf.ada), await legacyClient(made.url(), keyOf.ada)]
  const ids = [await ended(made, ending), await ended(made, staying)]
  made.hold()
  const answers = [comeBack(made, ending, ids[0] ?? ''), comeBack(made, staying, ids[1] ?? '')]
  await until('both are looked for', () => made.waiting === 2)
  t.equal((await ending.end()).status, 204)
  made.release()
  const [gone, whole] = await Promise.all(answers)
  t.equal(gone?.status, 404)
  t.notMatch(gone?.text, /progress|the call/)
  t.equal(whole?.status, 200)
  t.equal(whole?.messages.length, 4)
})

t.test('to a caller whose key is taken away meanwhile nothing is sent but the refusal', async (t) => {
  const made = await acme(t)
  const [ada, bob] = [await legacyClient(made.url(), keyOf.ada), await legacyClient(made.url(), keyOf.bob)]
  const ids = [await ended(made, ada), await ended(made, bob)]
  made.hold()
  const answers = [comeBack(made, ada, ids[0] ?? ''), comeBack(made, bob, ids[1] ?? '')]
  await until('both are looked for', () => made.waiting === 2)
  made.reload(
    configOf({
      upstreams: { up: { type: 'http', url: made.upstream.url } },
      endpoints: { default: { upstreams: ['up'], prefix: '' } },
      auth: { keys: [{ name: 'bob', key: keyOf.bob }] }
    })
  )
  // By then, everybody has been looked at again.
  for (let n = 0; n < 5; n++) t.equal((await bob.request('ping')).status, 200)
  made.release()
  const [refused, whole] = await Promise.all(answers)
  t.equal(refused?.status, 401)
  t.match(refused?.headers['www-authenticate'], /^Bearer/)
  t.notMatch(refused?.text, /progress|the call/)
  t.equal(whole?.status, 200)
  t.match(whole?.headers['content-type'], /^text\/event-stream/)
  t.equal(whole?.messages.length, 4)
})

t.test('keep-alives that come while the store is asked do not answer for it', async (t) => {
  const made = await acme(t)
  const client = await legacyClient(made.url(), keyOf.ada)
  const id = await ended(made, client)
  const listening = await client.listen()
  const heard = await listenEvents(made.url(), await legacyClient(made.url(), keyOf.bob))
  made.hold()
  const answer = comeBack(made, client, id)
  await until('it is looked for', () => made.waiting === 1)
  const beats = (): number => heard.text().split('keep-alive').length
  const before = beats()
  await until('two beats have passed', () => beats() >= before + 2)
  made.release()
  const { status, headers, messages, text } = await answer
  t.same([status, headers['content-type'], messages.length], [200, 'text/event-stream; charset=utf-8', 4])
  t.ok(text.startsWith(': open\n'), text.slice(0, 40))
  listening.close()
  heard.cut()
})

t.test('at most four at a time for one session', async (t) => {
  const made = await acme(t)
  const [ada, bob] = [await legacyClient(made.url(), keyOf.ada), await legacyClient(made.url(), keyOf.bob)]
  const [id, other] = [await ended(made, ada), await ended(made, bob)]
  made.hold()
  const running = Array.from({ length: 4 }, () => comeBack(made, ada, id))
  await until('four are looked for', () => made.waiting === 4)
  const fifth = await comeBack(made, ada, id)
  t.equal(fifth.status, 429)
  t.equal(fifth.headers['retry-after'], '1')
  t.equal(fifth.json.error.data.reason, 'too_many')
  t.equal((await ada.request('ping')).status, 200)
  const theirs = comeBack(made, bob, other)
  await until('others are not counted', () => made.waiting === 5)
  made.release()
  for (const { status, messages } of await Promise.all([...running, theirs]))
    t.same([status, messages.length], [200, 4])
  t.equal((await comeBack(made, ada, id)).messages.length, 4, 'and then there is room')
})

t.test('what is kept of the streams that are open when their session ends is deleted with it', async (t) => {
  const made = await acme(t)
  const [ending, staying] = [await legacyClient(made.url(), keyOf.ada), await legacyClient(made.url(), keyOf.bob)]
  const others = await listenEvents(made.url(), staying)
  await until('it is primed', async () => others.lastId() !== undefined && (await made.kept()) === 1)
  const own = await listenEvents(made.url(), ending)
  const call = await postEvents(made.url(), ending, 'the call', 'tools/call', {
    name: 'slow',
    _meta: { progressToken: 'p' }
  })
  await call.next('progress', ({ params }) => params?.progress === 0)
  await until('all is kept', async () => own.lastId() !== undefined && (await made.kept()) === 4)
  t.equal((await ending.end()).status, 204)
  await Promise.all([own.ended, call.ended])
  t.match(
    call.messages().at(-1),
    { error: { data: { reason: 'session_unknown' } } },
    'the call still says how it ended'
  )
  await until('what it had is deleted', async () => (await made.kept()) <= 1)
  t.equal(await made.kept(), 1, 'that of others stays')
  others.cut()
})

t.test(
  'where the store is away after the first events were sent the connection ends, and the client comes back',
  async (t) => {
    const store = await inMemory()
    const before = await acmeGateway(t, { overrides: { store } })
    let [reads, awayAt] = [0, 2]
    const flaky: Store = {
      ...store,
      async entries(key) {
        if (key.startsWith(eventsPrefix) && ++reads === awayAt) throw new GatewayError('unavailable', 'away')
        return await store.entries(key)
      }
    }
    const after = await acmeGateway(t, { overrides: { store: flaky, keepAliveMs: 50 } })
    const client = await legacyClient(before.url(), keyOf.ada)
    await client.request('tools/call', { name: 'echo' })
    await until('the upstream can be heard', () => before.upstream.allListening())
    const first = await listenEvents(before.url(), client)
    await until('it is primed', () => first.lastId())
    const id = first.lastId()
    before.upstream.broadcast({
      jsonrpc: '2.0',
      method: 'notifications/message',
      params: { level: 'error', data: 'one' }
    })
    await until('it is heard', () => first.messages().length === 1)

    const broken = await listenEvents(after.url(), client, id)
    await until('it ends', () => broken.closed)
    t.match([broken.status, broken.messages()], [200, [{ params: { data: 'one' } }]])
    t.ok(after.log.some(({ msg }) => /what a stream had missed could not be sent/.test(String(msg))))
    awayAt = 0
    const whole = await listenEvents(after.url(), client, id)
    await until('the control: it goes on', () => whole.text().includes('keep-alive') && whole.messages().length === 1)
    t.equal(whole.closed, false)
    whole.cut()
    first.cut()
  }
)
