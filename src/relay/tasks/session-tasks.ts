// Tasks of 2025-11-25 (basic/utilities/tasks) of sessions: which sessions a running task was told to, the connections
// that it keeps open, and what a principal has created, for `tasks/list`.

import type { Log } from '../../observe/log.ts'
import { isTaskOver, readTask } from '../../protocol/translate/tasks.ts'
import type { LiveSession, LiveSessions } from '../../session/live-sessions.ts'
import { tasksKept, tasksKey, tasksTtlMs } from '../../store/keys.ts'
import type { Store } from '../../store/port.ts'
import type { Sealer } from '../../store/seal.ts'
import type { Clock } from '../../time/clock.ts'
import type { Pool } from '../../upstream/pool/pool.ts'
import { sessionStorePartsOf } from '../call/call.ts'
import { createKeepAlive } from '../connections/keep-alive.ts'
import { cancelUnwanted } from './await-task.ts'
import { createSessionTaskIds, giveBack, takeFor, type UpstreamScope } from './session-task-ids.ts'

export type SessionTasks = ReturnType<typeof createSessionTasks>

interface KnownTask {
  readonly key: string
  /** The id as the session's relay knows it: of a modern server with a prefix. */
  readonly id: string
  readonly source: UpstreamScope
  readonly sessions: Set<string>
  running: boolean
  /** The time at which the server may have forgotten the task; epoch ms. */
  until: number
}

const maxPerSession = 1_000

export function createSessionTasks({
  sealer,
  store,
  sessions,
  pool,
  clock,
  log
}: {
  readonly sealer: Sealer
  readonly store: Store
  readonly sessions: LiveSessions
  readonly pool: Pick<Pool, 'peek' | 'touch'>
  readonly clock: Clock
  readonly log: Log
}) {
  const ids = createSessionTaskIds(sealer, pool, sessions)
  const known = new Map<string, KnownTask>()
  const bySession = new Map<string, Set<KnownTask>>()
  /** The cancellations that run, by key of the session. */
  const cancelling = new Map<string, Promise<unknown>>()

  /** A connection is in use while a task runs on it, even if no call comes for hours. */
  const keepAlive = createKeepAlive(clock, () => {
    const now = clock.now()
    let idleMs = Infinity
    for (const task of known.values()) {
      const { definition, scope } = task.source
      if (task.until < now) forget(task)
      else if (task.running) {
        pool.touch(scope, definition)
        idleMs = Math.min(idleMs, definition.idleMs)
      }
    }
    return idleMs
  })

  const keyOf = (source: UpstreamScope, id: string): string =>
    JSON.stringify([source.definition.hash, source.scope, ids.nameOf(source, id)])

  function forget(task: KnownTask): void {
    known.delete(task.key)
    for (const key of task.sessions) {
      const own = bySession.get(key)
      if (own?.delete(task) === true) giveBack(sessions.get(key), task.key, task.id)
      if (own?.size === 0) bySession.delete(key)
    }
  }

  async function cancel({ id, source: { definition, scope, upstream: made } }: KnownTask): Promise<void> {
    const upstream = made ?? pool.peek(definition, scope)
    if (upstream === undefined) return
    await cancelUnwanted(upstream, upstream.era === 'modern' ? id.replace(/^(?:as|wrap)\./, '') : id)
  }

  return {
    ...ids,

    /** Cancels what runs for this session alone, whose connections wait for it when they are released. */
    cancelAll(sessionKey: string): void {
      const own = [...(bySession.get(sessionKey) ?? [])].filter(
        ({ running, sessions }) => running && sessions.size === 1
      )
      if (own.length > 0) cancelling.set(sessionKey, Promise.all(own.map(cancel)))
    },

    /** The state of a task, as a result or a notification told it to the session, with the upstream's own id. */
    recordState(session: LiveSession, source: UpstreamScope, value: unknown) {
      const state = readTask(value)
      const counted = sessions.get(session.key)
      if (state === undefined || counted === undefined) return
      const key = keyOf(source, state.taskId)
      if (known.get(key)?.sessions.has(session.key) !== true && !takeFor(counted, key, state.taskId)) return
      const task = known.get(key) ?? {
        key,
        id: state.taskId,
        source,
        sessions: new Set(),
        running: false,
        until: Infinity
      }
      known.set(key, task)
      task.sessions.add(session.key)
      const own = bySession.get(session.key) ?? new Set()
      bySession.set(session.key, own.add(task))
      const [oldest] = own
      if (own.size > maxPerSession && oldest !== undefined) forget(oldest)
      // Its time runs from its creation, which is at most as late as this.
      if (state.ttl !== undefined) task.until = Math.min(task.until, clock.now() + state.ttl)
      task.running = !isTaskOver(state)
      if (task.running) keepAlive.add(source.definition.idleMs)
    },

    /** Remembers whose task it is, for `tasks/list`. */
    async created(session: LiveSession, source: UpstreamScope, id: string) {
      const kept = { ttlMs: tasksTtlMs, keep: tasksKept }
      await store
        .append(tasksKey(...sessionStorePartsOf(session)), ids.nameOf(source, id), kept)
        .catch((err: unknown) => {
          log.warn(
            { err, upstream: source.definition.name },
            'a task could not be written down; tasks/list will leave it out'
          )
        })
    },

    /** Whether the principal created a task at the endpoint. @throws GatewayError unavailable */
    async createdBy(session: LiveSession) {
      const entries = new Set(await store.entries(tasksKey(...sessionStorePartsOf(session))))
      return (source: UpstreamScope, id: string) => entries.has(ids.nameOf(source, id))
    },

    /** Sessions to which a task of a shared connection was told. */
    sessionsOf: (source: UpstreamScope, id: string) =>
      [...(known.get(keyOf(source, id))?.sessions ?? [])].flatMap((key) => sessions.get(key) ?? []),

    /** @returns resolves when the cancellations of `cancelAll` have been answered */
    async drop(sessionKey: string): Promise<void> {
      ids.drop(sessionKey)
      for (const task of [...(bySession.get(sessionKey) ?? [])]) {
        task.sessions.delete(sessionKey)
        if (task.sessions.size === 0) forget(task)
      }
      bySession.delete(sessionKey)
      await cancelling.get(sessionKey)
      cancelling.delete(sessionKey)
    },

    close: keepAlive.close
  }
}
