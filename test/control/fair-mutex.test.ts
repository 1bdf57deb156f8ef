// Changes and questions at the journal come one after the other, and no author waits for all those of another.

import t from 'tap'
import { createFairMutex } from '../../src/control/fair-mutex.ts'

const [ada, gus, kill] = [
  { tenant: 'change', caller: 'ada' },
  { tenant: 'change', caller: 'gus' },
  { tenant: 'kill', caller: 'gus' }
]

/** Work that lasts until it is told to end. */
function opened() {
  const { exclusive, close } = createFairMutex()
  const begun: string[] = []
  const ends: Array<() => void> = []
  return {
    close,
    begun,
    add: (name: string, owner: typeof ada) =>
      exclusive(owner, async () => {
        begun.push(name)
        await new Promise<void>((resolve) => ends.push(resolve))
        return name
      }),
    async end(): Promise<void> {
      ends.shift()?.()
      await new Promise(setImmediate)
    }
  }
}

t.test('owners take turns, each has its own in order, and one runs at a time', async (t) => {
  const { add, begun, end } = opened()
  const all = [
    ...['a1', 'a2', 'a3'].map((name) => add(name, ada)),
    ...['g1', 'g2'].map((name) => add(name, gus)),
    add('k1', kill)
  ]
  for (const _ of all) await end()
  t.same(begun, ['a1', 'a2', 'k1', 'g1', 'a3', 'g2'])
  t.same(await Promise.all(all), ['a1', 'a2', 'a3', 'g1', 'g2', 'k1'])
})

t.test('work that fails is no reason for the next one not to begin', async (t) => {
  const { exclusive } = createFairMutex()
  const failing = exclusive(ada, async () => await Promise.reject(new Error('no')))
  t.equal(await exclusive(ada, async () => 1), 1)
  await t.rejects(failing, { message: 'no' })
})

t.test('at the end what runs is waited for, and what waits is given up', async (t) => {
  const { add, begun, end, close } = opened()
  const [first, second] = [add('first', ada), add('second', ada)]
  const closed = close(new Error('stopping'))
  await t.rejects(second, { message: 'stopping' })
  await t.rejects(add('late', gus), { message: 'stopping' })
  await end()
  await closed
  t.equal(await first, 'first')
  t.same(begun, ['first'])
})
