// People of several tenants do whatever people do, and some of what attackers do, at two processes at once. Nothing that
// one of them gets, no server, log, metric, audit record or store key ever holds the canary of another tenant.

import { open } from '../kit/client.ts'
import { random } from '../fuzz/random.ts'
import { nextAct, type Actor } from './acts.ts'
import type { House, World } from './world.ts'

export interface IsolationReport {
  operations: number
  /** By kind: how often, how often it was answered with a result, and how often by the tenant's own canary. */
  readonly kinds: Record<string, { done: number; ok: number; own: number }>
  readonly leaks: string[]
  /** Exchanges without an answer, and why. */
  readonly failures: string[]
  /** Characters of the live calls and audit records of a tenant, as its tenant-admin saw them. */
  readonly watched: Map<string, number>
}

/** @returns those whose secrets stand in a text, other than the tenant's own */
export function foreignSecrets(world: World, own: House | undefined, text: string): string[] {
  return world.houses
    .filter((house) => house !== own && house.secrets.some((secret) => text.includes(secret)))
    .map(({ id }) => id)
}

/** Operations between two looks at what was said meanwhile. */
const lookEvery = 200

/** What a long run keeps of a part of it. */
export interface IsolationFigures extends Pick<IsolationReport, 'operations' | 'kinds'> {
  readonly requests: number
  readonly failures: number
}

export interface IsolationOptions {
  readonly operations: number
  /** After which it ends, whatever it has done. */
  readonly seconds: number
  /** Of what everybody does; how they overlap is chance. */
  readonly seed: number
  /** Of operations that begin or end something: in a long run most are calls, lists and the like. */
  readonly slowShare: number | undefined
  /** Called from time to time. */
  readonly look: () => void
}

export async function isolation(
  world: World,
  { operations, seconds, seed, slowShare, look }: IsolationOptions
): Promise<IsolationReport> {
  const until = performance.now() + seconds * 1_000
  const report: IsolationReport = { operations: 0, kinds: {}, leaks: [], failures: [], watched: new Map() }
  const actors = world.houses.flatMap((house, at) =>
    house.people.map((person, n): Actor => ({ house, person, chance: random(seed, at * 1_000 + n), known: {} }))
  )

  function judge({ house }: Actor, kind: string, text: string): void {
    for (const id of foreignSecrets(world, house, text))
      report.leaks.push(`${kind}: ${house.id} got ${id}: ${text.slice(0, 2_000)}`)
  }

  let begun = 0
  async function live(actor: Actor): Promise<void> {
    const others = actors.filter(({ house }) => house !== actor.house)
    while (report.operations < operations && report.leaks.length === 0 && performance.now() < until) {
      if (++begun % lookEvery === 0) look()
      const [kind, act] = nextAct(actor, slowShare)
      const texts = await act({ ...actor, world, victim: actor.chance.pick(others) }).catch((error: unknown) => {
        report.failures.push(`${kind}: ${String(error)}`.slice(0, 300))
        return undefined
      })
      // Of what could not be done, as without a session, nothing was sent.
      if (texts?.length === 0) continue
      report.operations++
      const count = (report.kinds[kind] ??= { done: 0, ok: 0, own: 0 })
      count.done++
      for (const { status, head, text } of texts ?? []) {
        judge(actor, kind, head + text)
        if (status < 300 && !text.includes('"error"')) count.ok++
        if (text.includes(actor.house.canary)) count.own++
      }
    }
    const { session, stream, listen } = actor.known
    for (const each of [stream, listen])
      if (each !== undefined) judge(actor, 'stream', typeof each.text === 'string' ? each.text : each.text())
    stream?.cut()
    listen?.close()
    await session?.end()
  }

  const stop = new AbortController()
  /** The tenant-admin sees the calls of its tenant, at whichever process they are, and its audit records. */
  async function watch(house: House, what: string): Promise<void> {
    const node = world.houses.indexOf(house) % world.rig.nodes.length
    const headers = { authorization: `Bearer ${house.adminKey}`, accept: 'text/event-stream' }
    const response = await open(`${world.adminUrl(node)}/v1/tenants/${house.id}/${what}`, {
      headers,
      signal: stop.signal
    })
    let rest = ''
    response.setEncoding('utf8').on('error', () => {}) // Our own abort.
    response.on('data', (part: string) => {
      const text = rest + part
      rest = text.slice(text.lastIndexOf('\n') + 1)
      report.watched.set(`${house.id} ${what}`, (report.watched.get(`${house.id} ${what}`) ?? 0) + part.length)
      for (const id of foreignSecrets(world, house, text))
        report.leaks.push(`${what} of ${house.id} told ${id}: ${text.slice(0, 2_000)}`)
    })
  }
  await Promise.all(world.houses.flatMap((house) => [watch(house, 'calls'), watch(house, 'audit')]))
  await Promise.all(actors.map(live))
  stop.abort()
  return report
}
