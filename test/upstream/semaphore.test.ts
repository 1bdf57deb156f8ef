// So many at a time, in order, whatever becomes of those before.

import t from 'tap'
import { createSemaphore } from '../../src/limits/limits.ts'

t.test('no more than so many run at once, in the order in which they came', async (t) => {
  const through = createSemaphore(2)
  const begun: number[] = []
  const ends: Array<() => void> = []
  const runs = [0, 1, 2, 3].map((n) =>
    through(async () => {
      begun.push(n)
      await new Promise<void>((resolve) => {
        ends.push(resolve)
      })
      return n
    })
  )
  t.same(begun, [0, 1])
  ends[1]?.()
  t.equal(await runs[1], 1)
  t.same(begun, [0, 1, 2])
  for (const at of [0, 2]) ends[at]?.()
  t.same([await runs[0], await runs[2]], [0, 2])
  ends[3]?.()
  t.equal(await runs[3], 3)
})

t.test('one that fails is its own affair', async (t) => {
  const through = createSemaphore(1)
  const failed = through(() => Promise.reject(new Error('no')))
  const thrown = through(() => {
    throw new Error('at once')
  })
  const next = through(() => Promise.resolve('yes'))
  await t.rejects(failed, { message: 'no' })
  await t.rejects(thrown, { message: 'at once' })
  t.equal(await next, 'yes')
})
