// Programs by digest: what is compared is the file that is there, whatever its path has led to meanwhile.

import { createHash } from 'node:crypto'
import { renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execFileSync } from 'node:child_process'
import t from 'tap'
import { createKnownPrograms } from '../../src/upstream/stdio/known-programs.ts'

const name = 'up' as Parameters<ReturnType<typeof createKnownPrograms>>[0]['name']
const [right, wrong] = ['#!/bin/sh\necho right\n', '#!/bin/sh\necho wrong\n']
const sha256 = createHash('sha256').update(right).digest('hex')
const isAnother = { message: /is not the program/ }

t.test('another program of the same length is refused, however soon it is written', async (t) => {
  const command = join(t.testdir({ program: right }), 'program')
  const check = createKnownPrograms()
  await t.resolves(check({ name, command, sha256 }))
  writeFileSync(command, wrong)
  await t.rejects(check({ name, command, sha256 }), isAnother)
  writeFileSync(command, right)
  await t.resolves(check({ name, command, sha256 }))
})

t.test('a link that leads to the right program for a moment makes no other one right', async (t) => {
  const folder = t.testdir({ right, wrong })
  const command = join(folder, 'program')
  const lead = (to: string): void => {
    symlinkSync(join(folder, to), join(folder, 'next'))
    renameSync(join(folder, 'next'), command)
  }
  const check = createKnownPrograms(0)
  for (let round = 0; round < 100; round++) {
    lead('wrong')
    const during = check({ name, command, sha256 }).catch(() => undefined)
    for (let turns = round % 4; turns > 0; turns--) await new Promise((resolve) => setImmediate(resolve))
    lead('right')
    await during
    lead('wrong')
    await t.rejects(check({ name, command, sha256 }), isAnother)
  }
  lead('right')
  await t.resolves(check({ name, command, sha256 }))
})

t.test('a pipe is no program, and nobody waits for it', async (t) => {
  const command = join(t.testdir(), 'pipe')
  execFileSync('mkfifo', [command])
  await t.rejects(createKnownPrograms()({ name, command, sha256 }), { message: /cannot be read/ })
})
