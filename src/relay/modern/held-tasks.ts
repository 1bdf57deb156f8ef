// What this process holds of tasks of older upstreams, for clients that ask from time to time: the connection that each runs on, which stays
// open meanwhile, and what it asks, which waits for `tasks/update`.

import type { Endpoint, UpstreamDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import { GatewayError, RpcError } from '../../protocol/errors.ts'
import type { ClientCapabilities, JsonObject, ServerRequest } from '../../protocol/messages.ts'
import type { AskOptions, Client, Upstream } from '../../protocol/seams.ts'
import { relatedTaskOf } from '../../protocol/task-bridge.ts'
import { nobody } from '../../upstream/exchange.ts'
import { pause } from '../pace.ts'
import type { PaceClock } from '../pace.ts'
import { inputRequestOf, isAnswerTo, noAnswerTo } from './questions.ts'
import { createFairShares } from '../fair-shares.ts'

export interface TaskToHold {
  /** Whose it is, which, and of which connection. Opaque. */
  readonly key: string
  readonly owner: string
  readonly definition: UpstreamDefinition
  readonly scope: string
  readonly upstream: Upstream
  /** As the upstream knows it. */
  readonly id: string
  readonly endpoint: Endpoint
  /** What the task may ask for. */
  readonly capabilities: ClientCapabilities
}

export interface HeldTask extends TaskToHold {
  /** Somebody asked for it, and it turned out to run or not. */
  seen (running: boolean): void
  /** What it asks, as the client gets it. @param expected it says that it asks something: that is listened for */
  questions (expected: boolean): Promise<JsonObject>
  /** Those that are no answers to anything are ignored (SEP-2663). @throws GatewayError invalid_params for one of the wrong shape */
  answer (responses: JsonObject): void
  /** Nobody will answer. */
  turnAway (): void
}

export interface HeldTasks {
  find (key: string): HeldTask | undefined
  hold (task: TaskToHold): HeldTask
  drop (key: string): void
  /** Does one of them run on this connection? */
  needs (definition: UpstreamDefinition, scope: string): boolean
  /** What comes on a connection: asked for one of the tasks on it, or `otherwise`. */
  ask (upstream: Upstream | undefined, request: ServerRequest, options: AskOptions | undefined, otherwise: () => Promise<unknown>): Promise<unknown>
  close (): void
}

export interface HeldTasksOptions {
  readonly clock: PaceClock
  /** The connection is in use. */
  readonly touch: (scope: string, definition: UpstreamDefinition) => void
  /** Random: a key is never used for two questions of a task, be it by two processes. */
  readonly newId: () => string
  readonly log: Log
}

interface Question {
  readonly shown: JsonObject
  readonly method: string
  readonly resolve: (answer: unknown) => void
  readonly reject: (error: Error) => void
}

interface Entry extends TaskToHold {
  readonly stop: AbortController
  readonly open: Map<string, Question>
  listening: 'not' | 'now' | 'never again'
  running: boolean
  seenAt: number
}

const room = { perOwner: 64, perTenant: 2_500, most: 10_000 }
/** A client that has not asked for so long leaves the questions of its task to nobody. */
const patienceMs = 10 * 60_000
/** And after this its connection. */
const keptMs = 60 * 60_000
const sweepMs = 5_000
/** Servers send their questions when they are asked for the result, one after the other. */
const arrivalMs = 1_000
const gatherMs = 25
const never = new AbortController().signal

export function createHeldTasks ({ clock, touch, newId, log }: HeldTasksOptions): HeldTasks {
  const entries = new Map<string, Entry>()
  const shares = createFairShares<Entry>(room)
  /** Where callers share a connection, two of them may have been given the same task. */
  const byTask = new WeakMap<Upstream, Map<string, Set<Entry>>>()
  let sweeper: { close (): unknown } | undefined
  let closed = false

  function drop (entry: Entry): void {
    if (entries.get(entry.key) !== entry) return
    entries.delete(entry.key)
    shares.delete(entry.definition.tenant, entry.owner, entry)
    const named = byTask.get(entry.upstream)?.get(entry.id)
    if (named?.delete(entry) === true && named.size === 0) byTask.get(entry.upstream)?.delete(entry.id)
    turnAway(entry)
    entry.stop.abort()
  }

  function turnAway ({ open }: Entry): void {
    for (const { method, resolve, reject } of [...open.values()]) {
      try {
        resolve(noAnswerTo({ method }))
      } catch (error) {
        reject(error as Error)
      }
    }
    open.clear()
  }

  function sweep (): void {
    sweeper = undefined
    const now = clock.now()
    let every = sweepMs
    for (const entry of entries.values()) {
      const silentMs = now - entry.seenAt
      if (silentMs > (entry.running ? keptMs : patienceMs)) drop(entry)
      else {
        if (silentMs > patienceMs) turnAway(entry)
        if (entry.running) touch(entry.scope, entry.definition)
        every = Math.min(every, entry.definition.idleMs / 3)
      }
    }
    if (entries.size === 0 || closed) return
    const timer = clock.timer(every, sweep)
    timer.unref()
    sweeper = timer
  }

  /** Whoever has too many loses hold of the one that it has not asked for longest. */
  function makeRoom ({ definition: { tenant }, owner }: TaskToHold): void {
    const leaving = [...shares.giver(tenant, owner) ?? []].reduce<Entry | undefined>((first, each) => first === undefined || each.seenAt < first.seenAt ? each : first, undefined)
    if (leaving !== undefined) drop(leaving)
  }

  async function ask (entry: Entry, request: ServerRequest, signal: AbortSignal | undefined): Promise<unknown> {
    const shown = inputRequestOf(request, entry.upstream.name, entry.endpoint, entry.capabilities)
    const { open } = entry
    const key = `input-${newId()}`
    return await new Promise((resolve, reject) => {
      const onWithdrawn = (): void => {
        if (open.delete(key)) reject(new GatewayError('cancelled', 'The server withdrew its request.'))
      }
      open.set(key, { shown, method: request.method, resolve, reject })
      signal?.addEventListener('abort', onWithdrawn, { once: true })
    })
  }

  /** 2025-11-25 "Input Required Status" 3: what a task asks comes when its result is asked for. */
  function listen (entry: Entry): void {
    if (entry.listening !== 'not') return
    entry.listening = 'now'
    const { upstream, id, capabilities, stop } = entry
    const client: Client = { era: 'modern', capabilities, notify () {}, ask: (request, options) => ask(entry, request, options?.signal) }
    // Where questions name no call, this one must not stand in the way of those of other calls: they name their task.
    upstream.request({ method: 'tasks/result', params: { taskId: id } }, upstream.namesCalls === true ? client : nobody, stop.signal).then(() => {
      // It may be large, and can be had as often as the client asks.
      entry.listening = 'never again'
    }, (err: unknown) => {
      entry.listening = err instanceof RpcError ? 'never again' : 'not'
      log.debug({ err, upstream: upstream.name }, 'a task ended without a result, or could not be listened to')
    })
  }

  function taskOf (entry: Entry): HeldTask {
    const { open } = entry
    return {
      ...entry,
      seen (running) {
        entry.seenAt = clock.now()
        entry.running = running
      },
      async questions (expected) {
        const shown = (): JsonObject => Object.fromEntries([...open].map(([key, question]) => [key, question.shown]))
        if (!expected) return shown()
        listen(entry)
        const until = clock.now() + arrivalMs
        while (open.size === 0 && entry.listening === 'now' && clock.now() < until) await pause(clock, gatherMs, entry.stop.signal)
        let known = -1
        while (known !== open.size) {
          known = open.size
          await pause(clock, gatherMs, entry.stop.signal)
        }
        return shown()
      },
      answer (responses) {
        const given = [...open].filter(([key]) => Object.hasOwn(responses, key))
        for (const [key, { method }] of given) {
          if (!isAnswerTo(method, responses[key])) throw new GatewayError('invalid_params', `inputResponses[${JSON.stringify(key)}] is no result of ${method}.`)
        }
        for (const [key, { resolve }] of given) {
          open.delete(key)
          resolve(responses[key])
        }
      },
      turnAway: () => turnAway(entry)
    }
  }

  return {
    find (key) {
      const entry = entries.get(key)
      return entry === undefined ? undefined : taskOf(entry)
    },
    hold (task) {
      const known = entries.get(task.key)
      if (known !== undefined) return taskOf(known)
      makeRoom(task)
      const entry: Entry = { ...task, stop: new AbortController(), open: new Map(), listening: 'not', running: true, seenAt: clock.now() }
      entries.set(task.key, entry)
      shares.add(task.definition.tenant, task.owner, entry)
      const onIt = byTask.get(task.upstream) ?? new Map<string, Set<Entry>>()
      byTask.set(task.upstream, onIt.set(task.id, (onIt.get(task.id) ?? new Set()).add(entry)))
      if (sweeper === undefined) sweep()
      return taskOf(entry)
    },
    drop (key) {
      const entry = entries.get(key)
      if (entry !== undefined) drop(entry)
    },
    needs: ({ hash }, scope) => [...entries.values()].some((each) => each.running && each.scope === scope && each.definition.hash === hash),
    async ask (upstream, request, options, otherwise) {
      const id = relatedTaskOf(request.params)
      if (id === undefined || upstream === undefined) return await otherwise()
      const named = (): Set<Entry> | undefined => byTask.get(upstream)?.get(id)
      // It may come together with the answer that makes the task.
      if (named() === undefined) await pause(clock, gatherMs, options?.signal ?? never)
      // Whose question it is, nobody can say where it could be that of several.
      const [entry, second] = named() ?? []
      return await (entry === undefined || second !== undefined ? otherwise() : ask(entry, request, options?.signal))
    },
    close () {
      closed = true
      sweeper?.close()
      for (const entry of [...entries.values()]) drop(entry)
    }
  }
}
