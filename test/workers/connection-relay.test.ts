// What the primary has of connections on their way to a worker that hangs is bounded.

import { EventEmitter } from 'node:events'
import t from 'tap'
import { openChannel } from '../../src/workers/channel.ts'
import { createConnectionRelay } from '../../src/workers/connection-relay.ts'
import type { ToPrimary, ToWorker } from '../../src/workers/messages.ts'

t.test('connections beyond 64 on their way to one worker stay where they are', (t) => {
  const relay = createConnectionRelay()
  let closed = 0
  const handle = { close: () => (closed += 1) }
  const worker = (node: string) => {
    const sent: ToWorker[] = []
    const end = Object.assign(new EventEmitter(), { send: (message: ToWorker) => sent.push(message) > 0 })
    relay.serve(openChannel<ToPrimary, ToWorker>(end as never))
    const say = (message: ToPrimary): void => void end.emit('message', message, handle)
    say({ kind: 'node', node })
    const given = () => sent.flatMap((each) => (each.kind === 'given' ? [[each.id, each.isTaken]] : []))
    return { say, given, taking: () => sent.flatMap((each) => (each.kind === 'take' ? [each.id] : [])) }
  }
  const [giver, stopped, other] = [worker('giver'), worker('stopped'), worker('other')]
  const give = (id: number, to: string): void =>
    giver.say({ kind: 'give', id, to, connection: { moves: 1, requests: 1 }, until: 0 })
  for (let id = 1; id <= 64; id++) give(id, 'stopped')
  t.same([stopped.taking().length, giver.given(), closed], [64, [], 0], 'the control')
  give(65, 'stopped')
  t.same([stopped.taking().length, giver.given(), closed], [64, [[65, false]], 1])
  give(66, 'other')
  t.equal(other.taking().length, 1, 'others take theirs')
  stopped.say({ kind: 'taken', id: stopped.taking()[0] ?? 0, isTaken: true })
  give(67, 'stopped')
  t.equal(stopped.taking().length, 65, 'there is room again')
  t.end()
})
