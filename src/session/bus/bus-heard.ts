// What the other side says on one request, for whoever sent it.

import { type BusMessage, decodeError, type EncodedError, ProcessGone } from './bus-messages.ts'
import type { BusCall } from './bus-server.ts'

/** How far a request has come, by what the other side has said. */
interface Heard {
  /** It may have begun. */
  working: boolean
  isReady: boolean
  any: boolean
  /** Of what was said in order. */
  last: number
}

export function hear(
  heard: Heard,
  { word, body, seq }: BusMessage,
  on: Pick<BusCall, 'notify'> & {
    settle(error: Error | undefined, answer?: unknown): void
    renew(): void
    begin(): void
  }
): void {
  if (seq !== undefined && seq <= heard.last) return
  heard.last = seq ?? heard.last
  heard.any = true
  if (word === 'answer') return on.settle(undefined, body)
  if (word === 'error') return on.settle(decodeError(body as EncodedError))
  if (word === 'gone') return on.settle(new ProcessGone())
  on.renew()
  if (word === 'said') on.notify(body)
  if (word !== 'ready' || heard.isReady) return
  // Also where it began at once: a process of an earlier version has not.
  heard.working = heard.isReady = true
  on.begin()
}
