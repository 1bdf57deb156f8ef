// Every promise of src/store/port.ts about keys and values, held against every adapter.

import { randomUUID } from 'node:crypto'
import t from 'tap'
import { adapters } from './adapters.ts'

for (const [name, adapter] of Object.entries(adapters)) {
  t.test(name, async (t) => {
    const { store, other, pass } = await adapter(t)
    // The server may be shared: keys of one run never meet those of another, and are left to expire.
    const fresh = (): string => `test:${randomUUID()}`
    const ttlMs = 60_000
    const absent = (key: string) => async (): Promise<boolean> => (await store.get(key)) === undefined

    t.test('a value is there once set, replaced when set again, gone once deleted', async (t) => {
      const key = fresh()
      t.equal(await store.get(key), undefined)
      t.equal(await store.set(key, 'a', { ttlMs }), true)
      t.equal(await store.get(key), 'a')
      t.equal(await store.set(key, 'b', { ttlMs }), true)
      t.equal(await store.get(key), 'b')
      t.equal(await store.delete(key), true)
      t.equal(await store.get(key), undefined)
      t.equal(await store.delete(key), false)
    })

    t.test('a value without a time to live stays', async (t) => {
      const key = fresh()
      await store.set(key, 'short', { ttlMs: 30 })
      await store.set(key, 'kept')
      const witness = fresh()
      await store.set(witness, 'x', { ttlMs: 50 })
      await pass(50, absent(witness))
      t.equal(await store.get(key), 'kept')
      await store.delete(key)
    })

    t.test('values and keys come back as they went in: any script, NUL, empty, a mebibyte', async (t) => {
      for (const value of [
        '',
        '\0',
        'a\0b',
        'žluťoučký 你好 \u{1F600} e\u0301 \u00e9',
        '"\\\r\n',
        '007',
        'x'.repeat(2 ** 20)
      ]) {
        const key = fresh()
        await store.set(key, value, { ttlMs })
        t.ok((await store.get(key)) === value, `${value.length} characters`)
      }
      const base = fresh()
      for (const end of ['', '\0', '\0a', '\0b', '*', '\u00e9', 'e\u0301'])
        await store.set(base + end, `of ${end}`, { ttlMs })
      for (const end of ['', '\0', '\0a', '\0b', '*', '\u00e9', 'e\u0301'])
        t.equal(await store.get(base + end), `of ${end}`)
    })

    t.test('set when absent writes only where nothing is', async (t) => {
      const key = fresh()
      t.equal(await store.set(key, 'first', { ttlMs, when: 'absent' }), true)
      t.equal(await store.set(key, 'second', { ttlMs, when: 'absent' }), false)
      t.equal(await store.get(key), 'first')
    })

    t.test('set when present writes only where something is', async (t) => {
      const key = fresh()
      t.equal(await store.set(key, 'first', { ttlMs, when: 'present' }), false)
      t.equal(await store.get(key), undefined)
      await store.set(key, 'first', { ttlMs })
      t.equal(await store.set(key, 'second', { ttlMs, when: 'present' }), true)
      t.equal(await store.get(key), 'second')
    })

    t.test('a value takes the place of the one that was read, and of no other', async (t) => {
      const key = fresh()
      t.equal(await store.set(key, 'second', { ttlMs, when: { is: 'first' } }), false)
      t.equal(await store.get(key), undefined)
      await store.set(key, 'first', { ttlMs })
      t.equal(await store.set(key, 'second', { ttlMs, when: { is: 'FIRST' } }), false)
      t.equal(await store.set(key, 'second', { ttlMs, when: { is: 'first' } }), true)
      t.equal(await store.get(key), 'second')
      t.equal(await store.set(key, 'third', { when: { is: 'first' } }), false)
      const won = await Promise.all(
        Array.from({ length: 20 }, (_, i) => (i % 2 ? store : other).set(key, `of ${i}`, { when: { is: 'second' } }))
      )
      t.equal(won.filter(Boolean).length, 1)
      t.equal(await store.get(key), `of ${won.indexOf(true)}`)
      await store.set(key, 'x', { ttlMs: 50 })
      await pass(50, absent(key))
      t.equal(await store.set(key, 'y', { ttlMs, when: { is: 'x' } }), false, 'what is over is not there')
    })

    t.test('a value goes only while it is the one that was read', async (t) => {
      const key = fresh()
      t.equal(await store.delete(key, { is: 'mine' }), false, 'there is none')
      await store.set(key, 'mine', { ttlMs })
      t.equal(await store.delete(key, { is: 'MINE' }), false)
      t.equal(await store.get(key), 'mine', 'that of another stays')
      const gone = await Promise.all(
        Array.from({ length: 20 }, (_, i) => (i % 2 ? store : other).delete(key, { is: 'mine' }))
      )
      t.equal(gone.filter(Boolean).length, 1)
      t.equal(await store.get(key), undefined)
      await store.set(key, 'x', { ttlMs: 50 })
      await pass(50, absent(key))
      t.equal(await store.delete(key, { is: 'x' }), false, 'what is over is not there')
      await store.append(key, 'an entry', { ttlMs, keep: 10 })
      t.equal(await store.delete(key, { is: 'an entry' }), false, 'a log is no value')
    })

    t.test('of a hundred that race to set an absent key exactly one wins, and its value stands', async (t) => {
      const key = fresh()
      const won = await Promise.all(
        Array.from({ length: 100 }, (_, i) => (i % 2 ? store : other).set(key, `of ${i}`, { ttlMs, when: 'absent' }))
      )
      t.equal(won.filter(Boolean).length, 1)
      t.equal(await store.get(key), `of ${won.indexOf(true)}`)
    })

    t.test('a value is forgotten after its time, for every operation alike', async (t) => {
      const key = fresh()
      const [, value] = await Promise.all([store.set(key, 'x', { ttlMs: 100 }), store.get(key)])
      t.equal(value, 'x')
      await pass(100, absent(key))
      t.equal(await store.delete(key), false)
      t.equal(await store.touch(key, ttlMs), false)
      t.equal(await store.set(key, 'y', { ttlMs, when: 'present' }), false)
      t.equal(await store.set(key, 'y', { ttlMs, when: 'absent' }), true)
      t.equal(await store.get(key), 'y')
    })

    t.test('an expired key that was not asked for meanwhile is absent to whoever comes first', async (t) => {
      const keys = [fresh(), fresh(), fresh(), fresh()] as const
      for (const key of keys) await store.set(key, 'x', { ttlMs: 50 })
      const witness = fresh()
      await store.set(witness, 'x', { ttlMs: 60 })
      await pass(60, absent(witness))
      t.equal(await store.delete(keys[0]), false)
      t.equal(await store.touch(keys[1], ttlMs), false)
      t.equal(await store.set(keys[2], 'y', { ttlMs, when: 'absent' }), true)
      t.equal(await store.count(keys[3], 5, ttlMs), 5)
    })

    t.test('a time of zero or a fraction is at least a moment, and one that is no number is a fault', async (t) => {
      for (const ttlMs of [0, -5, 0.2]) {
        const key = fresh()
        t.equal(await store.set(key, 'x', { ttlMs }), true)
        await pass(1, absent(key))
      }
      await t.rejects(store.set(fresh(), 'x', { ttlMs: NaN }), RangeError)
      await t.rejects(store.touch(fresh(), Infinity), RangeError)
    })

    t.test('touch gives a live key a new time, longer or shorter', async (t) => {
      const [longer, shorter, missing] = [fresh(), fresh(), fresh()]
      const touched = await Promise.all([
        store.set(longer, 'x', { ttlMs: 100 }),
        store.touch(longer, ttlMs),
        store.set(shorter, 'x', { ttlMs }),
        store.touch(shorter, 100),
        store.touch(missing, ttlMs)
      ])
      t.same(touched, [true, true, true, true, false])
      await pass(100, absent(shorter))
      t.equal(await store.get(longer), 'x')
    })

    t.test('a counter starts at zero, adds up, goes down, and reads as its number', async (t) => {
      const key = fresh()
      t.equal(await store.count(key, 1, ttlMs), 1)
      t.equal(await store.count(key, 10, ttlMs), 11)
      t.equal(await store.count(key, -2, ttlMs), 9)
      t.equal(await store.get(key), '9')
    })

    t.test('a counter ends with the window that it began with, however often it is used', async (t) => {
      const key = fresh()
      t.same(await Promise.all([store.count(key, 1, 100), store.count(key, 1, ttlMs)]), [1, 2])
      await pass(100, absent(key))
      t.equal(await store.count(key, 1, ttlMs), 1)
    })

    t.test('a counter in the place of a long value that is over starts at zero', async (t) => {
      const key = fresh()
      await store.set(key, 'x'.repeat(300_000), { ttlMs: 50 })
      await pass(50, absent(key))
      t.equal(await store.count(key, 2, ttlMs), 2)
      t.equal(await store.get(key), '2')
      t.equal(await store.count(key, 3, ttlMs), 5)
      t.equal(await store.get(key), '5')
    })

    t.test('a hundred that count at once lose nothing, and each sees a number of its own', async (t) => {
      const key = fresh()
      const seen = await Promise.all(
        Array.from({ length: 100 }, (_, i) => (i % 2 ? store : other).count(key, 1, ttlMs))
      )
      t.same(
        seen.toSorted((a, b) => a - b),
        Array.from({ length: 100 }, (_, i) => i + 1)
      )
    })

    t.test('a log gives its entries back in order, the last of them where there are too many', async (t) => {
      const key = fresh()
      t.same(await store.entries(key), [])
      for (let i = 0; i < 10; i++) await store.append(key, `entry ${i}\0ž`, { ttlMs, keep: 4 })
      t.same(
        await other.entries(key),
        [6, 7, 8, 9].map((i) => `entry ${i}\0ž`)
      )
      await Promise.all([10, 11, 12].map((i) => store.append(key, String(i), { ttlMs, keep: 3 })))
      t.same(await store.entries(key), ['10', '11', '12'], 'what is sent without waiting keeps its order too')
    })

    t.test('a log is forgotten as a whole, its time after the latest entry', async (t) => {
      const [key, longer] = [fresh(), fresh()]
      await Promise.all([
        store.append(key, 'first', { ttlMs, keep: 10 }),
        store.append(key, 'second', { ttlMs: 50, keep: 10 }),
        // The first is not forgotten before the second comes, however busy the machine is: both are sent at once.
        store.append(longer, 'first', { ttlMs: 50, keep: 10 }),
        store.append(longer, 'second', { ttlMs, keep: 10 })
      ])
      await pass(50, async () => (await store.entries(key)).length === 0)
      t.same(await store.entries(longer), ['first', 'second'])
      await store.append(key, 'anew', { ttlMs, keep: 10 })
      t.same(await store.entries(key), ['anew'])
    })

    t.test('long entries and values keep their place among what is asked meanwhile', async (t) => {
      const [log, deleted, key, another] = [fresh(), fresh(), fresh(), fresh()]
      // Two units of UTF-16 for each, an odd number of units in all.
      const [first, second] = ['a', 'b'].map((letter) => letter + '😀'.repeat(250_000)) as [string, string]
      const options = { ttlMs, keep: 4 }
      const add = (to: string, ...entries: string[]): Array<Promise<void>> =>
        entries.map((entry) => store.append(to, entry, options))
      const answers = [
        ...add(log, '1', first, '2', second, '3'),
        ...add(deleted, '1', first),
        store.delete(deleted),
        ...add(deleted, '2'),
        store.set(key, first),
        store.set(key, 'short', { when: { is: second } }),
        store.set(key, second, { when: { is: first } }),
        store.set(another, second),
        store.set(another, 'short')
      ]
      const entries = await store.entries(log)
      t.ok(entries.length === 4 && entries[0] === first && entries[2] === second, 'whole, and the last four')
      t.same([entries[1], entries[3]], ['2', '3'])
      t.same(await store.entries(deleted), ['2'])
      t.equal(await store.get(another), 'short')
      t.ok((await store.get(key)) === second)
      t.same((await Promise.all(answers)).slice(7), [true, undefined, true, false, true, true, true])
      t.equal(await store.set(key, '1', { when: 'absent' }), false)
      t.equal(await store.delete(key, { is: first }), false)
      t.equal(await store.delete(key, { is: second }), true)
      t.equal(await store.get(key), undefined)
    })

    t.test('what waits for a long value is not overtaken by what comes when that is written', async (t) => {
      const [log, key] = [fresh(), fresh()]
      const long = 'x'.repeat(300_000)
      const add = (entry: string): Promise<void> => store.append(log, entry, { ttlMs, keep: 10 })
      const set = (value: string): Promise<boolean> => store.set(key, value, { ttlMs })
      const [appended, ...more] = [add(long), add('2'), add('3')]
      await appended
      await Promise.all([...more, add('4')])
      const [written, ...others] = [set(long), set('2'), set('3')]
      await written
      await Promise.all([...others, set('4')])
      t.same((await store.entries(log)).slice(1), ['2', '3', '4'])
      t.equal(await store.get(key), '4')
    })

    t.test('a log is read as it was at one moment, whatever is written to it meanwhile', async (t) => {
      const [log, long, deleted] = [fresh(), fresh(), fresh()]
      const filler = 'x'.repeat(4_000)
      const add = (to: string, keep: number, ...entries: string[]): Array<Promise<void>> =>
        entries.map((entry) => store.append(to, entry, { ttlMs, keep }))
      const numbered = (from: number): string[] => Array.from({ length: 200 }, (_, at) => `${from + at} ${filler}`)
      const ends = ['b', 'c', 'd'] as const
      await Promise.all([
        ...add(log, 200, ...numbered(0)),
        ...add(long, 4, 'a'.repeat(1_000_000), ...ends),
        ...add(deleted, 200, ...numbered(0))
      ])
      const reading = [log, long, deleted].map((key) => store.entries(key))
      const writing = [
        ...add(log, 200, ...numbered(200)),
        ...add(long, 4, 'e', 'f', 'g'),
        store.delete(deleted),
        ...add(deleted, 200, ...numbered(200))
      ]
      const [ofLog = [], ofLong = [], ofDeleted = []] = await Promise.all(reading)
      await Promise.all(writing)
      const numbers = ofLog.map((entry) => Number.parseInt(entry, 10))
      t.same(
        numbers,
        numbers.map((_, at) => (numbers[0] ?? 0) + at),
        'nothing is missing between two entries'
      )
      t.equal(numbers.length, 200)
      const of = ofLong.map((entry) => entry[0]).join('')
      t.ok(['abcd', 'bcde', 'cdef', 'defg'].includes(of), of)
      const starts = ofDeleted.map((entry) => Math.floor(Number.parseInt(entry, 10) / 200))
      t.ok(new Set(starts).size <= 1, 'what was deleted is not beside what came after it')
    })

    t.test('a log can be deleted as a value can', async (t) => {
      const key = fresh()
      await Promise.all(['first', 'second'].map((entry) => store.append(key, entry, { ttlMs, keep: 10 })))
      t.equal(await other.delete(key), true)
      t.same(await store.entries(key), [])
      t.equal(await store.delete(key), false)
      await store.append(key, 'anew', { ttlMs, keep: 10 })
      t.same(await store.entries(key), ['anew'])
    })

    t.test(
      'a sorted set has each text once, in order, page by page, without what was removed or is before its start',
      async (t) => {
        const key = fresh()
        t.same(await store.members(key, { max: 10 }), [])
        const add = (member: string, from = '') => store.addMember(key, member, { ttlMs, from })
        await Promise.all(['c', 'a', 'b', 'ž', 'a', 'Z'].map((member) => add(member)))
        t.same(await other.members(key, { max: 10 }), ['ž', 'c', 'b', 'a', 'Z'])
        t.same(await store.members(key, { max: 2 }), ['ž', 'c'])
        t.same(await store.members(key, { max: 2, before: 'c' }), ['b', 'a'])
        t.same(await store.members(key, { max: 2, before: 'bb' }), ['b', 'a'], 'also before what is no member')
        await other.removeMember(key, 'b')
        await other.removeMember(key, 'never there')
        await add('d', 'a')
        t.same(await store.members(key, { max: 10 }), ['ž', 'd', 'c', 'a'])
        t.equal(await store.delete(key), true)
        t.same(await store.members(key, { max: 10 }), [])
        await store.addMember(key, 'short', { ttlMs: 50, from: '' })
        await pass(50, async () => (await store.members(key, { max: 10 })).length === 0)
        await add('anew')
        t.same(await store.members(key, { max: 10 }), ['anew'])
      }
    )

    t.test(
      'a store that works answers ping; a closed one refuses every call, and closes again without complaint',
      async (t) => {
        const { store } = await adapter(t)
        await store.ping()
        await store.close()
        await store.close()
        const calls: Array<Promise<unknown>> = [
          store.get('x'),
          store.set('x', 'y'),
          store.delete('x'),
          store.touch('x', 1),
          store.count('x', 1, 1),
          store.append('x', 'y', { ttlMs: 1, keep: 1 }),
          store.entries('x'),
          store.addMember('x', 'y', { ttlMs: 1, from: '' }),
          store.removeMember('x', 'y'),
          store.members('x', { max: 1 }),
          store.publish('x', 'y'),
          store.ping()
        ]
        for (const call of calls)
          await t.rejects(() => call, { name: 'GatewayError', code: 'unavailable', headers: { 'Retry-After': '1' } })
      }
    )
  })
}
