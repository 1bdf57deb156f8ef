// A long answer goes from the home of a session to the process that its client talks to in parts. Where one of them is
// lost, or there is no memory for it, the client gets an error, and never the rest as if it were the answer.

import t, { type Test } from 'tap'
import pino from 'pino'
import { createSessionHomes, type RunForwarded, type SessionHomesOptions } from '../../src/http/legacy/session-homes.ts'
import { createMemoryAccount, holdMemory } from '../../src/limits/memory.ts'
import type { LiveSession } from '../../src/session/live-sessions.ts'
import { wire } from './bus-kit.ts'
import { ada, endpoint } from './kit.ts'

type Homes = ReturnType<typeof createSessionHomes>
type Context = Parameters<Homes['forward']>[0]

const mebi = 1024 * 1024
/** Two parts of two million characters, and what is left. */
const answer = JSON.stringify({ x: 'A'.repeat(2 * mebi) + 'B'.repeat(2 * mebi) + 'C'.repeat(1_000) })
const held = 1_000

/**
 * @param callerBytes for the caller at the process that its client talks to
 * @param lost which of the two parts does not arrive
 * @param homeBytes for the caller, of what waits at the home to leave
 */
async function forwarded(
  t: Test,
  callerBytes: number,
  lost = 0,
  text = answer,
  { homeBytes = 64 * mebi, run = () => Promise.resolve(text) }: { homeBytes?: number; run?: RunForwarded } = {}
) {
  const ofHome = { memory: createMemoryAccount(homeBytes * 4) }
  const made = await wire(t, { ackMs: 10_000, silenceMs: 60_000 }, ofHome)
  let large = 0
  made.lose = (_channel, message) => message.length > mebi && ++large === lost
  const session = { key: 'key', session: { record: { home: 'two' } } } as LiveSession
  const homesOf = (bus: typeof made.one): Homes =>
    createSessionHomes(
      {
        bus,
        store: made.store,
        sessions: { find: () => Promise.resolve(session.session) },
        live: { use: () => session },
        memory: createMemoryAccount(),
        contextOf: Object.assign(() => ({}), { load: () => Promise.resolve({}) }),
        isDraining: () => false,
        log: pino({ level: 'silent' })
      } as unknown as SessionHomesOptions,
      { becameHome() {} }
    )
  homesOf(made.two).serve(run)
  // A caller has a quarter.
  const memory = holdMemory(createMemoryAccount(callerBytes * 4).share(ada.tenant, 'ada'))
  memory.require(held, 'The request')
  const context = {
    tenant: { id: ada.tenant },
    endpoint: { name: endpoint },
    principal: { ...ada, scopes: new Set() },
    requestId: 'r',
    snapshot: { limits: { sessionMaxMs: 1_000 } },
    memory
  } as unknown as Context
  const request = { id: 1, request: { method: 'tools/call', params: { name: 'big' } } } as const
  const { signal } = new AbortController()
  const result = homesOf(made.one).forward(context, session, request, true, { notify() {}, signal })
  return { result, memory }
}

t.test('an answer whose parts have all come is whole, and counts to its request', async (t) => {
  const { result, memory } = await forwarded(t, 64 * mebi)
  t.ok((await result)?.text === answer)
  t.equal(memory.bytes, held + 2 * 2 * 2 * mebi)
})

t.test('an answer in one message is whole', async (t) => {
  const { result, memory } = await forwarded(t, mebi, 0, '{}')
  t.same(await result, { text: '{}' })
  t.equal(memory.bytes, held)
})

t.test('a part for which there is no memory ends the call, and nothing is kept of it', async (t) => {
  const { result, memory } = await forwarded(t, 6 * mebi)
  await t.rejects(result, { code: 'too_many', message: /has been made/, data: { outcome: 'unknown' } })
  t.equal(memory.bytes, held)
})

t.test('a part that is lost on the way is said again as long as it is kept; else the call ends', async (t) => {
  const first = await forwarded(t, 64 * mebi, 1)
  // The second part has taken its place.
  await t.rejects(first.result, { code: 'upstream_lost', message: /has been made/, data: { outcome: 'unknown' } })
  t.equal(first.memory.bytes, held, 'nothing is kept of it')
  const second = await forwarded(t, 64 * mebi, 2)
  t.ok((await second.result)?.text === answer)
})

t.test('where the home has no memory for a part, the call ends with too_many', async (t) => {
  const { result, memory } = await forwarded(t, 64 * mebi, 0, answer, { homeBytes: mebi })
  await t.rejects(result, { code: 'too_many', message: /has been made/, data: { outcome: 'unknown' } })
  t.equal(memory.bytes, held)
})

t.test('a server request for which the home has no memory is not taken for one that the client gets', async (t) => {
  const pushed: boolean[] = []
  const ask = (text: string) =>
    ({ jsonrpc: '2.0', id: 'q', method: 'sampling/createMessage', params: { text } }) as const
  const { result } = await forwarded(t, 64 * mebi, 0, answer, {
    homeBytes: mebi,
    run: (_context, _session, _message, push) => {
      pushed.push(push(ask('short')), push(ask('x'.repeat(2 * mebi))))
      return Promise.resolve('{}')
    }
  })
  t.same(await result, { text: '{}' })
  t.same(pushed, [true, false])
})
