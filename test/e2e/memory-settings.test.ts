// A gateway runs with settings of glibc that give memory back, and a small space of young objects, in the process that
// was started; unless whoever runs it has some of their own.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { gatehouse } from './kit/process.ts'

const config = { store: 'memory:', tenants: { acme: { auth: 'none', upstreams: {} } } }
const own = 'glibc.malloc.arena_max=5'
const young = '--max-semi-space-size=16'

t.test('settings of memory', async (t) => {
  const folder = t.testdir()
  const file = join(folder, 'gatehouse.json')
  writeFileSync(file, JSON.stringify(config))
  const ours = ['glibc.malloc.arena_max=2', 'glibc.malloc.mmap_threshold=131072', 'glibc.malloc.trim_threshold=4194304']
  for (const [env, expected, hasYoung] of [
    [{}, ours, true],
    [{ NODE_OPTIONS: '--max-semi-space-size=24' }, ours, false],
    [{ GLIBC_TUNABLES: own }, [own], false]
  ] as const) {
    const running = gatehouse(t, ['serve', '--config', file, '--port', '0'], { env, nodeArgs: ['--trace-uncaught'] })
    await running.ready
    const read = (name: string): string[] => readFileSync(`/proc/${running.pid}/${name}`, 'utf8').split('\0')
    // glibc puts an end after each setting that it has read.
    const settings = read('environ').join(':').replace('GLIBC_TUNABLES=', '').split(':')
    t.same(
      settings.filter((each) => each.startsWith('glibc.')),
      expected
    )
    const command = read('cmdline')
    t.ok(command.includes('--trace-uncaught'), 'options of Node stay')
    t.equal(command.includes(young), hasYoung)
    t.match(await running.stop(), { code: 0 })
  }
})
