// A process that has an embedded store in memory for its parent, as the primary of workers has it for them: for several
// of them over one channel. Its time stands still but for `move`.

import { EventEmitter } from 'node:events'
import { createStoreServer } from '../../src/store/channel/serve-store.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { openChannel } from '../../src/workers/channel.ts'
import type { ToPrimary, ToWorker } from '../../src/workers/messages.ts'
import { quiet } from './kit.ts'

/** Of one worker, or for the clock. */
export interface Wrapped {
  readonly worker?: number
  readonly message?: ToPrimary | ToWorker
  readonly moveMs?: number
}

let now = 1_000
const store = await createSqliteStore({ path: ':memory:', clock: { now: () => now }, log: quiet })
const server = createStoreServer(store, quiet)
const ends = new Map<number, EventEmitter>()

process.on('message', ({ worker = 0, message, moveMs = 0 }: Wrapped) => {
  now += moveMs
  if (message !== undefined) endOf(worker).emit('message', message)
})

function endOf(worker: number): EventEmitter {
  const known = ends.get(worker)
  if (known !== undefined) return known
  const made = Object.assign(new EventEmitter(), {
    send: (message: object, _socket: unknown, _options: unknown, written?: (error: Error | null) => void) =>
      process.send?.({ worker, message }, undefined, {}, written) ?? false
  })
  ends.set(worker, made)
  server.serve(openChannel<ToPrimary, ToWorker>(made), worker)
  return made
}
