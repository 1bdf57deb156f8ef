// Clients of both eras that go on whatever fails: each waits for the end of its call, resumes its stream where that
// breaks, answers what it is asked, opens its session again only where it was told that it is unknown, and writes down
// what it saw.

import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import type { Random } from '../fuzz/random.ts'
import { jsonHeaders, legacyClient, send, type LegacyClient } from '../kit/client.ts'
import { listenEvents, postEvents, type EventStream } from '../kit/events.ts'
import { modernMessage } from '../kit/modern-client.ts'
import { longestCallMs, type Asked, type Call, type Outcome } from './history.ts'
import {
  look,
  lost,
  mirrors,
  leftCallOf,
  nothingSeen,
  outcomeOf,
  parsed,
  questions,
  textAt,
  type Load,
  type Message
} from './load.ts'

export const capabilities = { elicitation: { form: {} } }
export const isQuestion = (tool: string): boolean => tool.endsWith('__ask')
/** How long a person takes to answer. */
const thinkingMs = 400

/** Of sessions: calls at servers over stdio that ended without an answer, and may still ask. */
const leftCalls = new WeakMap<LegacyClient, Map<string, string>>()

/** In milliseconds: a stream is looked at so often. */
const lookMs = 20

/** Posts the answer to a question until it is taken or refused. @returns why it was not taken */
async function answer(load: Load, { headers }: LegacyClient, id: unknown, word: string, luck: Random) {
  const body = JSON.stringify({ jsonrpc: '2.0', id, result: { action: 'accept', content: { word } } })
  const begun = load.now()
  await wait(luck.below(thinkingMs))
  for (;;) {
    const taken = await send(load.url, { headers: { ...jsonHeaders, ...headers }, body }).catch(() => undefined)
    if (taken?.status === 202) return undefined
    const isAway = taken === undefined || taken.status >= 500
    if (!isAway || load.now() - begun > longestCallMs) return `${taken?.status} ${taken?.text}`
    await wait(50 + luck.below(100))
  }
}

/** One call of a session, until its answer is there or cannot come any more. */
export async function callOf(load: Load, client: LegacyClient, chance: Random, tool: string): Promise<Call> {
  const canary = randomUUID()
  const word = randomUUID()
  const seen = nothingSeen()
  const left = leftCalls.get(client) ?? new Map<string, string>()
  leftCalls.set(client, left)
  const begun = load.now()
  const steps = isQuestion(tool) || tool.endsWith('__tell') ? 0 : chance.below(6)
  let refused: string | undefined
  let resumed = 0
  let outcome: Outcome | undefined

  /** Where no replica can be reached, or none can read the stream from the store, it tries again. */
  async function resume(lastId: string): Promise<EventStream> {
    for (;;) {
      await wait(100 + chance.below(200))
      const late = load.now() - begun > longestCallMs
      const next = await listenEvents(load.url, client, lastId).catch((error: unknown) => {
        if (late) throw error
      })
      if (next !== undefined && (late || next.status < 500)) return next
      await next?.ended
    }
  }

  /** Answers what is asked meanwhile. */
  async function readToEnd(stream: EventStream): Promise<void> {
    const late = setTimeout(stream.cut, 1.5 * longestCallMs)
    for (let from = 0, over = false; !over;) {
      over = stream.closed
      if (stream.type?.startsWith('text/event-stream') === true) {
        const asked = look(stream, from, canary, seen, left)
        from = stream.events().length
        for (const question of asked) {
          const leftCall = leftCallOf(question, left)
          const given = leftCall === undefined ? word : (left.get(leftCall) ?? '')
          const taken = await answer(load, client, question.id, given, chance)
          if (leftCall === undefined) refused = taken
        }
      }
      if (!over) await Promise.race([stream.ended, wait(lookMs)])
    }
    clearTimeout(late)
  }

  try {
    let stream = await postEvents(load.url, client, canary, 'tools/call', {
      name: tool,
      arguments: { canary, steps, delayMs: chance.below(600) },
      _meta: { progressToken: canary }
    })
    for (;;) {
      await readToEnd(stream)
      if (stream.type?.startsWith('text/event-stream') !== true) {
        if (resumed === 0) {
          seen.answer = parsed(stream.text())
          outcome = outcomeOf(stream.status, stream.text(), seen.answer)
          break
        }
        if (stream.status === 404 || stream.status === 400) {
          outcome = { kind: stream.status === 404 ? 'session lost' : 'unknown', why: stream.text() }
          break
        }
      }
      if (seen.answer !== undefined) break
      if (seen.lastId === undefined || load.now() - begun > longestCallMs) {
        outcome = { kind: 'unknown', why: 'the stream ended without an answer' }
        break
      }
      resumed++
      stream = await resume(seen.lastId)
    }
  } catch (error) {
    outcome = lost(error)
  }
  outcome ??= outcomeOf(200, JSON.stringify(seen.answer), seen.answer)
  if (outcome.kind !== 'answered' && tool === 'local__ask') left.set(canary, word)
  const { progress, foreign, twice } = seen
  const asked: Asked = { word, questions: seen.questions.size, heard: textAt(seen.answer, 1), refused }
  return {
    canary,
    era: 'legacy',
    tool,
    begun,
    ended: load.now(),
    outcome,
    steps,
    progress,
    foreign,
    twice,
    resumed,
    ...(isQuestion(tool) ? { asked } : {}),
    ...(tool.endsWith('__tell') ? { told: textAt(seen.answer, 1) === 'told' } : {})
  }
}

/** @returns undefined where there is none now; a moment has passed then */
export async function openSession(load: Load): Promise<LegacyClient | undefined> {
  const client = await legacyClient(load.url, load.token, '2025-11-25', capabilities).catch(() => undefined)
  if (client === undefined) await wait(100)
  else load.sessions++
  return client
}

/** Sessions, one after the other. */
export async function sessionClient(load: Load, chance: Random): Promise<void> {
  while (!load.over) {
    const client = await openSession(load)
    if (client === undefined) continue
    for (let calls = 3 + chance.below(20); calls > 0 && !load.over; calls--) {
      const tools = chance.below(4) === 0 ? questions : mirrors
      const call = await callOf(load, client, chance, chance.pick(tools))
      load.history.push(call)
      if (call.outcome.kind === 'session lost') break
      await wait(chance.below(load.restMs))
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
    const word = randomUUID()
    const tool = chance.pick(chance.below(4) === 0 ? questions : mirrors)
    const begun = load.now()
    const params = { name: tool, arguments: { canary, delayMs: chance.below(600) } }
    let asked = 0
    let said: Message | undefined
    async function post(more: object): Promise<Outcome> {
      const options = { id: canary, token: load.token, capabilities }
      const { body, headers } = modernMessage('tools/call', { ...params, ...more }, options)
      const { status, text, json } = await send(load.url, { body, headers })
      said = json as Message | undefined
      const { inputRequests, requestState } = said?.result ?? {}
      if (typeof inputRequests === 'object' && inputRequests !== null && asked++ === 0) {
        await wait(chance.below(thinkingMs))
        const response = { action: 'accept', content: { word } }
        const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((name) => [name, response]))
        return await post({ inputResponses, requestState })
      }
      const judged = outcomeOf(status, text, said)
      // It has no session: a page that is not there would be a mistake of the gateway.
      return judged.kind === 'session lost' ? { kind: 'answered', text: `404 ${text}` } : judged
    }
    const outcome = await post({}).catch(lost)
    const heard = textAt(said, 1)
    load.history.push({
      canary,
      era: 'modern',
      tool,
      begun,
      ended: load.now(),
      outcome: asked > 0 && outcome.kind === 'refused' ? { ...outcome, kind: 'unknown' } : outcome,
      steps: 0,
      progress: [],
      foreign: 0,
      twice: 0,
      resumed: 0,
      ...(isQuestion(tool) ? { asked: { word, questions: asked, heard, refused: undefined } } : {})
    })
    await wait(chance.below(load.restMs))
  }
}
