// What a crash or a signal leaves of a gateway on the disk: no core dump, no environment in a report, no debugger. Each
// beside a process of Node that does nothing against it.

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { serve } from '../kit/process.ts'
import { until } from '../kit/until.ts'

const canary = 'canary-of-the-environment-0123456789'
const config = { store: 'memory:', tenants: { acme: { auth: 'none', upstreams: {} } } }
/** The limit in force, and the highest that there may be. */
const limitsOf = (pid: number): string[] =>
  /^Max core file size\s+(\S+)\s+(\S+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'utf8'))?.slice(1) ?? []

/** With core dumps, as a service manager may have them, and with reports of Node where they are asked for. */
function withReports(folder: string) {
  mkdirSync(folder)
  const options = `--report-on-signal --report-signal=SIGUSR2 --report-directory=${folder} --inspect-port=0`
  return { NODE_OPTIONS: options, GATEHOUSE_CANARY: canary }
}

const textsIn = (folder: string): string[] =>
  readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'))

async function reported(pid: number, folder: string): Promise<string> {
  process.kill(pid, 'SIGUSR2')
  // Only the bracket of the whole stands at the beginning of a line.
  await until('the report is whole', () => textsIn(folder).some((text) => text.trimEnd().endsWith('\n}')))
  return textsIn(folder).join()
}

t.test('a gateway leaves no core dump, no environment and no open debugger', async (t) => {
  // What is started from here on may leave core dumps, short ones, unless nothing here may.
  const [, highest] = limitsOf(process.pid)
  const leavesOne = highest !== '0'
  if (leavesOne) await promisify(execFile)('prlimit', ['--pid', String(process.pid), '--core=65536:'])
  const folder = t.testdir()
  const plain = spawn(process.execPath, ['-e', 'console.log(1); setInterval(() => {}, 1000)'], {
    cwd: folder,
    env: { ...process.env, ...withReports(join(folder, 'of-node')) }
  })
  t.teardown(() => plain.kill('SIGKILL'))
  let said = ''
  plain.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
  await once(plain.stdout, 'data')
  const { pid = 0 } = plain
  t.equal(limitsOf(pid)[0], leavesOne ? '65536' : '0')
  t.match(await reported(pid, join(folder, 'of-node')), canary)
  process.kill(pid, 'SIGUSR1')
  await until('Node opens its debugger', () => said.includes('Debugger listening'))

  const env = withReports(join(folder, 'of-gateway'))
  const made = await serve(t, config, { env })
  t.equal(limitsOf(made.pid)[0], '0')
  const report = await reported(made.pid, join(folder, 'of-gateway'))
  t.match(report, 'javascriptStack')
  t.notMatch(report, canary)
  made.signal('SIGUSR1')
  await until('it says so', () => made.stderr.some((line) => line.includes('opens no debugger here')))
  t.notMatch(made.stderr.join('\n'), 'Debugger listening')
  t.equal((await fetch(`${made.url}/health/live`)).status, 200)

  made.signal('SIGABRT')
  await made.ended
  plain.kill('SIGABRT')
  await once(plain, 'exit')
  // Where the system writes them beside the process at all.
  if (leavesOne && readFileSync('/proc/sys/kernel/core_pattern', 'utf8').trim() === 'core')
    t.ok(
      readdirSync(folder).some((name) => name.startsWith('core')),
      'Node leaves one'
    )
  t.notOk(existsSync(made.folder) && readdirSync(made.folder).some((name) => name.startsWith('core')))
})
