// How long records are kept in the store: by time, by the room that a tenant has, and what is said of those that are gone.

import t from 'tap'
import { verifyStoredAudit } from '../../src/audit/read.ts'
import { createSegments, keptHeads, segmentOf } from '../../src/audit/segments.ts'
import { auditHeadsKey, auditIndexKey, auditSegmentKey } from '../../src/store/keys.ts'
import type { Store } from '../../src/store/port.ts'
import { until } from '../kit/until.ts'
import { auditAlone, ok, parse, report, type AuditRecord } from './kit.ts'

const hourMs = 60 * 60 * 1000

t.test('a run names the others that went on, not those whose records are beyond their time', async (t) => {
  const { clock, start, begin, text } = await auditAlone(t, { days: 1 })
  async function run() {
    const audit = await start()
    void begin(audit).end(ok)
    return audit
  }
  const named = async () => {
    const records = parse(await text()) as Array<AuditRecord & { heads?: Array<{ chain: string }> }>
    return records.at(-1)?.heads?.map(({ chain }) => chain)
  }
  await (await run()).close()
  clock.advance(20 * hourMs)
  const second = await run()
  clock.advance(60_000)
  await until('it is signed', async () => (await named())?.length === 1)
  t.same(await named(), ['acme/run1-1'])
  void begin(second).end(ok)
  await second.close()
  t.equal(await named(), undefined, 'it did not go on')
  clock.advance(5 * hourMs)
  await (await run()).close()
  t.same(await named(), ['acme/run2-1'])
  const { problems, notes } = await report(await text(), clock.now())
  t.same(problems, [])
  t.same(notes, ['acme/run1-1 is gone: its 3 records were beyond their time'])
})

t.test('a busy run takes the room of an idle one, which goes on with what it writes then', async (t) => {
  const { clock, start, begin, text } = await auditAlone(t, { megabytes: 3, required: true })
  const [idle, busy] = [await start(), await start()]
  await begin(idle).end(ok)
  // Four segments of a mebibyte; no more at once than may wait.
  for (let calls = 0; calls < 5_000; calls++) {
    const written = begin(busy).end(ok)
    if (calls % 1_000 === 999) await written
  }
  t.notMatch(await text(), 'run1-1"')
  clock.advance(60_000)
  await begin(idle).end(ok)
  await busy.close()
  await idle.close()
  const { problems, notes } = await report(await text(), clock.now())
  t.same(problems, [])
  t.match(notes.join('\n'), /acme\/run1-1 begins with record/)
  const ofIdle = parse(await text()).filter(({ chain }) => chain === 'acme/run1-1')
  t.match(ofIdle.at(-1), { kind: 'end' })
})

t.test('a segment ends after six hours, so that what is old can go without what is new', async (t) => {
  const { clock, start, begin, segments } = await auditAlone(t, { required: true })
  const audit = await start()
  for (let hours = 0; hours < 12; hours++) {
    await begin(audit).end(ok)
    clock.advance(hourMs)
  }
  t.equal(await segments(), 2)
  await audit.close()
})

t.test(
  'what the store keeps is verified where it lies; of a long log the newest part, without false alarms',
  async (t) => {
    const { clock, store, start, begin, segments } = await auditAlone(t, { required: true })
    const [first, audit] = [await start(), await start()]
    await begin(first).end(ok)
    await first.close()
    for (let hours = 0; hours < 14; hours++) {
      await begin(audit).end(ok)
      clock.advance(hourMs)
    }
    await audit.close()
    const count = await segments()
    const whole = await verifyStoredAudit(store, 'acme', clock.now())
    t.match(whole, { isWhole: true, chains: 2, problems: [], notes: [] })
    const altered = (of: Store): Store => ({
      ...of,
      entries: async (key) => (await of.entries(key)).map((each) => each.replaceAll('"ada"', '"eve"'))
    })
    t.match((await verifyStoredAudit(altered(store), 'acme', clock.now())).problems.join(), /was altered/)

    const part = await verifyStoredAudit(store, 'acme', clock.now(), { maxSegments: count - 2 })
    t.match(part, { isWhole: false, chains: 1, problems: [], notes: [] })
    t.ok(part.records < whole.records && part.records > 0)
    t.match(
      (await verifyStoredAudit(altered(store), 'acme', clock.now(), { maxSegments: count - 2 })).problems.join(),
      /was altered/
    )

    // Whoever wants all of a log has it read to its beginning.
    const [oldest = ''] = await store.entries(auditIndexKey('acme'))
    const alteredFirst: Store = {
      ...store,
      entries: async (key) =>
        (key === auditSegmentKey('acme', ...segmentOf(oldest)) ? altered(store) : store).entries(key)
    }
    const passed: number[] = []
    const all = { maxSegments: Infinity, passed: (segments: number) => passed.push(segments) }
    const newest = await verifyStoredAudit(alteredFirst, 'acme', clock.now(), { maxSegments: count - 2 })
    t.match(newest, { isWhole: false, problems: [] })
    t.match((await verifyStoredAudit(alteredFirst, 'acme', clock.now(), all)).problems.join(), /was altered/)
    t.equal(passed.length, count)
    const stopped = { ...all, signal: AbortSignal.abort(new Error('enough')) }
    await t.rejects(verifyStoredAudit(store, 'acme', clock.now(), stopped), { message: 'enough' })
  }
)

t.test('entries of the store that are no heads are skipped', async (t) => {
  const { store, clock } = await auditAlone(t)
  const head = { chain: 'acme/a', seq: 3, hash: 'x', time: new Date(clock.now()).toISOString() }
  for (const entry of ['null', '[]', '"x"', '{', '7', '{"deleted":7}', JSON.stringify(head)])
    await store.append(auditHeadsKey('acme'), entry, { ttlMs: hourMs, keep: 100 })
  t.same(await keptHeads(store, 'acme'), [{ ...head, madeRoom: false }])
  const other = createSegments(store, 'acme', 'acme/b', { ttlMs: hourMs, bytes: 1 }, clock)
  t.match(await other.others(), { heads: [head] }, 'and others are named all the same')
})
