// A part of a run: a world of its own, all that its people do, and then what everybody was told is searched: the log as
// it comes, metrics and keys of the store in the middle and at the end, and all audit records. By itself it takes its
// options as JSON: not below the test runner, which makes every promise dearer.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { gatehouse } from '../e2e/kit/process.ts'
import { random } from '../fuzz/random.ts'
import { send } from '../kit/client.ts'
import type { Teardown } from '../kit/until.ts'
import type { Shares } from './acts.ts'
import type { Cost } from './cost.ts'
import { isolation, type IsolationReport } from './isolation.ts'
import { places, plantedBefore } from './search.ts'
import { adminHeaders, buildWorld, type World } from './world.ts'

export interface PartOptions {
  readonly operations: number
  /** Of each tenant, at most. */
  readonly people: number
  readonly replicas: number
  readonly seed: number
  /** Undefined: each operation is as likely as any other. */
  readonly shares?: Shares
}

/** What a long run keeps of a part of it. */
export interface IsolationFigures extends Pick<IsolationReport, 'operations' | 'kinds' | 'operationSeconds'> {
  readonly requests: number
  /** Operations without an answer. */
  readonly failures: number
  /** How much was searched at each place, in characters. */
  readonly searched: Readonly<Record<string, number>>
  readonly cost?: Cost
}

export interface PartResult {
  readonly figures: IsolationFigures
  /** What is not as it should be; none in a good part. */
  readonly faults: readonly string[]
}

/** In a part with few of a kind rules may refuse them all. */
const enough = 100
/** Of long parts: administrators listen for so much of it, and so often servers over stdio may be one for each person. */
const [watchedShare, manyProcessesShare] = [0.2, 0.25]

/** Judges what the log says, and lets go of it. */
function createWitness({ houses, rig, search }: World) {
  const lines = new Map(houses.map(({ id }) => [id, 0]))
  return {
    lines,
    look(): void {
      for (const { stderr } of rig.nodes)
        for (const line of (stderr as string[]).splice(0)) {
          const [, id = ''] = /"tenant":"([^"]*)"/.exec(line) ?? []
          search.judge(
            'line of the log',
            houses.find((house) => house.id === id),
            line
          )
          const count = lines.get(id)
          if (count !== undefined) lines.set(id, count + 1)
        }
    }
  }
}

/** Metrics and keys of the store, now. */
async function judgeStore({ houses, rig, search, adminUrl }: World): Promise<string[]> {
  const faults: string[] = []
  for (const node of rig.nodes.keys()) {
    const { status, text } = await send(`${adminUrl(node)}/metrics`, { method: 'GET', headers: adminHeaders })
    if (status !== 200) faults.push(`metrics: ${status}`)
    for (const { id } of houses) if (!text.includes(`tenant="${id}"`)) faults.push(`no metrics of ${id}`)
    for (const line of [...text.split('\n'), `planted{tool="${plantedBefore}${houses[0]?.canary}"} 1`]) {
      const [, id] = /tenant="([^"]*)"/.exec(line) ?? []
      const house = houses.find((each) => each.id === id)
      search.judge('metrics', house, line)
    }
  }
  const redis = new Redis(rig.store.url)
  const keys = await redis.keys('*')
  redis.disconnect()
  if (keys.length <= 10) faults.push(`${keys.length} keys of the store`)
  search.judge('keys of the store', undefined, keys.join('\n'))
  return faults
}

async function auditOf(t: Teardown, { rig }: World, tenant: string): Promise<readonly string[]> {
  const config = join(rig.nodes[0]?.folder ?? '', 'gatehouse.json')
  const run = gatehouse(t, ['audit', 'export', '--config', config, '--tenant', tenant])
  const { code } = await run.ended
  if (code !== 0) throw new Error(run.stderr.join('\n'))
  return run.stdout
}

/**
 * @param stop ends it before: it is then judged as far as it came
 * @param progress called from time to time, with the number of operations so far
 */
export async function runPart(
  t: Teardown,
  { operations, people, replicas, seed, shares }: PartOptions,
  stop: AbortSignal = new AbortController().signal,
  progress: (operations: number) => void = () => {}
): Promise<PartResult> {
  const chance = random(seed)
  const hasManyProcesses = shares === undefined || chance.chance(manyProcessesShare)
  const world = await buildWorld(t, chance, { people, processes: replicas, hasManyProcesses })
  const { search } = world
  const witness = createWitness(world)
  const faults: string[] = []
  const report = await isolation(world, {
    operations,
    seed,
    ...(shares === undefined ? {} : { shares }),
    watchedShare: shares === undefined ? 1 : watchedShare,
    stop,
    look(done) {
      witness.look()
      progress(done)
    },
    halfway: async () => void faults.push(...(await judgeStore(world)))
  })
  const { requests } = world.wire
  witness.look()
  faults.push(...faultsOf(report, shares))
  for (const { id, members } of world.houses) {
    const lines = witness.lines.get(id) ?? 0
    if (!members.some(({ told }) => told() > 0)) faults.push(`the servers of ${id} were told nothing of their own`)
    if (lines <= 10) faults.push(`${lines} lines of ${id} in the log`)
    for (const what of ['calls', 'audit'])
      if ((report.watched.get(`${id} ${what}`) ?? 0) <= 1_000) faults.push(`nobody saw ${what} of ${id}`)
  }
  faults.push(...(await judgeStore(world)))
  await Promise.all(world.rig.nodes.map((node) => node.stop()))
  for (const house of world.houses) {
    const records = await auditOf(t, world, house.id)
    if (!records.some((line) => line.includes(house.canary))) faults.push(`calls of ${house.id} are not recorded`)
    for (const line of records) search.judge('audit record', house, line)
  }
  // Without what was planted it would show nothing.
  for (const place of places) if (!search.planted.has(place)) faults.push(`${place}: what was planted is not found`)
  const { operations: done, kinds, operationSeconds, failures, cost } = report
  const searched = Object.fromEntries(search.searched)
  const figures = { operations: done, requests, failures: failures.length, operationSeconds, searched, kinds }
  return { figures: { ...figures, ...(cost !== undefined && { cost }) }, faults: [...search.leaks, ...faults] }
}

/** Of the answers: attacks have none, and everything else has some. */
function faultsOf({ operations, failures, kinds }: IsolationReport, shares: Shares | undefined): string[] {
  const faults: string[] = []
  // Where the machine is busy a process says for a while that it cannot reach the store; and of a long run some may fail:
  // a machine may stand still for longer than anybody waits.
  const unexplained = failures.filter((each) => !each.includes('"reason":"unavailable"'))
  if (unexplained.length > operations / 10_000) faults.push(...unexplained.slice(0, 5))
  if (failures.length > operations / 5) faults.push(`${failures.length} failures of ${operations} operations`)
  for (const [kind, { done, ok, own }] of Object.entries(kinds))
    if (kind.startsWith('foreign')) {
      if (ok > 0) faults.push(`${kind}: ${ok} of ${done} had a result`)
    } else if (shares === undefined || done >= enough) {
      if (kind === 'error' && own === 0) faults.push(`none of ${done} errors has what its server says`)
      if (kind !== 'error' && kind !== 'streams' && ok === 0) faults.push(`${kind}: none of ${done} had a result`)
    }
  return faults
}

const progressMs = 60_000

if (import.meta.main) {
  const { report, ...options } = JSON.parse(process.argv[2] ?? '{}') as PartOptions & { readonly report: string }
  const closing: Array<() => unknown> = []
  const stop = new AbortController()
  process.once('SIGTERM', () => stop.abort())
  try {
    let said = performance.now()
    const progress = (operations: number): void => {
      if (performance.now() - said < progressMs) return
      said = performance.now()
      process.stdout.write(`${new Date().toISOString()} ${operations} operations of this part\n`)
    }
    const result = await runPart({ teardown: (close) => closing.push(close) }, options, stop.signal, progress)
    for (const each of result.faults) process.stdout.write(`${each}\n`)
    writeFileSync(report, JSON.stringify(result))
  } finally {
    for (const close of closing.toReversed()) await close()
  }
}
