// What clients share while parts fail: where they call, what they write down, and how they read what comes.

import type { EventStream } from '../kit/events.ts'
import type { Heard } from './heard.ts'
import type { Call, Outcome } from './history.ts'

export interface Load {
  /** Of the endpoint at the load balancer: `web` and `local` are canary servers, whose tools have their prefixes. */
  readonly url: string
  readonly token: string
  over: boolean
  readonly history: Call[]
  readonly heard: Heard[]
  /** Sessions whose `DELETE` was acknowledged, and that were known afterwards. */
  readonly revived: string[]
  /** Between two calls of a client, at most. */
  readonly restMs: number
  readonly now: () => number
  sessions: number
}

export function createLoad(url: string, token: string, restMs = 100): Load {
  const began = performance.now()
  const now = (): number => performance.now() - began
  return { url, token, over: false, history: [], heard: [], revived: [], sessions: 0, restMs, now }
}

export const mirrors = ['web__mirror', 'web__mirror', 'local__mirror'] as const
export const questions = ['web__ask', 'web__ask', 'local__ask'] as const

export interface Message {
  readonly id?: string | number
  readonly method?: string
  readonly params?: {
    readonly progress?: number
    readonly progressToken?: string
    readonly message?: string
    readonly _meta?: { readonly canary?: string }
  }
  readonly result?: { readonly content?: ReadonlyArray<{ readonly text?: string }> } & Readonly<Record<string, unknown>>
  readonly error?: {
    readonly message?: string
    readonly data?: { readonly outcome?: string; readonly reason?: string }
  }
}

export const textAt = (message: Message | undefined, at: number): string | undefined =>
  message?.result?.content?.[at]?.text

export function outcomeOf(status: number, text: string, message: Message | undefined): Outcome {
  const why = `${status} ${text.slice(0, 300)}`
  // Of the load balancer: the replica was gone before it had answered.
  if (status === 502) return { kind: 'unknown', why }
  if (status === 404) return { kind: 'session lost', why }
  const { result, error } = message ?? {}
  if (result !== undefined) return { kind: 'answered', text: String(textAt(message, 0)) }
  if (error === undefined) return status === 503 ? { kind: 'refused', why } : { kind: 'unknown', why }
  const timedOut = error.data?.reason === 'upstream_timeout' || error.data?.reason === 'upstream_protocol'
  return { kind: error.data?.outcome === 'unknown' || timedOut ? 'unknown' : 'refused', why }
}

export const lost = (error: unknown): Outcome => ({ kind: 'unknown', why: `connection: ${String(error)}` })

export const parsed = (text: string): Message | undefined => {
  try {
    return JSON.parse(text) as Message
  } catch {
    return undefined
  }
}

/** What a call has seen so far, over all connections of its stream. */
export interface Seen {
  readonly ids: Set<string>
  readonly progress: number[]
  /** Ids of questions. */
  readonly questions: Set<string | number>
  /** Ids of questions of calls that this client has left. */
  readonly ofLeft: Set<string | number>
  foreign: number
  twice: number
  answer: Message | undefined
  lastId: string | undefined
}

export const nothingSeen = (): Seen => ({
  ids: new Set(),
  progress: [],
  questions: new Set(),
  ofLeft: new Set(),
  foreign: 0,
  twice: 0,
  answer: undefined,
  lastId: undefined
})

/** Canaries of calls of the same session that were given up and may still run, and the answers to their questions. */
export type LeftCalls = ReadonlyMap<string, string>

/** A server over stdio does not say for which call of its session it asks: only a reader of the question can tell. */
export const leftCallOf = ({ params }: Message, left: LeftCalls): string | undefined =>
  [...left.keys()].find((canary) => params?.message?.includes(canary) === true)

/** @returns the question that it is, if it has not been seen before */
export function see(message: Message, canary: string, seen: Seen, left: LeftCalls = new Map()): Message | undefined {
  const { id, method, params } = message
  if (method === undefined) seen.answer = message
  if (method === 'notifications/progress') {
    // Progress has a message since 2025-03-26.
    if ((params?.message ?? params?.progressToken) !== canary) seen.foreign++
    seen.progress.push(Number(params?.progress))
  }
  if (method === undefined || id === undefined) return undefined
  if (leftCallOf(message, left) !== undefined) {
    const isNew = !seen.ofLeft.has(id)
    seen.ofLeft.add(id)
    return isNew ? message : undefined
  }
  // The gateway says ahead of it which server asks.
  if (params?.message?.includes(canary) !== true) seen.foreign++
  if (seen.questions.has(id)) return undefined
  seen.questions.add(id)
  return message
}

/**
 * @param from how many events of this connection were looked at before
 * @returns the questions among the others
 */
export function look(stream: EventStream, from: number, canary: string, seen: Seen, left: LeftCalls): Message[] {
  const events = stream.events() as ReadonlyArray<{ id: string | undefined; message: Message | undefined }>
  return events.slice(from).flatMap(({ id, message }) => {
    seen.lastId = id ?? seen.lastId
    if (message === undefined) return []
    // An event without a message only says where to come back to.
    if (id !== undefined && seen.ids.has(id)) seen.twice++
    if (id !== undefined) seen.ids.add(id)
    return see(message, canary, seen, left) ?? []
  })
}
