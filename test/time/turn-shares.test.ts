// A tenant that is alone has all of each turn; where two have work, each has a share of it, and what it spent beyond is
// taken from later ones.

import t from 'tap'
import { createTurnShares } from '../../src/time/turn-shares.ts'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

function shared() {
  const clock = { ms: 1_000 }
  const shares = createTurnShares(() => clock.ms)
  const work = (tenant: string, ms: number): void => {
    shares.begin(tenant)
    clock.ms += ms
  }
  return { clock, shares, work }
}

t.test('a lone tenant has no limit; with another one each has a share, for a second', (t) => {
  const { clock, shares, work } = shared()
  const used = (): boolean[] => ['noisy', 'calm'].map(shares.has)
  shares.note('noisy')
  // Who is not known yet is no other tenant: new connections of one tenant would make it share with itself.
  shares.note('')
  shares.note('noisy')
  for (let n = 0; n < 10; n++) work('noisy', 1)
  t.notOk(shares.isShared())
  t.same(used(), [true, true])
  shares.note('calm')
  t.ok(shares.isShared())
  work('noisy', 0.3)
  t.same(used(), [true, true])
  work('noisy', 0.3)
  t.same(used(), [false, true])
  clock.ms += 1_001
  t.same(used(), [true, true], 'the other one has had no work for a second')
  t.end()
})

t.test('a tenant that is alone shares with strangers where many come in a second', (t) => {
  const { clock, shares, work } = shared()
  shares.note('calm')
  for (let n = 0; n < 19; n++) shares.note('')
  t.notOk(shares.isShared())
  clock.ms += 1_000
  for (let n = 0; n < 19; n++) shares.note('')
  t.notOk(shares.isShared(), 'each second by itself')
  shares.note('')
  t.ok(shares.isShared())
  work('', 0.6)
  t.same(['', 'calm'].map(shares.has), [false, true])
  t.end()
})

t.test('what was spent beyond a share is taken from those of later turns', async (t) => {
  const { shares, work } = shared()
  shares.note('noisy')
  shares.note('calm')
  work('noisy', 1.4)
  const turns: boolean[] = []
  for (let n = 0; n < 4; n++) {
    turns.push(shares.has('noisy'))
    await turn()
  }
  t.same(turns, [false, false, true, true])
})

t.test('what goes on in promises is work of whoever has begun it, until other work begins', async (t) => {
  const { clock, shares, work } = shared()
  shares.note('noisy')
  shares.note('calm')
  work('noisy', 0.1)
  await Promise.resolve()
  clock.ms += 0.5
  work('calm', 0.1)
  t.same(['noisy', 'calm'].map(shares.has), [false, true])
  await turn()
  clock.ms += 5
  t.same(['noisy', 'calm'].map(shares.has), [true, true], 'what comes in a later turn is nobody’s')
})

t.test('what was begun for a stranger is work of the tenant that was let in', (t) => {
  const { clock, shares, work } = shared()
  shares.note('noisy')
  shares.note('calm')
  work('', 0.4)
  shares.renameRunning('noisy')
  clock.ms += 0.2
  t.same(['', 'noisy'].map(shares.has), [true, false])
  t.end()
})

t.test('what was begun for a tenant, or is long, stays what it is when a stranger is let in', (t) => {
  const { clock, shares, work } = shared()
  shares.note('noisy')
  shares.note('calm')
  work('noisy', 0.3)
  shares.renameRunning('calm')
  clock.ms += 0.3
  t.same(['noisy', 'calm'].map(shares.has), [false, true])
  work('', 0.1)
  shares.long.begin('noisy')
  shares.renameRunning('calm')
  clock.ms += 0.6
  t.same(['noisy', 'calm'].map(shares.long.has), [false, true])
  t.ok(shares.has('calm'))
  t.end()
})

t.test('long messages have shares of their own', (t) => {
  const { clock, shares } = shared()
  shares.note('noisy')
  shares.note('calm')
  shares.long.begin('noisy')
  clock.ms += 0.6
  t.same([shares.long.has('noisy'), shares.has('noisy'), shares.long.has('calm')], [false, true, true])
  t.end()
})

t.test('what is put off is paid for by its own tenant, too', (t) => {
  const { clock, shares, work } = shared()
  shares.note('noisy')
  shares.note('calm')
  work('noisy', 0.6)
  work('calm', 0.1)
  t.notOk(shares.take('noisy'))
  clock.ms += 0.6
  t.ok(shares.has('calm'))
  t.ok(shares.take('calm'))
  clock.ms += 0.6
  t.notOk(shares.has('calm'), 'the control')
  t.end()
})

t.test('what a stranger costs is not taken from those who come later', async (t) => {
  const { clock, shares, work } = shared()
  shares.note('noisy')
  shares.note('calm')
  work('', 9)
  t.notOk(shares.has(''), 'of this turn it is')
  await turn()
  t.ok(shares.has(''))
  for (const tenant of ['', 'noisy']) {
    shares.long.begin(tenant)
    clock.ms += 9
  }
  t.same(['', 'noisy'].map(shares.long.has), [false, false])
  await turn()
  t.same(['', 'noisy'].map(shares.long.has), [true, false], 'nor is what is long')
})

t.test('what is done later is done by turns, and leaves half of each share', async (t) => {
  const { shares } = shared()
  shares.note('noisy')
  shares.note('calm')
  const done: string[] = []
  for (let n = 0; n < 6; n++) shares.later(() => void done.push('noisy'), { tenant: 'noisy', caller: '' }, 0.25)
  shares.later(() => void done.push('calm'), { tenant: 'calm', caller: '' }, 0.25)
  await turn()
  t.same(done, ['noisy', 'calm'])
  t.ok(shares.has('noisy'))
  for (let n = 0; n < 5; n++) await turn()
  t.equal(done.length, 7)
})
