// V8 shares the work of collections with other threads only where there is another core for them.

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

t.test('young objects are collected on the main thread alone where the process has one core', (t) => {
  const module = join(import.meta.dirname, '../../src/limits/collector-threads.ts')
  const program = `
    const { limitCollectorThreads } = await import(${JSON.stringify(module)})
    const { availableParallelism } = await import('node:os')
    const hasOneCore = limitCollectorThreads()
    // Some collections of both kinds, with objects that live: the flags change while there is a heap.
    const kept = []
    for (let n = 0; n < 2_000_000; n++) kept[n % 200_000] = { n }
    console.log(JSON.stringify([availableParallelism(), hasOneCore, kept.length]))`
  const run = (...pinned: string[]): unknown => {
    const [command, ...rest] = [...pinned, process.execPath, '--input-type=module', '--eval', program] as const
    return JSON.parse(execFileSync(command, rest, { encoding: 'utf8' }))
  }
  const first = /^Cpus_allowed_list:\s*(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? ''
  t.same(run('taskset', '-c', first), [1, true, 200_000])
  const [cores, hasOneCore] = run() as [number, boolean]
  t.equal(hasOneCore, cores === 1, 'the control: with more cores other threads help')
  t.end()
})
