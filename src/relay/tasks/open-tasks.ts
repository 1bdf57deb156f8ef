// Tasks of legacy upstreams that modern clients poll: the connection that each runs on, which stays open meanwhile,
// and the server requests of each, which wait for `tasks/update`. Bounded per person and per tenant.

import { isConfiguredPrincipal, type Principal } from '../../auth/principal.ts'
import type { Endpoint, UpstreamDefinition } from '../../config/snapshot.ts'
import { createFairEviction } from '../../limits/limits.ts'
import type { Log } from '../../observe/log.ts'
import { type ClientCapabilities, type JsonObject, RpcError, type ServerRequest } from '../../protocol/messages.ts'
import { type Client, noClient, type ServerRequestOptions, type Upstream } from '../../protocol/seams.ts'
import { relatedTaskOf } from '../../protocol/translate/tasks.ts'
import { type Clock, pause } from '../../time/clock.ts'
import type { Pool } from '../../upstream/pool/pool.ts'
import type { ContextOf } from '../call/call.ts'
import { toInputRequest } from '../client/input-requests.ts'
import { createPendingInputs, type PendingInputs } from '../client/pending-inputs.ts'
import { createKeepAlive } from '../connections/keep-alive.ts'
import { cancelUnwanted } from './await-task.ts'

interface OpenTaskParams {
  /** Opaque: caller, upstream, connection and task. */
  readonly key: string
  /** Opaque: the person, whatever client it uses. */
  readonly owner: string
  readonly caller: Pick<Principal, 'issuer' | 'subject'>
  readonly definition: UpstreamDefinition
  readonly scope: string
  readonly upstream: Upstream
  /** The id of the task as the upstream knows it. */
  readonly id: string
  readonly endpoint: Endpoint
  /** The capabilities that the task may use to ask for input. */
  readonly capabilities: ClientCapabilities
}

export interface OpenTask extends OpenTaskParams {
  readonly stop: AbortController
  readonly inputs: PendingInputs
  listening: 'not' | 'now' | 'never again'
  running: boolean
  polledAt: number
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
}

export type OpenTasks = ReturnType<typeof createOpenTasks>

const limits = { perOwner: 64, perTenant: 2_500, max: 10_000 }
/** A client that has not polled its task for so long will not answer what the task asks. */
const unansweredMs = 10 * 60_000
/** And after this its connection may close. */
const unpolledMs = 60 * 60_000
/** Servers send their requests when they are asked for the result, one after the other. */
const firstRequestMs = 1_000
const nextRequestMs = 25

/** @param newId random: no two input requests of a task have the same key, even in two processes */
export function createOpenTasks(clock: Clock, pool: Pick<Pool, 'touch'>, newId: () => string, log: Log) {
  const entries = new Map<string, OpenTask>()
  const eviction = createFairEviction<OpenTask>(limits)
  /** Callers that share a connection may have been given the same task. */
  const byTask = new WeakMap<Upstream, Map<string, Set<OpenTask>>>()

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

  function drop(entry: OpenTask): void {
    if (entries.get(entry.key) !== entry) return
    entries.delete(entry.key)
    eviction.delete(entry.definition.tenant, entry.owner, entry)
    const named = byTask.get(entry.upstream)?.get(entry.id)
    if (named?.delete(entry) === true && named.size === 0) byTask.get(entry.upstream)?.delete(entry.id)
    entry.inputs.decline()
    entry.stop.abort()
  }

  async function ask(entry: OpenTask, request: ServerRequest, signal: AbortSignal | undefined): Promise<unknown> {
    // Refused at once where the client can never be asked.
    shape(entry, request)
    return await entry.inputs.add(`input-${newId()}`, request, signal)
  }

  /** 2025-11-25 "Input Required Status" 3: what a task asks comes when its result is asked for. */
  async function listen(entry: OpenTask): Promise<void> {
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

  async function inputRequestsOf(entry: OpenTask, expected: boolean): Promise<JsonObject> {
    const { inputs, stop } = entry
    if (expected) {
      void listen(entry)
      const until = clock.now() + firstRequestMs
      while (inputs.size() === 0 && entry.listening === 'now' && clock.now() < until)
        await pause(clock, nextRequestMs, stop.signal)
      let known = -1
      while (known !== inputs.size()) {
        known = inputs.size()
        await pause(clock, nextRequestMs, stop.signal)
      }
    }
    return inputs.show((request) => shape(entry, request))
  }

  return {
    find: (key: string) => entries.get(key),
    track(task: OpenTaskParams): OpenTask {
      const known = entries.get(task.key)
      if (known !== undefined) return known
      const { owner, definition } = task
      // A caller that has too many loses the one that it has not polled for longest.
      const [evicted] = [...(eviction.evictFrom(definition.tenant, owner) ?? [])].sort(
        (a, b) => a.polledAt - b.polledAt
      )
      if (evicted !== undefined) drop(evicted)
      const inputs = createPendingInputs()
      const entry: OpenTask = {
        ...task,
        stop: new AbortController(),
        inputs,
        listening: 'not',
        running: true,
        polledAt: clock.now(),
        seen(running) {
          entry.polledAt = clock.now()
          entry.running = running
        },
        inputRequests: (expected) => inputRequestsOf(entry, expected),
        answer(responses) {
          inputs.check(responses)
          inputs.answer(responses)
        }
      }
      entries.set(task.key, entry)
      eviction.add(definition.tenant, owner, entry)
      const onConnection = byTask.get(task.upstream) ?? new Map<string, Set<OpenTask>>()
      byTask.set(task.upstream, onConnection.set(task.id, (onConnection.get(task.id) ?? new Set()).add(entry)))
      keepAlive.add(definition.idleMs)
      return entry
    },
    drop(key: string) {
      const entry = entries.get(key)
      if (entry !== undefined) drop(entry)
    },
    /** Cancels and drops the tasks of removed callers and endpoints; to be called after each reload. */
    retain(contextOf: ContextOf): void {
      for (const entry of [...entries.values()].filter((each) => !hasCaller(each, contextOf))) {
        drop(entry)
        if (entry.running) void cancelUnwanted(entry.upstream, entry.id)
      }
    },
    /** Does one of them run on this connection? */
    runsOn: ({ hash }: UpstreamDefinition, scope: string) =>
      [...entries.values()].some((each) => each.running && each.scope === scope && each.definition.hash === hash),
    /** A server request on a connection: of one of the tasks on it, or `otherwise`. */
    async ask(
      upstream: Upstream | undefined,
      request: ServerRequest,
      options: ServerRequestOptions | undefined,
      otherwise: () => Promise<unknown>
    ): Promise<unknown> {
      const id = relatedTaskOf(request.params)
      if (id === undefined || upstream === undefined) return await otherwise()
      const named = (): Set<OpenTask> | undefined => byTask.get(upstream)?.get(id)
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

const shape = ({ upstream, endpoint, capabilities }: OpenTask, request: ServerRequest): JsonObject =>
  toInputRequest(request, upstream.name, endpoint, capabilities)

/** Would the configuration still let the caller of the task in? */
function hasCaller({ definition, endpoint, caller }: OpenTask, contextOf: ContextOf): boolean {
  const now = contextOf(definition.tenant, endpoint.name, caller)
  return now !== undefined && isConfiguredPrincipal(caller, now.tenant.auth)
}
