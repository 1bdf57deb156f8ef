// The threads on which V8 collects garbage and compiles give way to the one that serves requests, and
// do not share its work where there is one core.

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { serve } from '../kit/process.ts'

/** The name of each thread of a process, and how nice it is (proc(5), stat). */
async function threadsOf(pid: number): Promise<Array<readonly [name: string, nice: number]>> {
  const ids = await readdir(`/proc/${pid}/task`)
  const threads = await Promise.all(
    ids.map(async (id) => {
      // One that has ended meanwhile has none.
      const stat = await readFile(`/proc/${pid}/task/${id}/stat`, 'utf8').catch(() => '')
      const [, name, fields = ''] = /\((.*)\) (.*)/.exec(stat) ?? []
      return name === undefined ? [] : [[name, Number(fields.split(' ')[16])] as const]
    })
  )
  return threads.flat()
}

t.test('threads of the engine have a lower priority than all others of the gateway', async (t) => {
  const { pid } = await serve(t, {
    tenants: {
      acme: {
        auth: { keys: [{ name: 'k', key: 'gh_acme_key_0123456789abcdef' }] },
        upstreams: { up: { url: 'http://127.0.0.1:9/mcp' } }
      }
    }
  })
  const threads = await threadsOf(pid)
  const own = await readFile('/proc/self/stat', 'utf8')
  const nice = Number(own.slice(own.lastIndexOf(')') + 2).split(' ')[16])
  const engine = threads.filter(([name]) => name === 'V8Worker')
  t.ok(engine.length > 0, 'V8 has threads')
  for (const [, each] of engine) t.equal(each, Math.min(19, nice + 10))
  const others = threads.filter(([name]) => name !== 'V8Worker')
  t.ok(others.length > 0)
  for (const [name, each] of others) t.equal(each, nice, name)
})

t.test('young objects are collected on the main thread where the process has one core', (t) => {
  const module = join(import.meta.dirname, '../../src/limits/engine-threads.ts')
  const program = `
    const { collectOnOneCore } = await import(${JSON.stringify(module)})
    const { availableParallelism } = await import('node:os')
    console.log(JSON.stringify([availableParallelism(), collectOnOneCore()]))`
  const run = (...pinned: string[]): unknown => {
    const command = [...pinned, process.execPath, '--input-type=module', '--eval', program]
    return JSON.parse(execFileSync(command[0] ?? '', command.slice(1), { encoding: 'utf8' }))
  }
  const first = /^Cpus_allowed_list:\s*(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? ''
  t.same(run('taskset', '-c', first), [1, true])
  const [cores, isAlone] = run() as [number, boolean]
  t.equal(isAlone, cores === 1, 'the control: with more cores other threads help')
  t.end()
})
