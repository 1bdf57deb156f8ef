// Tenants over two processes: whatever their people do, and whatever they try, nobody finds anything of another tenant.
// `ISOLATION_OPERATIONS=1000000` makes a long run of it, `ISOLATION_SEED` another one.

import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { gatehouse } from '../e2e/kit/process.ts'
import { random } from '../fuzz/random.ts'
import { send } from '../kit/client.ts'
import { adminHeaders } from './admin.ts'
import { foreignSecrets, isolation } from './isolation.ts'
import { buildWorld, type World } from './world.ts'

const operations = Number(process.env['ISOLATION_OPERATIONS'] ?? 400)
const seed = Number(process.env['ISOLATION_SEED'] ?? 20_260_728)

const lines = (world: World): string[] => world.rig.nodes.flatMap(({ stderr }) => [...stderr])

async function auditOf(world: World, tenant: string): Promise<string> {
  const [node] = world.rig.nodes
  const config = join(node?.folder ?? '', 'gatehouse.json')
  const run = gatehouse(t, ['audit', 'export', '--config', config, '--tenant', tenant])
  const { code } = await run.ended
  if (code !== 0) throw new Error(run.stderr.join('\n'))
  return run.stdout.join('\n')
}

t.test(`seed ${seed}, ${operations} operations`, { timeout: 30_000 + operations * 100 }, async (t) => {
  const world = await buildWorld(t, random(seed))
  const report = await isolation(world, operations, seed)
  t.same(report.leaks, [])
  t.comment(JSON.stringify(report.kinds))
  // Otherwise it would show nothing.
  const [north, south] = world.houses
  t.same(foreignSecrets(world, north, `${south?.canary}`), [south?.id])
  for (const [kind, { done, ok }] of Object.entries(report.kinds))
    if (kind.startsWith('foreign')) t.equal(ok, 0, `${kind}: none of ${done} had a result`)
    else if (kind !== 'streams') t.ok(ok > 0, `${kind}: ${ok} of ${done} had a result`)

  for (const house of world.houses) {
    const told = JSON.stringify([house.old.seen, house.modern.seen])
    t.same(foreignSecrets(world, house, told), [], `what the servers of ${house.id} were told`)
    t.ok(told.includes(house.canary), 'they were told their own')
  }
  const log = lines(world)
  for (const house of world.houses) {
    const own = log.filter((line) => line.includes(`"tenant":"${house.id}"`))
    t.ok(own.length > 20)
    t.same(foreignSecrets(world, house, own.join('\n')), [], `lines of ${house.id} in the log`)
  }
  const others = log.filter((line) => !line.includes('"tenant":"'))
  t.same(foreignSecrets(world, undefined, others.join('\n')), [], 'lines of no tenant')

  for (const node of world.rig.nodes) {
    const { adminUrl } = node.log().find(({ msg }) => msg === 'listening') ?? {}
    const { status, text } = await send(`${String(adminUrl)}/metrics`, { method: 'GET', headers: adminHeaders })
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
    t.ok(records.includes(house.canary), 'its own calls are recorded')
    t.same(foreignSecrets(world, house, records), [], `audit records of ${house.id}`)
  }
})
