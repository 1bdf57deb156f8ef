// The input requests of one round are gathered for a moment.

import t from 'tap'
import { createGathering } from '../../src/relay/client/pending-inputs.ts'
import { handClock } from '../kit/connector.ts'

t.test('a round after one that was closed is gathered for as long as the first', async (t) => {
  const clock = handClock()
  let rounds = 0
  const gathering = createGathering(clock, () => void rounds++)
  gathering.added()
  gathering.close()
  clock.advance(1_000)
  t.equal(rounds, 0)
  gathering.added()
  clock.advance(99)
  t.equal(rounds, 0, 'a server may ask for more')
  clock.advance(1)
  t.equal(rounds, 1)
})
