// Progress of one call that is several: it rises, or is left out.

import t from 'tap'
import type { Client } from '../../src/protocol/seams.ts'
import { createMonotonicProgress } from '../../src/relay/call/monotonic-progress.ts'

function scene() {
  const heard: unknown[] = []
  const rising = createMonotonicProgress(
    {
      notify: ({ params }) => {
        heard.push(params?.['progress'])
      }
    } as Client,
    'p'
  )
  return {
    heard,
    rising,
    tell: (progress: number): void =>
      rising.client.notify({ method: 'notifications/progress', params: { progressToken: 'p', progress } })
  }
}

t.test("our own steps go on from the server's, and its from ours", (t) => {
  const { heard, rising, tell } = scene()
  tell(0.5)
  rising.say('half')
  for (const progress of [0.7, 1, 1.5, 2]) tell(progress)
  rising.again()
  for (const progress of [1, 2, 3]) tell(progress)
  t.same(heard, [0.5, 1.5, 2, 3])
  t.end()
})

t.test('where numbers have no next one, nothing is said; nor without a token', (t) => {
  const { heard, rising, tell } = scene()
  tell(1e300)
  rising.say('on')
  t.same(heard, [1e300])
  const none = createMonotonicProgress({ notify: () => t.fail('nobody asked') } as unknown as Client, undefined)
  none.say('x')
  t.end()
})
