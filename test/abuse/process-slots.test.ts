// Attack: the callers of some tenants open sessions, each a process of a stdio server, until no tenant gets another
// one.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { legacyClient, type LegacyClient } from '../kit/client.ts'
import { serve } from '../kit/process.ts'
import { until } from '../kit/until.ts'
import { attacked, keys } from './kit.ts'

/** One caller alone gets no more than three quarters of what its tenant may have. */
const callers = [keys.attacker, keys.colleague]
const smallServer = new URL('../kit/small-server.sh', import.meta.url).pathname

interface Hoard {
  readonly sessions: LegacyClient[]
  readonly refusals: unknown[]
}

const call = async (client: LegacyClient, name: string): Promise<unknown> =>
  (await client.request('tools/call', { name, arguments: {} })).json

/** Opens sessions of both callers until each is refused, but no more than so many. */
async function hoard(url: string, tool: string, perCaller: number): Promise<Hoard> {
  const hoarded: Hoard = { sessions: [], refusals: [] }
  for (const key of callers) {
    for (let n = 0; n < perCaller; n++) {
      const client = await legacyClient(url, key)
      const { result, error } = (await call(client, tool)) as { readonly result?: unknown; readonly error?: unknown }
      if (result !== undefined) hoarded.sessions.push(client)
      else hoarded.refusals.push(error)
    }
  }
  return hoarded
}

async function goesOn(t: Test, { sessions }: Hoard, tool: string): Promise<void> {
  for (const session of sessions) t.match(await call(session, tool), { result: {} }, 'what runs goes on')
}

t.test('a tenant that has no process for calls gets one', async (t) => {
  const gateway = await attacked(t, { limits: { processes: 8, processesPerTenant: 8 } })
  const hoarded = await hoard(gateway.url, 'calm__echo', 6)
  t.ok(hoarded.sessions.length >= 4, 'the tenant has what the other does not need')
  t.match(hoarded.refusals.at(-1), {
    data: { reason: 'too_many', limit: 'processes' },
    message: /kept for other tenants/
  })
  const neighbour = await legacyClient(gateway.neighbourUrl, keys.neighbour)
  t.match(await call(neighbour, 'calm__echo'), { result: {} })
  await goesOn(t, hoarded, 'calm__echo')
})

t.test('two tenants at their limits leave a third one its list and a call', async (t) => {
  const auth = { keys: callers.map((key, n) => ({ name: `caller${n}`, key })) }
  const tenant = (...args: string[]) => ({
    auth,
    upstreams: { up: { command: '/bin/sh', args, cwd: '.', era: 'legacy' } }
  })
  const { url, folder } = await serve(t, {
    limits: { processes: 12, processesPerTenant: 6 },
    tenants: {
      one: tenant(smallServer),
      two: tenant(smallServer),
      // Its server starts when the others have what they can get: the gateway does not know its tools before.
      three: tenant('-c', 'test -e ready && exec /bin/sh "$0"', smallServer)
    }
  })
  const hoarded = [await hoard(`${url}/t/one/mcp`, 'up__pid', 4), await hoard(`${url}/t/two/mcp`, 'up__pid', 4)]
  t.ok(hoarded.flatMap(({ sessions }) => sessions).length >= 6, 'they have what the third does not need')
  t.ok(hoarded.every(({ refusals }) => refusals.length > 0))

  await writeFile(join(folder, 'ready'), '')
  const third = await legacyClient(`${url}/t/three/mcp`, keys.attacker)
  const tools = async (): Promise<unknown[]> => (await third.request('tools/list')).json.result.tools as unknown[]
  await until('its list is not empty', async () => (await tools()).length === 1)
  t.match(await call(third, 'up__pid'), { result: {} })
  for (const each of hoarded) await goesOn(t, each, 'up__pid')
})
