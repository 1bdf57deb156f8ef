// What one listen stream still has to say: nothing before its acknowledgment, and of many changes of one list only as many as are of use.

import type { Notification } from '../../protocol/messages.ts'
import type { ListKind } from '../../protocol/seams.ts'
import type { PaceClock } from '../pace.ts'

export interface ListenOutbox {
  /** The acknowledgment, and what came before it could be sent. */
  begin (acknowledgment: Notification): void
  /** @param about what it is about: before the acknowledgment, only the newest of each is kept */
  send (about: string, notification: Notification): void
  /** Lists changed: told at once, then at most once in a while. */
  changed (kinds: Iterable<ListKind>): void
  /** Says what waits only for its time, and nothing after that. */
  finish (): void
  /** Nothing more. */
  end (): void
}

/** Between two messages about one list, in milliseconds: a storm of changes is one change to whoever reads the list again. */
const changedEveryMs = 100
/** Before the acknowledgment nothing is promised. Characters of JSON, which may be those of whole tasks. */
const maxEarly = 1_000
const maxEarlyLength = 1024 * 1024

export function createOutbox (notify: (notification: Notification) => void, clock: PaceClock): ListenOutbox {
  const early = new Map<string, { readonly notification: Notification, readonly length: number }>()
  let earlyLength = 0
  const untold = new Set<ListKind>()
  let begun = false
  let ended = false
  let pause: { close (): unknown } | undefined

  function tell (): void {
    pause = undefined
    if (untold.size === 0) return
    for (const kind of untold) notify({ method: `notifications/${kind}/list_changed` })
    untold.clear()
    const timer = clock.timer(changedEveryMs, tell)
    timer.unref()
    pause = timer
  }

  function end (): void {
    ended = true
    pause?.close()
  }

  return {
    begin (acknowledgment) {
      if (ended) return
      begun = true
      notify(acknowledgment)
      for (const { notification } of early.values()) notify(notification)
      early.clear()
      tell()
    },
    send (about, notification) {
      if (ended) return
      if (begun) return notify(notification)
      const before = early.get(about)
      const length = JSON.stringify(notification).length
      const total = earlyLength - (before?.length ?? 0) + length
      if (total > maxEarlyLength || (before === undefined && early.size >= maxEarly)) return
      early.set(about, { notification, length })
      earlyLength = total
    },
    changed (kinds) {
      if (ended) return
      for (const kind of kinds) untold.add(kind)
      if (begun && pause === undefined) tell()
    },
    finish () {
      if (ended) return
      pause?.close()
      if (begun) tell()
      end()
    },
    end
  }
}
