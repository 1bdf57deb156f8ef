// Clients of both eras that go on whatever fails: each waits for the end of its call, resumes its stream where that
// breaks, opens its session again only where it was told that it is unknown, and writes down what it saw.

import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import type { Random } from '../fuzz/random.ts'
import { legacyClient, send, type LegacyClient } from '../kit/client.ts'
import { listenEvents, postEvents, type EventStream } from '../kit/events.ts'
import { key } from '../kit/gateway.ts'
import { modernMessage } from '../kit/modern-client.ts'
import { longestCallMs, type Call, type Outcome } from './history.ts'

export interface Load {
  /** Of the endpoint at the load balancer. */
  readonly url: string
  over: boolean
  readonly history: Call[]
  /** Sessions whose `DELETE` was acknowledged, and that were known afterwards. */
  readonly revived: string[]
  readonly now: () => number
  sessions: number
}

const tools = ['web__mirror', 'web__mirror', 'local__mirror'] as const

interface Message {
  readonly id?: unknown
  readonly method?: string
  readonly params?: { readonly progress?: number; readonly message?: string }
  readonly result?: { readonly content?: ReadonlyArray<{ readonly text?: string }> }
  readonly error?: {
    readonly message?: string
    readonly data?: { readonly outcome?: string; readonly reason?: string }
  }
}

function outcomeOf(status: number, text: string, message: Message | undefined): Outcome {
  const why = `${status} ${text.slice(0, 300)}`
  // Of the load balancer: the replica was gone before it had answered.
  if (status === 502) return { kind: 'unknown', why }
  if (status === 404) return { kind: 'session lost', why }
  const { result, error } = message ?? {}
  if (result !== undefined) return { kind: 'answered', text: String(result.content?.[0]?.text) }
  if (error === undefined) return status === 503 ? { kind: 'refused', why } : { kind: 'unknown', why }
  const timedOut = error.data?.reason === 'upstream_timeout' || error.data?.reason === 'upstream_protocol'
  return { kind: error.data?.outcome === 'unknown' || timedOut ? 'unknown' : 'refused', why }
}

/** What a call has seen so far, over all connections of its stream. */
interface Seen {
  readonly ids: Set<string>
  readonly progress: number[]
  foreign: number
  twice: number
  answer: Message | undefined
  lastId: string | undefined
}

function look(stream: EventStream, canary: string, seen: Seen): void {
  for (const { id, message } of stream.events() as ReadonlyArray<{
    id: string | undefined
    message: Message | undefined
  }>) {
    seen.lastId = id ?? seen.lastId
    if (message === undefined) continue
    // An event without a message only says where to come back to.
    if (id !== undefined && seen.ids.has(id)) seen.twice++
    if (id !== undefined) seen.ids.add(id)
    if (message.method === 'notifications/progress') {
      if (message.params?.message !== canary) seen.foreign++
      seen.progress.push(Number(message.params?.progress))
    }
    if (message.method === undefined) seen.answer = message
  }
}

const lost = (error: unknown): Outcome => ({ kind: 'unknown', why: `connection: ${String(error)}` })

/** One call of a session, until its answer is there or cannot come any more. */
async function callOf(load: Load, client: LegacyClient, chance: Random): Promise<Call> {
  const canary = randomUUID()
  const tool = chance.pick(tools)
  const seen: Seen = { ids: new Set(), progress: [], foreign: 0, twice: 0, answer: undefined, lastId: undefined }
  const begun = load.now()
  const steps = chance.below(6)
  let resumed = 0
  let outcome: Outcome | undefined
  try {
    const args = { canary, steps, delayMs: chance.below(600) }
    let stream = await postEvents(load.url, client, canary, 'tools/call', {
      name: tool,
      arguments: args,
      _meta: { progressToken: canary }
    })
    /** Where no replica can be reached, or none can read the stream from the store, it tries again. */
    async function resume(by: LegacyClient, lastId: string, luck: Random): Promise<EventStream> {
      for (;;) {
        await wait(100 + luck.below(200))
        const late = load.now() - begun > longestCallMs
        const next = await listenEvents(load.url, by, lastId).catch((error: unknown) => {
          if (late) throw error
        })
        if (next !== undefined && (late || next.status < 500)) return next
        await next?.ended
      }
    }
    for (;;) {
      const late = setTimeout(stream.cut, 1.5 * longestCallMs)
      await stream.ended
      clearTimeout(late)
      if (stream.type?.startsWith('text/event-stream') === true) look(stream, canary, seen)
      else if (resumed === 0) {
        outcome = outcomeOf(stream.status, stream.text(), parsed(stream.text()))
        break
      } else if (stream.status === 404 || stream.status === 400) {
        outcome = { kind: stream.status === 404 ? 'session lost' : 'unknown', why: stream.text() }
        break
      }
      if (seen.answer !== undefined) break
      if (seen.lastId === undefined || load.now() - begun > longestCallMs) {
        outcome = { kind: 'unknown', why: 'the stream ended without an answer' }
        break
      }
      resumed++
      stream = await resume(client, seen.lastId, chance)
    }
  } catch (error) {
    outcome = lost(error)
  }
  outcome ??= outcomeOf(200, JSON.stringify(seen.answer), seen.answer)
  const { progress, foreign, twice } = seen
  return { canary, era: 'legacy', tool, begun, ended: load.now(), outcome, steps, progress, foreign, twice, resumed }
}

const parsed = (text: string): Message | undefined => {
  try {
    return JSON.parse(text) as Message
  } catch {
    return undefined
  }
}

/** Sessions, one after the other. */
export async function sessionClient(load: Load, chance: Random): Promise<void> {
  while (!load.over) {
    const client = await legacyClient(load.url, key).catch(() => undefined)
    if (client === undefined) {
      await wait(100)
      continue
    }
    load.sessions++
    for (let calls = 3 + chance.below(20); calls > 0 && !load.over; calls--) {
      const call = await callOf(load, client, chance)
      load.history.push(call)
      if (call.outcome.kind === 'session lost') break
      await wait(chance.below(100))
    }
    const ended = await client.end().catch(() => undefined)
    if (ended === undefined || ended.status >= 300) continue
    const after = await client.request('ping').catch(() => undefined)
    if (after?.status === 200) load.revived.push(client.sessionId)
  }
}

/** Requests of 2026-07-28. */
export async function modernClient(load: Load, chance: Random): Promise<void> {
  while (!load.over) {
    const canary = randomUUID()
    const tool = chance.pick(tools)
    const begun = load.now()
    const args = { canary, delayMs: chance.below(600) }
    const { body, headers } = modernMessage('tools/call', { name: tool, arguments: args }, { id: canary, token: key })
    const outcome = await send(load.url, { body, headers }).then(({ status, text, json }): Outcome => {
      const judged = outcomeOf(status, text, json as Message | undefined)
      // It has no session: a page that is not there would be a mistake of the gateway.
      return judged.kind === 'session lost' ? { kind: 'answered', text: `404 ${text}` } : judged
    }, lost)
    load.history.push({
      canary,
      era: 'modern',
      tool,
      begun,
      ended: load.now(),
      outcome,
      steps: 0,
      progress: [],
      foreign: 0,
      twice: 0,
      resumed: 0
    })
    await wait(chance.below(100))
  }
}
