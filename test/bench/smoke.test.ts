// The smoke bench fails where a function of the message path has become slower than its figure allows, and only there.

import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import t from 'tap'

const bench = join(import.meta.dirname, '../../bench')
const { figures } = JSON.parse(readFileSync(join(bench, 'smoke.json'), 'utf8')) as { figures: Record<string, number> }

/** Runs it once against the figures of the repository, each so many times as large. */
function smoke(file: string, factor: number, processor = cpus()[0]?.model ?? 'unknown') {
  const kept = Object.fromEntries(Object.entries(figures).map(([name, figure]) => [name, figure * factor]))
  writeFileSync(file, JSON.stringify({ processor, figures: kept }))
  const args = [join(bench, 'smoke.ts'), '--kept', file, '--attempts', '1', '--any-load']
  const { status, stdout, stderr } = spawnSync(process.execPath, args)
  return { status, said: `${stdout}${stderr}` }
}

t.test('it fails where the figures are half of what they are', async (t) => {
  const { status, said } = smoke(join(t.testdir(), 'half.json'), 0.5)
  t.equal(status, 1, said)
  t.match(said, /slower\n[^]*More than 20 % slower than the figures of half\.json/)
})

t.test('it does not where nothing is slower, nor where the figures are those of another processor', async (t) => {
  const file = join(t.testdir(), 'kept.json')
  const { status, said } = smoke(file, 20)
  t.equal(status, 0, said)
  t.notMatch(said, 'slower')
  t.match(smoke(file, 0.5, 'another one'), { status: 0, said: /none is judged/ })
})
