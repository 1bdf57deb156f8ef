// `node attackers.ts`, with IPC: the attacking callers of one slice, in a process of their own. It is told `Orders`,
// and tells how their requests ended, by attack.

import { once } from 'node:events'
import { setPriority } from 'node:os'
import { random } from '../../fuzz/random.ts'
import { legacyClient } from '../../kit/client.ts'
import { modernRequest } from '../../kit/modern-client.ts'
import { memoryAttacks, note } from '../memory-attacks.ts'
import { type CallerAttack, type HourAttack, pause, soon } from './connection-attacks.ts'
import { callerAttacks, type Slice } from './slices.ts'

export interface Orders {
  readonly slice: Slice
  readonly seed: number
  readonly ms: number
  readonly origin: string
  readonly keys: readonly string[]
}

/** By attack: how its requests ended, and how often. */
export type Ended = Readonly<Record<string, Readonly<Record<string, number>>>>

// What is measured runs before what attacks.
setPriority(10)
// What a connection that is cut throws somewhere is no more than that.
process.on('uncaughtException', () => {})
process.on('unhandledRejection', () => {})

process.once('disconnect', () => process.exit(1))

const capabilities = { sampling: {}, elicitation: { form: {}, url: {} }, roots: {} }

/** Somebody uses an upstream that attacks. */
const useOf =
  (upstream: string): CallerAttack =>
  async (attack, key) => {
    const { chance } = attack
    const url = attack.url.replace('/mcp', `/${upstream}/mcp`)
    const call = { name: 'attack', arguments: {}, _meta: { progressToken: 1 } }
    if (chance.chance(0.4)) {
      const options = { token: key, capabilities, signal: soon(attack, 4_000) }
      await modernRequest(url, 'tools/list', {}, options)
      note(attack, String((await modernRequest(url, 'tools/call', call, options)).status))
      return
    }
    const client = await legacyClient(url, key, '2025-11-25', chance.chance(0.5) ? capabilities : {})
    const stream = chance.chance(0.5) ? await client.listen().catch(() => undefined) : undefined
    await client.request('tools/list', {}, { signal: soon(attack, 4_000) })
    await Promise.all(
      Array.from({ length: 1 + chance.below(4) }, async () => {
        const answer = await client.request('tools/call', call, { signal: soon(attack, 4_000) })
        note(attack, String(answer.json?.error?.data?.reason ?? answer.status))
      })
    ).finally(() => stream?.close())
    if (chance.chance(0.7)) await client.end()
  }

const [{ slice, seed, ms, origin, keys }] = (await once(process, 'message')) as [Orders]
/** Of each attacker, also of one that does not come to an end. */
const all: Array<readonly [name: string, counts: ReadonlyMap<string, number>]> = []
const signal = AbortSignal.timeout(ms)

async function attacker(name: string, run: CallerAttack, at: number): Promise<void> {
  const counts = new Map<string, number>()
  all.push([name, counts])
  const attack: HourAttack = {
    url: `${origin}/t/acme/mcp`,
    signal,
    ended: counts,
    sessions: [],
    chance: random(seed, slice.number * 1_000 + at)
  }
  for (let round = at; !signal.aborted; round++) {
    note(attack, 'rounds')
    // It is refused, or its connection is closed: it tries again.
    await run(attack, keys[round % keys.length] ?? '', round).catch(() => pause(attack, 100))
  }
}

const attacks = [
  ...slice.callers.map((name) => [name, callerAttacks[name]] as const),
  ...slice.memory.map((name) => [name, memoryAttacks[name]] as const),
  ...slice.upstreams.map((name) => [name, useOf(name)] as const)
]
const attackers = attacks.flatMap(([name, run], kind) =>
  run === undefined ? [] : Array.from({ length: slice.crowd }, (_, at) => attacker(name, run, kind * 50 + at))
)
// An attack that hangs is not waited for.
await Promise.race([Promise.all(attackers), new Promise((resolve) => setTimeout(resolve, ms + 30_000).unref())])
const ended: Record<string, Record<string, number>> = {}
for (const [name, counts] of all) {
  const sum = (ended[name] ??= {})
  for (const [outcome, count] of counts) sum[outcome] = (sum[outcome] ?? 0) + count
}
process.send?.(ended satisfies Ended, () => process.exit(0))
