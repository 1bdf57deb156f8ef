// Tasks of legacy upstreams that modern clients poll: the connection that each runs on, which stays open meanwhile,
// and the server requests of each, which wait for `tasks/update`. Bounded per caller and per tenant.

import type { Endpoint, UpstreamDefinition } from '../../config/snapshot.ts'
import { createFairEviction } from '../../limits/limits.ts'
import type { Log } from '../../observe/log.ts'
import { type ClientCapabilities, type JsonObject, RpcError, type ServerRequest } from '../../protocol/messages.ts'
import { type Client, noClient, type ServerRequestOptions, type Upstream } from '../../protocol/seams.ts'
import { relatedTaskOf } from '../../protocol/translate/task-translate.ts'
import { type Clock, pause } from '../../time/clock.ts'
import type { Pool } from '../../upstream/pool/pool.ts'
import { toInputRequest } from '../client/input-requests.ts'
import { createPendingInputs, type PendingInputs } from '../client/pending-inputs.ts'
import { createKeepAlive } from '../connections/keep-alive.ts'

export interface OpenTaskParams {
  /** Opaque: caller, upstream, connection and task. */
  readonly key: string
  /** Opaque: the caller. */
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

export interface OpenTask extends OpenTaskParams {
  /** The client polled the task, and it turned out to run or not. */
  seen(running: boolean): void
  /**
   * What the task asks, as the client gets it.
   * @param expected the task says that it asks something: it is listened to
   */
  inputRequests(expected: boolean): Promise<JsonObject>
  /**
   * Responses to unknown requests are ignored (SEP-2663).
   * @throws GatewayError invalid_params for one of the wrong shape
   */
  answer(responses: JsonObject): void
  /** The client will not answer what the task asks. */
  decline(): void
}

export interface OpenTasks {
  find(key: string): OpenTask | undefined
  track(task: OpenTaskParams): OpenTask
  drop(key: string): void
  /** Does one of them run on this connection? */
  runsOn(definition: UpstreamDefinition, scope: string): boolean
  /** A server request on a connection: of one of the tasks on it, or `otherwise`. */
  ask(
    upstream: Upstream | undefined,
    request: ServerRequest,
    options: ServerRequestOptions | undefined,
    otherwise: () => Promise<unknown>
  ): Promise<unknown>
  close(): void
}

export interface OpenTasksOptions {
  readonly clock: Clock
  readonly pool: Pick<Pool, 'touch'>
  /** Random: no two input requests of a task have the same key, even in two processes. */
  readonly newId: () => string
  readonly log: Log
}

interface Entry extends OpenTaskParams {
  readonly stop: AbortController
  readonly inputs: PendingInputs
  listening: 'not' | 'now' | 'never again'
  running: boolean
  polledAt: number
}

const limits = { perOwner: 64, perTenant: 2_500, max: 10_000 }
/** A client that has not polled its task for so long will not answer what the task asks. */
const unansweredMs = 10 * 60_000
/** And after this its connection may close. */
const unpolledMs = 60 * 60_000
/** Servers send their requests when they are asked for the result, one after the other. */
const firstRequestMs = 1_000
const nextRequestMs = 25

export function createOpenTasks({ clock, pool, newId, log }: OpenTasksOptions): OpenTasks {
  const entries = new Map<string, Entry>()
  const eviction = createFairEviction<Entry>(limits)
  /** Callers that share a connection may have been given the same task. */
  const byTask = new WeakMap<Upstream, Map<string, Set<Entry>>>()

  const keepAlive = createKeepAlive(clock, () => {
    const now = clock.now()
    let idleMs = Infinity
    for (const entry of entries.values()) {
      const silentMs = now - entry.polledAt
      if (silentMs > (entry.running ? unpolledMs : unansweredMs)) drop(entry)
      else {
        if (silentMs > unansweredMs) entry.inputs.decline()
        if (entry.running) pool.touch(entry.scope, entry.definition)
        idleMs = Math.min(idleMs, entry.definition.idleMs)
      }
    }
    return idleMs
  })

  function drop(entry: Entry): void {
    if (entries.get(entry.key) !== entry) return
    entries.delete(entry.key)
    eviction.delete(entry.definition.tenant, entry.owner, entry)
    const named = byTask.get(entry.upstream)?.get(entry.id)
    if (named?.delete(entry) === true && named.size === 0) byTask.get(entry.upstream)?.delete(entry.id)
    entry.inputs.decline()
    entry.stop.abort()
  }

  /** A caller that has too many loses the one that it has not polled for longest. */
  function evict({ definition: { tenant }, owner }: OpenTaskParams): void {
    let evicted: Entry | undefined
    for (const each of eviction.evictFrom(tenant, owner) ?? []) {
      if (evicted === undefined || each.polledAt < evicted.polledAt) evicted = each
    }
    if (evicted !== undefined) drop(evicted)
  }

  const shape = ({ upstream, endpoint, capabilities }: Entry, request: ServerRequest): JsonObject =>
    toInputRequest(request, upstream.name, endpoint, capabilities)

  async function ask(entry: Entry, request: ServerRequest, signal: AbortSignal | undefined): Promise<unknown> {
    // Refused at once where the client can never be asked.
    shape(entry, request)
    return await entry.inputs.add(`input-${newId()}`, request, signal)
  }

  /** 2025-11-25 "Input Required Status" 3: what a task asks comes when its result is asked for. */
  async function listen(entry: Entry): Promise<void> {
    if (entry.listening !== 'not') return
    entry.listening = 'now'
    const { upstream, id, capabilities, stop } = entry
    const client: Client = {
      era: 'modern',
      capabilities,
      notify() {},
      ask: (request, options) => ask(entry, request, options?.signal)
    }
    // Where server requests name no call, this one must not take those of other calls: they name their task.
    const asked = upstream.serverRequestsNameCall === true ? client : noClient
    try {
      // The result may be large, and is read again as often as the client polls.
      await upstream.request({ method: 'tasks/result', params: { taskId: id } }, asked, stop.signal)
      entry.listening = 'never again'
    } catch (err) {
      entry.listening = err instanceof RpcError ? 'never again' : 'not'
      log.debug({ err, upstream: upstream.name }, 'a task ended without a result, or could not be listened to')
    }
  }

  async function inputRequestsOf(entry: Entry, expected: boolean): Promise<JsonObject> {
    const { inputs, stop } = entry
    if (expected) {
      void listen(entry)
      const until = clock.now() + firstRequestMs
      while (inputs.size === 0 && entry.listening === 'now' && clock.now() < until)
        await pause(clock, nextRequestMs, stop.signal)
      let known = -1
      while (known !== inputs.size) {
        known = inputs.size
        await pause(clock, nextRequestMs, stop.signal)
      }
    }
    return inputs.show((request) => shape(entry, request))
  }

  const taskOf = (entry: Entry): OpenTask => ({
    ...entry,
    seen(running) {
      entry.polledAt = clock.now()
      entry.running = running
    },
    inputRequests: (expected) => inputRequestsOf(entry, expected),
    answer(responses) {
      entry.inputs.check(responses)
      entry.inputs.answer(responses)
    },
    decline: entry.inputs.decline
  })

  return {
    find(key) {
      const entry = entries.get(key)
      return entry === undefined ? undefined : taskOf(entry)
    },
    track(task) {
      const known = entries.get(task.key)
      if (known !== undefined) return taskOf(known)
      evict(task)
      const entry: Entry = {
        ...task,
        stop: new AbortController(),
        inputs: createPendingInputs(),
        listening: 'not',
        running: true,
        polledAt: clock.now()
      }
      entries.set(task.key, entry)
      eviction.add(task.definition.tenant, task.owner, entry)
      const onConnection = byTask.get(task.upstream) ?? new Map<string, Set<Entry>>()
      byTask.set(task.upstream, onConnection.set(task.id, (onConnection.get(task.id) ?? new Set()).add(entry)))
      keepAlive.add(task.definition.idleMs)
      return taskOf(entry)
    },
    drop(key) {
      const entry = entries.get(key)
      if (entry !== undefined) drop(entry)
    },
    runsOn: ({ hash }, scope) =>
      [...entries.values()].some((each) => each.running && each.scope === scope && each.definition.hash === hash),
    async ask(upstream, request, options, otherwise) {
      const id = relatedTaskOf(request.params)
      if (id === undefined || upstream === undefined) return await otherwise()
      const named = (): Set<Entry> | undefined => byTask.get(upstream)?.get(id)
      // It may come together with the answer that creates the task.
      if (named() === undefined) await pause(clock, nextRequestMs, options?.signal)
      // Where two callers have the task, nobody can say whose client is meant.
      const [entry, second] = named() ?? []
      if (entry === undefined || second !== undefined) return await otherwise()
      return await ask(entry, request, options?.signal)
    },
    close() {
      keepAlive.close()
      for (const entry of [...entries.values()]) drop(entry)
    }
  }
}
