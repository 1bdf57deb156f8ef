// A client of 2025-11-25 that listens on the stream of its session: each of its calls has its server tell it something
// there. Where the stream breaks, or ends with the replica that held it, it resumes it at whichever replica is next.

import { setTimeout as wait } from 'node:timers/promises'
import type { Random } from '../fuzz/random.ts'
import type { LegacyClient } from '../kit/client.ts'
import { listenEvents, type EventStream } from '../kit/events.ts'
import { callOf, openSession } from './clients.ts'
import type { Caused, Heard } from './heard.ts'
import { longestCallMs } from './history.ts'
import type { Load, Message } from './load.ts'

const uri = 'gatehouse://local/test://one'
const lookMs = 20

/** Listens until it is told to stop. */
function listen(load: Load, client: LegacyClient, chance: Random) {
  const canaries: string[] = []
  const ids: string[] = []
  let lastId: string | undefined
  let resumed = 0
  let refused: string | undefined
  const stop = new AbortController()
  let current: EventStream | undefined

  function read(stream: EventStream, from: number): number {
    const events = stream.events()
    for (const { id, message } of events.slice(from)) {
      lastId = id ?? lastId
      if (message === undefined) continue
      const { method, params } = message as Message
      if (id !== undefined) ids.push(id)
      // One without a canary is of the gateway: it has subscribed anew, and something may have been missed.
      const canary = params?._meta?.canary
      if (method === 'notifications/resources/updated' && canary !== undefined) canaries.push(canary)
    }
    return events.length
  }

  async function run(): Promise<void> {
    while (!stop.signal.aborted) {
      const stream = await listenEvents(load.url, client, lastId).catch(() => undefined)
      if (stream?.status === 200) {
        current = stream
        if (lastId !== undefined) resumed++
        for (let from = 0, closed = false; !closed;) {
          closed = stream.closed
          from = read(stream, from)
          if (!closed) await Promise.race([stream.ended, wait(lookMs)])
        }
        // Asked to come back later, it does so.
        const retry = stream.events().findLast(({ retry }) => retry !== undefined)?.retry
        if (!stop.signal.aborted) await wait(retry ?? 100)
        continue
      }
      await stream?.ended
      if (stream !== undefined && stream.status < 500 && stream.status !== 429) {
        refused = `${stream.status} ${stream.text()}`
        return
      }
      await wait(100 + chance.below(200))
    }
  }

  const running = run()
  return {
    canaries,
    ids,
    isOpen: () => lastId !== undefined || refused !== undefined,
    get resumed() {
      return resumed
    },
    get refused() {
      return refused
    },
    async stop() {
      stop.abort()
      current?.cut()
      await running
    }
  }
}

/** Sessions, one after the other. @param mostCalls of one of them */
export async function listeningClient(load: Load, chance: Random, mostCalls = 50): Promise<void> {
  while (!load.over) {
    const client = await openSession(load)
    if (client === undefined) continue
    const caused: Caused[] = []
    const stream = listen(load, client, chance)
    while (!stream.isOpen()) await wait(lookMs)
    for (
      let calls = mostCalls === Infinity ? mostCalls : 10 + chance.below(mostCalls);
      calls > 0 && !load.over;
      calls--
    ) {
      const call = await callOf(load, client, chance, 'local__tell')
      load.history.push(call)
      if (call.outcome.kind === 'session lost') break
      const isAnswered = call.outcome.kind === 'answered'
      if (!isAnswered || call.told === true)
        caused.push({ canary: call.canary, sure: isAnswered, during: [Math.round(call.begun), Math.round(call.ended)] })
      // A server that a new home has started knows of no subscription.
      else await client.request('resources/subscribe', { uri }).catch(() => undefined)
      await wait(chance.below(load.restMs))
    }
    const late = load.now() + longestCallMs
    const missing = (): boolean => caused.some(({ canary, sure }) => sure && !stream.canaries.includes(canary))
    while (missing() && stream.refused === undefined && load.now() < late) await wait(lookMs)
    await stream.stop()
    const { canaries, ids, resumed, refused } = stream
    load.heard.push({ session: client.sessionId.slice(0, 8), caused, canaries, ids, resumed, refused } satisfies Heard)
    await client.end().catch(() => undefined)
  }
}
