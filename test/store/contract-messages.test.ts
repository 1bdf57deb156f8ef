// Every promise of src/store/port.ts about messages, held against every adapter.

import { randomUUID } from 'node:crypto'
import t from 'tap'
import { adapters } from './adapters.ts'
import { until } from './kit.ts'

for (const [name, adapter] of Object.entries(adapters)) {
  t.test(name, async (t) => {
    const { store, other } = await adapter(t)
    const fresh = (): string => `test:${randomUUID()}`

    t.test('a message reaches every subscriber of its channel, in order, and nobody else', async (t) => {
      const [channel, elsewhere] = [fresh(), fresh()]
      const heard: string[][] = [[], [], []]
      const stops = await Promise.all([
        store.subscribe(channel, (message) => {
          heard[0]?.push(message)
        }),
        other.subscribe(channel, (message) => {
          heard[1]?.push(message)
        }),
        other.subscribe(elsewhere, (message) => {
          heard[2]?.push(message)
        })
      ])
      // In a cluster, some of many would overtake others, if they went through different nodes.
      const said = ['a', 'b\0č', '', ...Array.from({ length: 30 }, (_, at) => `${at}`)]
      for (const message of said) await store.publish(channel, message)
      await other.publish(elsewhere, 'last')
      await until(() => heard[2]?.length === 1 && heard[0]?.length === said.length && heard[1]?.length === said.length)
      t.same(heard, [said, said, ['last']])
      t.ok(store.live)
      for (const stop of stops) await stop()
    })

    t.test('a message is delivered later, never inside publish or subscribe', async (t) => {
      const channel = fresh()
      let inside = true
      const heard: boolean[] = []
      await store.subscribe(channel, () => {
        heard.push(inside)
      })
      const published = store.publish(channel, 'x')
      inside = false
      await published
      await until(() => heard.length === 1)
      t.same(heard, [false])
    })

    t.test('whoever stopped listening hears nothing more, and a neighbour on the channel still does', async (t) => {
      const channel = fresh()
      const heard: string[] = []
      const stop = await store.subscribe(channel, () => {
        heard.push('stopped')
      })
      await store.subscribe(channel, () => {
        heard.push('neighbour')
      })
      await stop()
      await stop()
      await other.publish(channel, 'x')
      await until(() => heard.length > 0)
      t.same(heard, ['neighbour'])
    })

    t.test('a listener that throws harms neither the others nor the publisher', async (t) => {
      const channel = fresh()
      const heard: string[] = []
      await store.subscribe(channel, () => {
        throw new Error('broken listener')
      })
      await store.subscribe(channel, (message) => {
        heard.push(message)
      })
      await store.publish(channel, 'a')
      await store.publish(channel, 'b')
      await until(() => heard.length === 2)
      t.same(heard, ['a', 'b'])
    })
  })
}
