// The keys of a login front are one set for all processes, whichever of them makes or replaces it, and however long it
// is held up.

import { randomBytes } from 'node:crypto'
import pino from 'pino'
import t, { type Test } from 'tap'
import { tenantId } from '../../src/protocol/messages.ts'
import { createLoginKeys } from '../../src/login/keys.ts'
import { createLoginRecords } from '../../src/login/records.ts'
import type { Store } from '../../src/store/port.ts'
import { createSealer } from '../../src/store/seal.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { steadyClock } from '../../src/time/clock.ts'

const quiet = pino({ level: 'silent' })
const day = 24 * 60 * 60_000

/** Processes on one store, each of which can be held up before it writes. */
async function processes(t: Test) {
  const store = await createSqliteStore({ path: ':memory:', clock: Date, log: quiet })
  t.teardown(() => store.close())
  const sealer = await createSealer({ store, randomBytes, timer: steadyClock.timer, log: quiet })
  let now = Date.now()
  const process = () => {
    const state = { held: undefined as Promise<void> | undefined, writes: 0 }
    const set: Store['set'] = async (...given) => {
      state.writes += 1
      await state.held
      return await store.set(...given)
    }
    const own = new Proxy(store, { get: (of, name) => (name === 'set' ? set : Reflect.get(of, name)) })
    const records = createLoginRecords(tenantId('acme'), 'https://idp.example', {
      store: own,
      sealer,
      epochOf: async () => 1
    })
    return Object.assign(state, { keysOf: createLoginKeys(records, { now: () => now }) })
  }
  return { one: process(), two: process(), three: process(), pass: (ms: number) => void (now += ms) }
}

t.test('a process that is held up before it writes takes what another one has written', async (t) => {
  const { one, two, three, pass } = await processes(t)
  for (const what of ['made', 'replaced']) {
    const { promise, resolve } = Promise.withResolvers<void>()
    one.held = promise
    const late = one.keysOf()
    const other = await two.keysOf()
    pass(20_000)
    one.held = undefined
    resolve()
    t.same(await late, other, what)
    t.same(await three.keysOf(), other)
    t.equal(other.keys.length, what === 'made' ? 1 : 2)
    t.same([one.writes, two.writes, three.writes], what === 'made' ? [1, 1, 0] : [2, 2, 0])
    pass(31 * day)
  }
})
