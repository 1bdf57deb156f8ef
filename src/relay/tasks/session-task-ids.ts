// Ids of tasks of 2025-11-25 (basic/utilities/tasks) between a session and its upstreams. Each side sees the ids of
// the other only sealed, so that nobody can use the id of a task that was not told to it.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { GatewayError, type Request, type UpstreamName } from '../../protocol/messages.ts'
import { mapRelatedTask, withTaskId } from '../../protocol/translate/tasks.ts'
import type { LiveSession } from '../../session/live-sessions.ts'
import type { Upstream } from '../../protocol/seams.ts'
import type { Sealer } from '../../store/seal.ts'
import type { Pool } from '../../upstream/pool/pool.ts'
import { sessionBindingOf } from '../call/call.ts'
import { isStoredTaskId } from './result-store.ts'

/** The connections of a scope to one upstream, one after the other. */
export interface UpstreamScope {
  readonly definition: UpstreamDefinition
  readonly scope: string
  /** The one that is meant, where it is at hand; else the newest that is open. */
  readonly upstream?: Upstream
}

export interface SessionTaskIds {
  /** The id of a task as the client knows it, wherever the task runs. */
  toClient(session: LiveSession, source: UpstreamScope): (id: string) => string
  toUpstream(session: LiveSession, source: UpstreamScope): (id: string) => string
  /**
   * A request of the client with task ids as its upstream, which is connected, knows them.
   * @throws GatewayError invalid_params where it is about a task of another process of the upstream
   */
  outgoing(session: LiveSession, source: UpstreamScope, request: Request): Request
  /** The upstream of a task. @returns undefined for an id that this principal was not given at this endpoint */
  upstreamOf(session: LiveSession, publicId: string): UpstreamName | undefined
  /** What tells the task from all others of its tenant. */
  nameOf(source: UpstreamScope, id: string): string
  /** Ids of tasks that the client hosts: another upstream could guess them. */
  sealHosted(session: LiveSession, upstream: UpstreamName, id: string): string
  openHosted(session: LiveSession, upstream: UpstreamName, id: string): string | undefined
  /** Binds a cursor of `tasks/list` to whom it is given. */
  sealCursor(session: LiveSession, text: string): string
  openCursor(session: LiveSession, cursor: string): string | undefined
}

/** The connection is named where a task is known to it alone. */
type NamedTask = readonly [upstream: UpstreamName, id: string, connection?: string]

export function createSessionTaskIds(sealer: Sealer, pool: Pick<Pool, 'peek'>): SessionTaskIds {
  // Many a server numbers its tasks, and each process of it begins anew. A server behind a URL knows its tasks on all
  // connections.
  const connectionOf = ({ definition, scope, upstream }: UpstreamScope, id: string): string | undefined =>
    definition.type === 'stdio' && !isStoredTaskId(id) ? (upstream ?? pool.peek(definition, scope))?.id : undefined
  const nameOf = (source: UpstreamScope, id: string): string => {
    const connection = connectionOf(source, id)
    return JSON.stringify([source.definition.name, id, ...(connection === undefined ? [] : [connection])])
  }

  function open(session: LiveSession, publicId: string): NamedTask | undefined {
    const opened = sealer.open('task', sessionBindingOf(session), publicId)
    return opened === undefined ? undefined : (JSON.parse(opened) as NamedTask)
  }

  function openAt(session: LiveSession, source: UpstreamScope, publicId: string): string | undefined {
    const [upstream, id, connection] = open(session, publicId) ?? []
    if (id === undefined || upstream !== source.definition.name) return undefined
    return connection === connectionOf(source, id) ? id : undefined
  }

  const sealHosted = (session: LiveSession, upstream: UpstreamName, id: string): string =>
    sealer.seal('client-task', [session.key, upstream], id)
  const openHosted = (session: LiveSession, upstream: UpstreamName, id: string): string | undefined =>
    sealer.open('client-task', [session.key, upstream], id)
  const toUpstream = (session: LiveSession, source: UpstreamScope) => (id: string) =>
    openAt(session, source, id) ?? sealHosted(session, source.definition.name, id)

  return {
    toClient: (session, source) => (id) =>
      openHosted(session, source.definition.name, id) ??
      sealer.seal('task', sessionBindingOf(session), nameOf(source, id)),
    toUpstream,
    outgoing(session, source, { method, params }) {
      const related = mapRelatedTask(params, toUpstream(session, source))
      if (related === undefined) return { method }
      if (!method.startsWith('tasks/')) return { method, params: related }
      const own = withTaskId(related, (publicId) => {
        const id = openAt(session, source, publicId)
        if (id === undefined) throw ofAnotherProcess(source.definition)
        return id
      })
      return { method, params: own }
    },
    upstreamOf: (session, publicId) => open(session, publicId)?.[0],
    nameOf,
    sealHosted,
    openHosted,
    sealCursor: (session, text) => sealer.seal('tasks-cursor', sessionBindingOf(session), text),
    openCursor: (session, cursor) => sealer.open('tasks-cursor', sessionBindingOf(session), cursor)
  }
}

const ofAnotherProcess = ({ name }: UpstreamDefinition): GatewayError =>
  new GatewayError(
    'invalid_params',
    `The task is none of the process of upstream ${name} that serves this session: that one is gone, or serves ` +
      'another session. Whether it took effect is unknown: find out before you start it again.',
    { data: { outcome: 'unknown', upstream: name } }
  )
