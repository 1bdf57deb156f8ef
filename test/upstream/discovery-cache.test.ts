// What is remembered of servers: for how long, and of how many.

import t from 'tap'
import { createDiscoveryCache } from '../../src/upstream/connect/select-transport.ts'
import { handClock } from '../kit/connector.ts'

t.test('what was found holds for its lifetime, or until it is deleted', async (t) => {
  const clock = handClock()
  const cache = createDiscoveryCache<string>(clock)
  cache.set('a', 'legacy', 10)
  cache.set('b', 'modern')
  t.same([cache.get('a'), cache.get('b'), cache.get('c')], ['legacy', 'modern', undefined])
  clock.advance(10)
  t.same([cache.get('a'), cache.get('b')], [undefined, 'modern'])
  cache.delete('b')
  t.equal(cache.get('b'), undefined)
})

t.test('of definitions that come and go only the latest are remembered', async (t) => {
  const cache = createDiscoveryCache<string>(handClock())
  for (let n = 0; n < 20_000; n++) {
    cache.set(`hash-${n}`, 'modern')
    cache.set('used', 'modern')
  }
  const left = Array.from({ length: 20_000 }, (_, n) => cache.get(`hash-${n}`)).filter((each) => each !== undefined)
  t.equal(left.length, 9_999)
  t.ok(cache.get('used'), 'what is confirmed again and again stays')
  t.ok(cache.get('hash-19999'))
})
