// A connection is on its way from a worker to a primary that hangs, and is killed: the worker ends all the same.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { allGone, signalAll } from '../e2e/kit/process.ts'
import { dial } from '../kit/raw-http.ts'
import { until } from '../kit/until.ts'

t.test('workers that give connections away end with the primary', async (t) => {
  const primary = spawn(process.execPath, [fileURLToPath(new URL('moving-primary.ts', import.meta.url))], {
    stdio: ['ignore', 'pipe', 'inherit']
  })
  t.teardown(() => primary.kill('SIGKILL'))
  const lines: string[] = []
  createInterface(primary.stdout).on('line', (line) => lines.push(line))
  const [, port = 0, ...pids] = (await until('the port', () => lines.find((line) => line.startsWith('port '))))
    .split(' ')
    .map(Number)
  t.teardown(() => signalAll(pids, 'SIGKILL'))
  t.equal(pids.length, 2)

  // Each of the two has some: the primary deals them out in turn.
  const asks = Array.from({ length: 4 }, () => {
    const socket = dial(port)
    t.teardown(() => socket.destroy())
    return async (home: string): Promise<string> => {
      socket.write(`POST /${home} HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}`)
      const [answer] = (await once(socket, 'data')) as [Buffer]
      return answer.toString().slice(-1)
    }
  })
  const owners = await Promise.all(asks.map((ask) => ask('')))
  t.same(new Set(owners), new Set(['1', '2']), 'the control')
  primary.kill('SIGSTOP')
  await Promise.all(
    asks.map(async (ask, at) => {
      const home = owners[at] === '1' ? '2' : '1'
      t.same([await ask(home), await ask(home)], [owners[at], owners[at]])
    })
  )
  await until('each gives one away', () => lines.includes('given 1') && lines.includes('given 2'))
  primary.kill('SIGKILL')
  await allGone(pids)
})
