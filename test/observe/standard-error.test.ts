// Lines that cannot be written now stop nobody: they are written when there is room again, in their order, and the
// newest are left out where there are too many.

import { spawnSync } from 'node:child_process'
import { closeSync, constants, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openLines } from '../../src/observe/lines/standard-error.ts'
import { until } from '../kit/until.ts'

/** A pipe that takes 64 KiB and says EAGAIN then, as a disk without room says ENOSPC. */
function pipe(t: Test) {
  const path = join(t.testdir(), 'pipe')
  t.equal(spawnSync('mkfifo', [path]).status, 0)
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
  t.teardown(() => closeSync(fd))
  const buffer = Buffer.alloc(1_048_576)
  return {
    fd,
    read(): string {
      try {
        return buffer.toString('latin1', 0, readSync(fd, buffer))
      } catch {
        return ''
      }
    }
  }
}

const line = (at: number): string => `${String(at).padStart(999)}\n`

t.test('what there was no room for is written as soon as there is', async (t) => {
  const { fd, read } = pipe(t)
  const lines = openLines(fd)
  const all = Array.from({ length: 200 }, (_, at) => line(at))
  for (const each of all) lines.write(Buffer.from(each))
  let text = ''
  await until('all are there', () => {
    text += read()
    return text.length >= 200_000
  })
  t.equal(text, all.join(''))
})

t.test('the newest lines are left out beyond a MiB, and none of them in part', async (t) => {
  const { fd, read } = pipe(t)
  const lines = openLines(fd)
  const held = Buffer.alloc(1_000)
  for (let at = 0; at < 3_000; at++) {
    // Whoever has made a line puts the next one into the same place.
    held.write(line(at))
    lines.write(held)
  }
  let text = ''
  await until('what was held is there', () => {
    text += read()
    return text.length > 1_000_000
  })
  lines.write(Buffer.from('the end\n'))
  await until('the next line is there', () => {
    text += read()
    return text.endsWith('the end\n')
  })
  const count = Math.floor(text.length / 1_000)
  t.ok(count > 1_000 && count < 1_200, `${count} lines`)
  t.equal(text, `${Array.from({ length: count }, (_, at) => line(at)).join('')}the end\n`)
})
