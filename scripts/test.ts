// The whole check, in one command: types, lint, generated documents, then every test against real parts. The last line
// is `N passed, N failed`. Arguments: test files, for these alone; `--fast`, for all but the slow folders.

import { spawnSync } from 'node:child_process'
import { existsSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ensureRedis } from './redis.ts'

const root = join(import.meta.dirname, '..')
const bin = join(root, 'node_modules', '.bin')
const output = join(root, '.tap', 'output.tap')

function step(title: string, command: string, args: readonly string[]): void {
  process.stdout.write(`\n== ${title}\n`)
  const startedAt = performance.now()
  const { status, error } = spawnSync(join(bin, command), args, { cwd: root, stdio: 'inherit' })
  if (status !== 0) {
    process.stdout.write(`\n${title}: failed${error === undefined ? '' : ` (${error.message})`}\n0 passed, 1 failed\n`)
    process.exit(1)
  }
  process.stdout.write(`== ${title}: ${((performance.now() - startedAt) / 1000).toFixed(1)} s\n`)
}

/** Real sockets, processes and foreign peers throughout: four fifths of the time. */
const slowFolders = ['conformance', 'e2e', 'http', 'interop', 'matrix', 'security']

const args = process.argv.slice(2)
const isFast = args.includes('--fast')
const only = isFast
  ? globSync('test/**/*.test.ts', { cwd: root, exclude: slowFolders.map((folder) => `test/${folder}`) })
  : args
if (args.length === 0 || isFast) {
  step('types', 'tsc', ['--noEmit'])
  step('lint', 'oxlint', ['--type-aware'])
  step('format', 'oxfmt', ['--check', 'src', 'test', 'bench', 'scripts', 'bin'])
  step('unused code', 'knip', [])
  step('documents', 'node', ['scripts/docs.ts', '--check'])
}
ensureRedis()
// Once after each installation: it takes 9 s, and a build under a run of another checkout breaks that run.
const isBuilt = join(root, 'node_modules', '@tapjs', 'test', 'test-built', 'built-by-gatehouse')
if (!existsSync(isBuilt)) {
  step('tap plugins', 'tap', ['build'])
  writeFileSync(isBuilt, '')
}

process.stdout.write('\n== tests\n')
rmSync(output, { force: true })
const { status } = spawnSync(
  join(bin, 'tap'),
  ['run', '--jobs=2', '--reporter=terse', `--output-file=${output}`, ...only],
  // Three hundred processes load the same modules: compiled once, they cost half.
  { cwd: root, stdio: 'inherit', env: { ...process.env, NODE_COMPILE_CACHE: join(root, '.tap', 'compiled') } }
)
const tap = readFileSync(output, 'utf8')
// The summary of the outermost plan: "# { total: 12, pass: 11, fail: 1 }".
const [, counts = ''] =
  /^# \{ ([^}]*) \}$/m.exec(
    tap
      .split('\n')
      .filter((line) => line.startsWith('#'))
      .join('\n')
  ) ?? []
const count = (name: string): number => Number(new RegExp(`\\b${name}: (\\d+)`).exec(counts)?.[1] ?? 0)
for (const failure of failures(tap)) process.stdout.write(`\n${failure}\n`)
const skipped = count('skip') + count('todo')
if (skipped > 0) process.stdout.write(`${skipped} tests skip themselves; none may.\n`)
const failed = status === 0 && skipped === 0 ? count('fail') : Math.max(1, count('fail'))
process.stdout.write(`\n${count('pass')} passed, ${failed} failed\n`)
process.exit(failed === 0 && count('pass') > 0 ? 0 : 1)

/**
 * Each failed assertion with its diagnosis, and the test it stands in; what only repeats it further out is left out.
 */
function failures(text: string): string[] {
  const lines = text.split('\n')
  return lines.flatMap((line, at) => {
    if (!/^\s*not ok/.test(line) || lines[at + 1]?.trim() !== '---') return []
    const end = lines.findIndex((other, index) => index > at && other.trim() === '...')
    const block = lines.slice(at, end === -1 ? at + 40 : end)
    const isOuter =
      block.some((other) => /isToplevel: true|externalID:/.test(other)) &&
      !block.some((other) => /diff:|compare:|found:|stdio: .*|exitCode: [^01]|signal: [A-Z]/.test(other))
    return isOuter ? [] : [block.slice(0, 60).join('\n')]
  })
}
