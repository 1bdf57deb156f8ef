// People of several tenants do whatever people do, and some of what attackers do, at two processes at once. Nothing that
// one of them gets, no server, log, metric, audit record or store key ever holds the canary of another tenant.

import { open } from '../kit/client.ts'
import { random } from '../fuzz/random.ts'
import { closeStream, type Actor, type Told } from './acting.ts'
import { nextAct, type Shares } from './acts.ts'
import { costBetween, costOf, type Cost } from './cost.ts'
import { plant } from './plant.ts'
import type { House, World } from './world.ts'

export interface IsolationReport {
  operations: number
  /** By kind: how often, how often it was answered with a result, and how often by the tenant's own canary. */
  readonly kinds: Record<string, { done: number; ok: number; own: number }>
  /** Exchanges without an answer, and why. */
  readonly failures: string[]
  /** Characters of the live calls and audit records of a tenant, as its tenant-admin saw them. */
  readonly watched: Map<string, number>
  /** What the operations took, without what goes before and after. */
  operationSeconds: number
  /** In seconds of CPU time. */
  cost: Cost | undefined
}

/** Operations between two looks at what was said meanwhile. */
const lookEvery = 200

export interface IsolationOptions {
  readonly operations: number
  /** Of what everybody does; how they overlap is chance. */
  readonly seed: number
  /** In a long run most are calls, lists and the like. */
  readonly shares?: Shares
  /** Of the operations, while which administrators listen to calls and audit records as they come. */
  readonly watchedShare: number
  /** Ends it before. */
  readonly stop: AbortSignal
  /** Called from time to time, with the number of operations so far. */
  readonly look: (operations: number) => void
  /** Called once, while everybody goes on. */
  readonly halfway: () => Promise<void>
}

export async function isolation(
  world: World,
  { operations, seed, shares, watchedShare, stop: ended, look, halfway }: IsolationOptions
): Promise<IsolationReport> {
  const { search } = world
  const report: IsolationReport = {
    operations: 0,
    kinds: {},
    failures: [],
    watched: new Map(),
    operationSeconds: 0,
    cost: undefined
  }
  const actors = world.houses.flatMap((house, at) =>
    house.people.map((person, n): Actor => ({
      house,
      person,
      chance: random(seed, at * 1_000 + n),
      known: {},
      requests: new Map()
    }))
  )

  let begun = 0
  let half: Promise<void> | undefined
  const stop = new AbortController()
  function done(kind: string) {
    report.operations++
    if (report.operations === Math.ceil(operations / 2)) half = halfway()
    if (report.operations >= operations * watchedShare) stop.abort()
    const count = (report.kinds[kind] ??= { done: 0, ok: 0, own: 0 })
    count.done++
    return count
  }

  /** What an act was told: of one operation, or of all those of a batch. */
  function judge(kind: string, house: House, texts: readonly Told[]): void {
    const whole = texts.some(({ parts }) => parts !== undefined) ? undefined : done(kind)
    for (const { status, head, text, parts = [] } of texts) {
      search.judge('answer', house, head)
      const hasOwn = search.judge('answer', house, text)
      if (whole !== undefined && hasOwn) whole.own++
      if (whole !== undefined && status < 300 && !text.includes('"error"')) whole.ok++
      for (const part of parts) {
        const count = done(part.kind)
        if (part.isOk) count.ok++
        if (hasOwn) count.own++
      }
    }
  }

  async function live(actor: Actor): Promise<void> {
    const others = actors.filter(({ house }) => house !== actor.house)
    while (report.operations < operations && search.leaks.length === 0 && !ended.aborted) {
      if (++begun % lookEvery === 0) look(report.operations)
      const [kind, act] = nextAct(actor, shares)
      const texts = await act({ ...actor, world, victim: actor.chance.pick(others) }).catch((error: unknown) => {
        report.failures.push(`${kind}: ${String(error)}`.slice(0, 300))
        return undefined
      })
      // Of what could not be done, as without a session, nothing was sent.
      if (texts?.length === 0) continue
      judge(kind, actor.house, texts ?? [])
    }
    closeStream(actor, 'stream')
    closeStream(actor, 'listen')
    for (const each of [actor.known.session, actor.known.batches]) await each?.end()
  }

  /** Somebody of each tenant gets hold of something of another one. */
  async function plantEverywhere(): Promise<void> {
    for (const house of world.houses) {
      const actor = actors.find((each) => each.house === house)
      const victim = actors.find((each) => each.house !== house)
      if (actor !== undefined && victim !== undefined) await plant({ ...actor, world, victim })
    }
  }

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
      const all = rest + part
      const end = all.lastIndexOf('\n') + 1
      const text = all.slice(0, end)
      rest = all.slice(end)
      report.watched.set(`${house.id} ${what}`, (report.watched.get(`${house.id} ${what}`) ?? 0) + part.length)
      search.judge(what === 'calls' ? 'live calls' : 'live audit', house, text)
    })
  }
  await Promise.all(world.houses.flatMap((house) => [watch(house, 'calls'), watch(house, 'audit')]))
  await plantEverywhere()
  const [began, before] = [performance.now(), costOf(world)]
  await Promise.all(actors.map(live))
  await half
  report.operationSeconds = (performance.now() - began) / 1_000
  const after = costOf(world)
  if (before !== undefined && after !== undefined) report.cost = costBetween(before, after)
  await plantEverywhere()
  stop.abort()
  return report
}
