// Attack: sessions are opened, called once and ended, and each call starts a process. Programs that start keep all
// processors busy, and the gateway itself waits for a processor with each of them.

import { readFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { legacyClient, type LegacyClient } from '../kit/client.ts'
import { serve } from '../kit/process.ts'
import { keys } from './kit.ts'

const smallServer = new URL('../kit/small-server.sh', import.meta.url).pathname

const call = async (client: LegacyClient): Promise<unknown> =>
  (await client.request('tools/call', { name: 'up__pid', arguments: {} })).json

t.test('a tenant that starts many processes at once leaves the next start to its neighbour', async (t) => {
  const count = 8 + availableParallelism()
  const tenant = (name: keyof typeof keys) => ({
    auth: { keys: [{ name, key: keys[name] }] },
    // Each takes a moment until it answers.
    upstreams: {
      up: {
        command: '/bin/sh',
        args: ['-c', 'echo "$0" >> starts; sleep 0.1; exec /bin/sh "$1"', name, smallServer],
        cwd: '.',
        era: 'legacy'
      }
    }
  })
  const { url, folder } = await serve(t, { tenants: { acme: tenant('attacker'), other: tenant('neighbour') } })
  const starts = async (): Promise<string[]> => (await readFile(join(folder, 'starts'), 'utf8')).trim().split('\n')
  const open = (name: 'attacker' | 'neighbour'): Promise<LegacyClient> =>
    legacyClient(`${url}/t/${name === 'attacker' ? 'acme' : 'other'}/mcp`, keys[name])
  const attackers = await Promise.all(Array.from({ length: count }, () => open('attacker')))
  const neighbour = await open('neighbour')
  t.match((await neighbour.request('tools/list')).json, { result: { tools: [{ name: 'up__pid' }] } })

  const before = (await starts()).length
  const attack = Promise.all(attackers.map(call))
  // Behind all of them at the gateway.
  t.match((await attackers[0]?.request('ping'))?.json, { result: {} })
  t.match(await call(neighbour), { result: {} })
  const since = (await starts()).slice(before)
  t.ok(since.includes('neighbour'))
  t.ok(since.length < count, `${since.length - 1} of the ${count} other processes had started by then`)
  for (const answer of await attack) t.match(answer, { result: {} }, 'each gets its process in the end')
})
