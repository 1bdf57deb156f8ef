// Tenants by chance over several processes: whatever their people do, and whatever they try, nobody finds anything of
// another tenant. `ISOLATION_OPERATIONS=1000000` makes a long run of it, which `ISOLATION_SECONDS=900` ends before; `ISOLATION_PEOPLE=16`
// of each tenant do more at once, `ISOLATION_REPLICAS=3` at more processes; `ISOLATION_SEED` makes another one. A long run needs `TAP_TIMEOUT=0`.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { gatehouse } from '../e2e/kit/process.ts'
import { random } from '../fuzz/random.ts'
import { send } from '../kit/client.ts'
import { foreignSecrets, isolation, type IsolationFigures } from './isolation.ts'
import { adminHeaders, buildWorld, type House, type World } from './world.ts'

const operations = Number(process.env['ISOLATION_OPERATIONS'] ?? 400)
const seconds = Number(process.env['ISOLATION_SECONDS'] ?? operations / 10)
const people = Number(process.env['ISOLATION_PEOPLE'] ?? 3)
const processes = Number(process.env['ISOLATION_REPLICAS'] ?? 2)
/** In a run with few of a kind rules may refuse them all. */
const enough = 100
const reportFile = process.env['ISOLATION_REPORT']
const slowShare = process.env['ISOLATION_SLOW'] === undefined ? undefined : Number(process.env['ISOLATION_SLOW'])
const seed = Number(process.env['ISOLATION_SEED'] ?? 20_260_728)

/** Judges what servers were told and what the log says, and lets go of it. */
function createWitness(world: World) {
  const leaks: string[] = []
  const told = new Map(world.houses.map(({ id }) => [id, { own: 0, lines: 0 }]))
  function judge(house: House | undefined, what: string, text: string): void {
    for (const id of foreignSecrets(world, house, text)) leaks.push(`${what} of ${house?.id}: ${id}: ${text}`)
  }
  return {
    leaks,
    told,
    look(): void {
      for (const house of world.houses) {
        const count = told.get(house.id) ?? { own: 0, lines: 0 }
        for (const { seen } of house.members)
          for (const each of seen.splice(0)) {
            const text = JSON.stringify(each)
            judge(house, 'a server', text)
            if (text.includes(house.canary)) count.own++
          }
      }
      for (const { stderr } of world.rig.nodes)
        for (const line of (stderr as string[]).splice(0)) {
          const house = world.houses.find(({ id }) => line.includes(`"tenant":"${id}"`))
          judge(house, 'a line of the log', line)
          const count = house && told.get(house.id)
          if (count !== undefined) count.lines++
        }
    }
  }
}

async function auditOf(world: World, tenant: string): Promise<readonly string[]> {
  const [node] = world.rig.nodes
  const config = join(node?.folder ?? '', 'gatehouse.json')
  const run = gatehouse(t, ['audit', 'export', '--config', config, '--tenant', tenant])
  const { code } = await run.ended
  if (code !== 0) throw new Error(run.stderr.join('\n'))
  return run.stdout
}

t.test(`seed ${seed}, ${operations} operations`, { timeout: 60_000 + seconds * 2_000 }, async (t) => {
  const world = await buildWorld(t, random(seed), { people, processes })
  const witness = createWitness(world)
  const report = await isolation(world, { operations, seconds, seed, slowShare, look: witness.look })
  witness.look()
  t.same(report.leaks, [])
  // Where the machine is busy a process says for a while that it cannot reach the store; and of a long run some may fail:
  // a machine may stand still for longer than anybody waits.
  const failures = report.failures.filter((each) => !each.includes('"reason":"unavailable"'))
  t.ok(failures.length <= operations / 10_000, failures.slice(0, 5).join('\n'))
  t.ok(report.failures.length <= operations / 5, `${report.failures.length} failures`)
  t.same(witness.leaks, [], 'what servers were told, and the log')
  t.comment(
    `${report.operations} operations, ${world.wire.requests} requests, ${Math.round(performance.now())} ms, ${report.failures.length} failed: ${JSON.stringify(report.kinds)}`
  )
  const figures: IsolationFigures = {
    operations: report.operations,
    requests: world.wire.requests,
    failures: report.failures.length,
    kinds: report.kinds
  }
  if (reportFile !== undefined) writeFileSync(reportFile, JSON.stringify(figures))
  // Otherwise it would show nothing.
  const [north, south] = world.houses
  t.same(foreignSecrets(world, north, `${south?.canary}`), [south?.id])
  for (const [kind, { done, ok, own }] of Object.entries(report.kinds))
    if (kind.startsWith('foreign')) t.equal(ok, 0, `${kind}: none of ${done} had a result`)
    else if (kind === 'error') t.ok(own > 0, `${own} of ${done} errors have what their server says`)
    else if (kind !== 'streams' && (slowShare === undefined || done >= enough))
      t.ok(ok > 0, `${kind}: ${ok} of ${done} had a result`)
  for (const [id, { own, lines }] of witness.told) {
    t.ok(own > 0, `the servers of ${id} were told their own`)
    t.ok(lines > 10, `${lines} lines of ${id} in the log`)
    for (const what of ['calls', 'audit']) t.ok((report.watched.get(`${id} ${what}`) ?? 0) > 1_000, `${what} of ${id}`)
  }

  for (const node of world.rig.nodes.keys()) {
    const { status, text } = await send(`${world.adminUrl(node)}/metrics`, { method: 'GET', headers: adminHeaders })
    t.equal(status, 200)
    for (const house of world.houses) {
      const own = text.split('\n').filter((line) => line.includes(`"${house.id}"`))
      t.ok(own.length > 0)
      t.same(foreignSecrets(world, house, own.join('\n')), [], `metrics of ${house.id}`)
    }
    const rest = text.split('\n').filter((line) => !world.houses.some(({ id }) => line.includes(`"${id}"`)))
    t.same(foreignSecrets(world, undefined, rest.join('\n')), [], 'metrics of no tenant')
  }

  const redis = new Redis(world.rig.store.url)
  t.teardown(() => redis.disconnect())
  const keys = await redis.keys('*')
  t.ok(keys.length > 10)
  t.same(foreignSecrets(world, undefined, keys.join('\n')), [], 'keys of the store')

  await Promise.all(world.rig.nodes.map(({ stop }) => stop()))
  for (const house of world.houses) {
    const records = await auditOf(world, house.id)
    t.ok(
      records.some((line) => line.includes(house.canary)),
      'its own calls are recorded'
    )
    t.same(
      records.filter((line) => foreignSecrets(world, house, line).length > 0),
      [],
      `audit records of ${house.id}`
    )
  }
})
