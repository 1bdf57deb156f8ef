// A connection is taken by another worker only where its giver still waits for that: whoever of the two is held up.

import { EventEmitter } from 'node:events'
import t from 'tap'
import type { Clock } from '../../src/time/clock.ts'
import { openChannel } from '../../src/workers/channel.ts'
import { createConnectionMoves } from '../../src/workers/connection-moves.ts'
import { createConnectionRelay } from '../../src/workers/connection-relay.ts'
import type { ToPrimary, ToWorker } from '../../src/workers/messages.ts'

/** A clock on which `stall` is one turn of the event loop: a timer runs once, however much time has passed. */
function stallingClock(): Clock & { stall(ms: number): void } {
  let now = 0
  const pending = new Map<object, { readonly at: number; readonly run: () => void }>()
  return {
    now: () => now,
    timer(ms, run) {
      const timer = {
        refresh: () => pending.set(timer, { at: now + ms, run }),
        close: () => pending.delete(timer),
        unref: () => {}
      }
      timer.refresh()
      return timer
    },
    stall(ms) {
      now += ms
      for (const [timer, { at, run }] of [...pending])
        if (at <= now) {
          pending.delete(timer)
          run()
        }
    }
  }
}

/** One direction of a channel. What is sent while it is held is written, and comes, when it is released. */
function line(to: EventEmitter) {
  const waiting: Array<() => void> = []
  let isHeld = false
  return {
    send(message: object, handle: unknown, _options: object, written: (error: null) => void): boolean {
      waiting.push(() => {
        written(null)
        to.emit('message', message, handle)
      })
      if (!isHeld) this.release()
      return true
    },
    hold(): void {
      isHeld = true
    },
    release(): void {
      isHeld = false
      for (const arrive of waiting.splice(0)) arrive()
    }
  }
}

function start() {
  const clock = stallingClock()
  const relay = createConnectionRelay()
  const worker = (node: string) => {
    const [here, there] = [new EventEmitter(), new EventEmitter()]
    const [incoming, outgoing] = [line(here), line(there)]
    relay.serve(openChannel<ToPrimary, ToWorker>(Object.assign(there, incoming) as never))
    const moves = createConnectionMoves(openChannel(Object.assign(here, outgoing) as never), node, clock)
    let taken = 0
    moves.serve(
      () => true,
      () => void taken++
    )
    return { moves, incoming, outgoing, taken: () => taken }
  }
  const [giver, taker] = [worker('giver'), worker('taker')]
  const give = () => {
    let closed = 0
    const given = giver.moves.give('taker', { close: () => void closed++ }, { moves: 1, requests: 2 })
    return { given, closed: () => closed }
  }
  return { clock, giver, taker, give }
}

t.test('a worker that was held up takes no connection that its giver has closed, or is about to', async (t) => {
  const { clock, taker, give } = start()
  const heldUp = async (seconds: number) => {
    taker.incoming.hold()
    const { given, closed } = give()
    for (let n = 0; n < seconds; n++) clock.stall(1_000)
    taker.incoming.release()
    return [await given, taker.taken(), closed()]
  }
  t.same(await heldUp(4), [true, 1, 1], 'the control: the primary closes what it had of it')
  t.same(await heldUp(5), [false, 1, 2], 'it stays where it was, and the other one closes what came')
  t.same(await heldUp(10), [undefined, 1, 2])
})

t.test('a worker whose answer waited for a primary that hung does not read a connection', async (t) => {
  const { clock, taker, give } = start()
  const heldUp = (seconds: number) => {
    taker.outgoing.hold()
    const { closed } = give()
    for (let n = 0; n < seconds; n++) clock.stall(1_000)
    taker.outgoing.release()
    return [taker.taken(), closed()]
  }
  t.same(heldUp(4), [1, 1], 'the control')
  t.same(heldUp(10), [1, 2])
})

t.test('a giver that was held up hears that the other worker has the connection', async (t) => {
  const { clock, giver, taker, give } = start()
  giver.incoming.hold()
  const { given } = give()
  t.equal(taker.taken(), 1)
  clock.stall(11_000)
  giver.incoming.release()
  t.equal(await given, true)
})
