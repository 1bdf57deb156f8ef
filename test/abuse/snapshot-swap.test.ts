// A configuration is taken into use, again and again, while a neighbour calls: none of its calls is lost, and no turn of
// the event loop takes long.

import { readFile, writeFile } from 'node:fs/promises'
import t from 'tap'
import { until } from '../kit/until.ts'
import { attacked } from './kit.ts'

const tenants = 100
const rulesOfTenant = 100

/** @param round makes it another one */
const tenantOf = (at: number, round: number): object => ({
  auth: { keys: [{ name: 'k', key: `gh_key_of_tenant_${at}_0123456789` }] },
  upstreams: { far: { url: `https://tenant-${at}.example.com/mcp` } },
  policy: {
    default: 'deny',
    rules: Array.from({ length: rulesOfTenant }, (_, n) => ({
      name: `rule-${n}`,
      effect: 'allow',
      what: { names: [`tool-${n}-${round}`] }
    }))
  }
})

t.test(`${tenants} tenants with ${rulesOfTenant} rules each are exchanged while others call`, async (t) => {
  const gateway = await attacked(t, { watchTurns: true })
  const config = JSON.parse(await readFile(gateway.configFile, 'utf8')) as { tenants: Record<string, unknown> }
  const swaps = (): number => gateway.log().filter(({ msg }) => msg === 'configuration taken').length
  let round = 0
  async function swap(): Promise<void> {
    const before = swaps()
    const others = Object.fromEntries(Array.from({ length: tenants }, (_, at) => [`t${at}`, tenantOf(at, ++round)]))
    await writeFile(gateway.configFile, JSON.stringify({ ...config, tenants: { ...config.tenants, ...others } }))
    gateway.signal('SIGHUP')
    await until('it is in use', () => swaps() > before)
  }
  const neighbour = await gateway.neighbour()
  await swap()
  const longestMs = await gateway.longestTurnMs(50, async () => {
    for (let n = 0; n < 2; n++) await swap()
  })
  const { meanwhile, failures, p99Ms } = await neighbour.stop()
  t.same(failures, [], 'no call is lost')
  t.ok(meanwhile > 0, 'calls are answered meanwhile')
  t.comment(`longest turn ${longestMs} ms, neighbour's p99 ${p99Ms} ms`)
  t.ok(longestMs < 50, `the longest turn took ${longestMs} ms`)
})
