// What is said, and done, where the system gives no way to find what a child process has left.

import pino from 'pino'
import t from 'tap'
import { steadyClock } from '../../src/time/clock.ts'
import { createOrphans } from '../../src/upstream/stdio/orphans.ts'

function opened(proc: string | undefined) {
  const logged: Array<{ readonly msg: string; readonly missing?: string }> = []
  const log = pino({}, { write: (line: string) => logged.push(JSON.parse(line) as (typeof logged)[number]) })
  const orphans = createOrphans({
    path: process.env['PATH'],
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
