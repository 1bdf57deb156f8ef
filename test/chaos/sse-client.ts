// Clients of HTTP+SSE (2024-11-05), whose session is their stream: where that ends, they open another one.

import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import type { Random } from '../fuzz/random.ts'
import { httpSseClient, type HttpSseClient } from '../kit/http-sse-client.ts'
import { capabilities, isQuestion } from './clients.ts'
import { longestCallMs, type Call, type Outcome } from './history.ts'
import { lost, mirrors, nothingSeen, outcomeOf, questions, see, textAt, type Load, type Message } from './load.ts'

const lookMs = 20
/** Of the transport, and one that its clients may negotiate, in which they can be asked by a form. */
const revisions = ['2024-11-05', '2025-11-25'] as const

/** @param earlier calls of this stream: what they are answered late is of nobody else */
async function callOver(
  load: Load,
  client: HttpSseClient,
  chance: Random,
  tool: string,
  earlier: Set<unknown>
): Promise<Call> {
  const canary = randomUUID()
  const word = randomUUID()
  const seen = nothingSeen()
  const begun = load.now()
  const steps = isQuestion(tool) ? 0 : chance.below(6)
  let refused: string | undefined
  let from = client.messages.length

  async function answer(id: unknown): Promise<void> {
    await wait(chance.below(400))
    const response = { jsonrpc: '2.0', id, result: { action: 'accept', content: { word } } }
    do {
      const taken = await client.post(response).catch(() => undefined)
      refused = taken?.status === 202 ? undefined : `${taken?.status} ${taken?.text}`
      if (taken !== undefined && taken.status < 500) return
      await wait(50 + chance.below(100))
    } while (!client.closed)
  }

  async function toTheEnd(): Promise<Outcome> {
    const args = { canary, steps, delayMs: chance.below(600) }
    const params = { name: tool, arguments: args, _meta: { progressToken: canary } }
    const posted = await client.post({ jsonrpc: '2.0', id: canary, method: 'tools/call', params })
    // Its stream may have ended meanwhile, and its session with it: that is no loss.
    if (posted.status === 404) return { kind: 'refused', why: `404 ${posted.text}` }
    if (posted.status !== 202) return outcomeOf(posted.status, posted.text, posted.json as Message | undefined)
    while (seen.answer === undefined) {
      const over = client.closed
      const messages = client.messages.slice(from) as Message[]
      from += messages.length
      for (const message of messages) {
        const { id, method, params } = message
        if (earlier.has(id) || earlier.has(params?.progressToken)) continue
        if (method === undefined && id !== canary) seen.foreign++
        else {
          const question = see(message, canary, seen)
          if (question !== undefined) await answer(question.id)
        }
      }
      if (over) break
      if (load.now() - begun > longestCallMs) break
      await Promise.race([client.ended, wait(lookMs)])
    }
    if (seen.answer === undefined) return { kind: 'unknown', why: 'the stream of HTTP+SSE ended without an answer' }
    return outcomeOf(200, JSON.stringify(seen.answer), seen.answer)
  }

  const outcome = await toTheEnd().catch(lost)
  earlier.add(canary)
  const { progress, foreign, twice } = seen
  const asked = { word, questions: seen.questions.size, heard: textAt(seen.answer, 1), refused }
  return {
    canary,
    era: 'sse',
    tool,
    begun,
    ended: load.now(),
    outcome,
    steps,
    progress,
    foreign,
    twice,
    resumed: 0,
    ...(isQuestion(tool) ? { asked } : {})
  }
}

/** Sessions, one after the other. */
export async function httpSseLoad(load: Load, chance: Random): Promise<void> {
  while (!load.over) {
    const revision = chance.pick(revisions)
    const client = await httpSseClient(load.url, load.token, revision, capabilities).catch(() => undefined)
    if (client === undefined) {
      await wait(100)
      continue
    }
    load.sessions++
    const earlier = new Set<unknown>()
    for (let calls = 3 + chance.below(20); calls > 0 && !load.over && !client.closed; calls--) {
      const tools = revision === '2025-11-25' && chance.below(3) === 0 ? questions : mirrors
      const call = await callOver(load, client, chance, chance.pick(tools), earlier)
      load.history.push(call)
      if (call.outcome.kind === 'refused' && call.outcome.why.startsWith('404')) break
      await wait(chance.below(load.restMs))
    }
    client.close()
  }
}
