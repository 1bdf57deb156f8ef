// The versions in the store: what is kept of them, what is forgotten, and that it can be read from the start.

import t from 'tap'
import { createJournal } from '../../src/control/journal.ts'
import { controlVersionKey, versionsKept, versionsPerTenant } from '../../src/store/keys.ts'
import { createSealer } from '../../src/store/seal.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { randomBytes } from 'node:crypto'
import { steadyClock, wallClock } from '../../src/time/clock.ts'
import { quiet, recorded } from '../store/kit.ts'

const about = {
  author: { name: 'ops', role: 'platform-admin' },
  action: 'test',
  at: '2026-07-28T09:00:00Z'
}

async function start(t: { teardown(run: () => unknown): unknown }) {
  const store = await createSqliteStore({ path: ':memory:', clock: wallClock, log: quiet })
  const sealer = await createSealer({ store, randomBytes, timer: steadyClock.timer, log: quiet })
  t.teardown(async () => {
    sealer.close()
    await store.close()
  })
  return { store, sealer, open: (log = quiet) => createJournal({ store, sealer, log }) }
}

const textsIn = (journal: ReturnType<typeof createJournal>) =>
  Object.fromEntries([...journal.texts()].map(([name, { text }]) => [name, text]))

t.test('the last versions can be read, old ones go, and no text in use goes with them', async (t) => {
  const { store, open } = await start(t)
  const journal = open()
  await journal.pull()
  await journal.append(about, new Map([['first', 'stays']]))
  for (let n = 2; n <= versionsKept * 2 + 10; n++)
    t.ok(await journal.append(about, new Map([[`name ${n % 7}`, `text ${n}`]])))
  const last = journal.version
  t.equal(last, versionsKept * 2 + 10)
  t.equal((await journal.history(Infinity, 1_000)).length, versionsKept)
  t.equal(await journal.at(last - versionsKept), undefined)
  t.match(await journal.at(last - versionsKept + 1), new Map([['first', { text: 'stays' }]]))
  const left = await Promise.all(
    Array.from({ length: last }, async (_, at) => (await store.get(controlVersionKey(String(at + 1)))) !== '-')
  )
  t.equal(left[0], true, 'the record of what is in use')
  const own = 7 * versionsPerTenant + 1
  t.equal(left.filter(Boolean).length, own, 'and those of the last versions of each text, of which 100 are the last')
  const later = open()
  await later.pull()
  t.same(textsIn(later), textsIn(journal))
  t.equal(textsIn(later)['first'], 'stays')
  t.equal(later.version, last)
})

t.test('who changes one text again and again pushes out no version of another', async (t) => {
  const { store, open } = await start(t)
  const journal = open()
  await journal.pull()
  for (let n = 1; n <= 3; n++) await journal.append(about, new Map([['quiet', `quiet ${n}`]]))
  await journal.append(about, new Map([['removed', 'was here']]))
  await journal.append(about, new Map([['removed', undefined]]))
  for (let n = 6; n <= versionsKept * 2; n++) await journal.append(about, new Map([['noisy', `noisy ${n}`]]))
  const later = open()
  await later.pull()
  for (const each of [journal, later]) {
    t.same(each.versionsOf('quiet'), [1, 2, 3])
    t.equal(each.versionsOf('noisy').length, versionsPerTenant)
    t.same(
      (await each.history(Infinity, 50, ['quiet', 'removed'])).map(({ version }) => version),
      [5, 4, 3, 2, 1]
    )
    t.match(await each.at(2, ['quiet']), new Map([['quiet', { version: 2, text: 'quiet 2' }]]))
    t.match(await each.at(5, ['quiet', 'removed']), new Map([['quiet', { version: 3, text: 'quiet 3' }]]))
    t.match(await each.at(4, ['removed']), new Map([['removed', { version: 4, text: 'was here' }]]))
    t.same(await each.at(3, ['removed']), new Map(), 'it was not made yet')
    t.equal(await each.at(50, ['noisy']), undefined, 'that is forgotten')
    t.equal(await each.at(2), undefined, 'and so is what all were then')
  }
  const old = JSON.parse((await store.get(controlVersionKey('2'))) ?? '') as object
  t.notMatch(old, { places: {} }, 'an old record tells of its own texts only')
})

t.test('of two writers of one number one wins, and the other sees what it wrote', async (t) => {
  const { open } = await start(t)
  const [one, other] = [open(), open()]
  await Promise.all([one.pull(), other.pull()])
  const written = await Promise.all([
    one.append(about, new Map([['a', '1']])),
    other.append(about, new Map([['a', '2']]))
  ])
  t.same(
    written.map(Number).sort((a, b) => a - b),
    [0, 1]
  )
  const [loser, winner] = written[0] ? [other, one] : [one, other]
  t.equal(await loser.pull(), 'grown')
  t.same(textsIn(loser), textsIn(winner))
  t.equal(await loser.pull(), 'same')
})

t.test('what cannot be opened is left out and told, and the rest is there', async (t) => {
  const { store, open } = await start(t)
  const journal = open()
  await journal.pull()
  await journal.append(about, new Map([['good', '1']]))
  await journal.append(about, new Map([['bad', '2']]))
  const place = controlVersionKey('2')
  const record = JSON.parse((await store.get(place)) ?? '') as { sealed: Record<string, string> }
  await store.set(place, JSON.stringify({ ...record, sealed: { bad: 'x'.repeat(60) } }))
  const { log, lines } = recorded()
  const later = open(log)
  await later.pull()
  t.same(textsIn(later), { good: '1', bad: undefined })
  t.match(lines, [{ name: 'bad', msg: /damaged/ }])
  await store.set(place, 'nothing that a gateway wrote')
  const last = open()
  await last.pull()
  t.same(textsIn(last), { good: '1' })
})

t.test('a store that lost the last versions gets them again; one that has others is believed', async (t) => {
  const { store, open } = await start(t)
  const [one, other] = [open(), open()]
  await one.pull()
  await one.append(about, new Map([['a', '1']]))
  await one.append(about, new Map([['b', '2']]))
  await Promise.all(['1', '2'].map((number) => store.delete(controlVersionKey(number))))
  await store.delete('control-head')
  await one.pull()
  await other.pull()
  t.same(textsIn(other), { a: '1', b: '2' })
  // A failover that lost version 3, whose number another process then used.
  await one.append(about, new Map([['c', 'of one']]))
  await store.delete(controlVersionKey('3'))
  t.ok(await other.append(about, new Map([['c', 'of other']])))
  t.equal(await one.pull(true), 'replaced')
  t.same(textsIn(one), { a: '1', b: '2', c: 'of other' })
})
