// What is said, and done, where the system gives no way to find what a child process has left.

import { spawnSync } from 'node:child_process'
import pino from 'pino'
import t from 'tap'
import type { TenantId, UpstreamName } from '../../src/protocol/messages.ts'
import { steadyClock } from '../../src/time/clock.ts'
import { createOrphans } from '../../src/upstream/stdio/orphans.ts'

function opened(proc: string | undefined, path = process.env['PATH']) {
  const logged: Array<{ readonly msg: string; readonly missing?: string; readonly upstreams?: string[] }> = []
  const log = pino({}, { write: (line: string) => logged.push(JSON.parse(line) as (typeof logged)[number]) })
  const orphans = createOrphans({
    path,
    clock: steadyClock,
    log,
    ...(proc === undefined ? {} : { proc })
  })
  return { logged, orphans }
}

t.test(
  'without /proc the log says at the start what outlives the gateway, and nobody waits for a search',
  async (t) => {
    const { logged, orphans } = opened('/nonexistent')
    t.match(logged, [{ missing: '/nonexistent', msg: /outlives its session and the gateway.*container/ }])
    t.equal(await orphans.ended(1, orphans.newMark()), true)
  }
)

t.test('where there is one, nothing is said', async (t) => {
  const { logged, orphans } = opened(undefined)
  t.same(logged, [])
  t.equal(await orphans.ended(1, orphans.newMark()), true)
})

/** Upstreams of one tenant. */
const bare = (...names: string[]) => names.map((name) => ({ tenant: 'acme' as TenantId, name: name as UpstreamName }))

t.test(
  'where no limit can mark processes, the log says once what outlives the gateway, and which upstreams may start it',
  async (t) => {
    const { logged, orphans } = opened(undefined, '/nonexistent')
    await orphans.ready([])
    t.same(logged, [], 'upstreams in a sandbox need none')
    await orphans.ready(bare('files', 'search'))
    await orphans.ready(bare('later'))
    t.equal(logged.length, 1)
    t.match(logged, [
      {
        missing: 'prlimit',
        upstreams: ['acme/files', 'acme/search'],
        msg: /outlives its session and the gateway.*`sandbox: required`/
      }
    ])
    const command = { command: 'sh', args: ['-c', ':'] }
    t.same(orphans.wrap(command, orphans.newMark(), process.env, undefined), command, 'started without a mark')
  }
)

const hasPrlimit = spawnSync('prlimit', ['--locks=1:', '--', 'true']).status === 0
if (!hasPrlimit) t.comment('not tried, since this system has no prlimit: a mark in a limit')
else
  t.test('where one can, nothing is said, and what is started keeps its environment and its errors', async (t) => {
    const { logged, orphans } = opened(undefined)
    await orphans.ready(bare('files'))
    t.same(logged, [])
    const env = { PATH: process.env['PATH'], 'odd.name': '1' }
    const { command, args } = orphans.wrap({ command: 'env', args: [] }, orphans.newMark(), env, undefined)
    t.match(command, /prlimit$/)
    t.same(spawnSync(command, args, { env }).stdout.toString().trim().split('\n').toSorted(), [
      `PATH=${env.PATH}`,
      'odd.name=1'
    ])
    const unknown = { command: 'gatehouse-no-such-command', args: [] }
    t.same(orphans.wrap(unknown, orphans.newMark(), env, undefined), unknown, 'its start fails as ever')
  })
