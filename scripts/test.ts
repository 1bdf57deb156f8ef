// The whole check, in one command: types, lint, generated documents, and every test against real parts, some at a time.
// The last line is `N passed, N failed`. Arguments: test files, for these alone; `--fast`, for all but the slow folders;
// `--replicas`, for those of foreign clients, suites and revisions alone, through three processes behind a round robin;
// `--full`, with every pair of store, SDK and credential, and all inputs of each property; `--browser`, for those in
// Chromium alone, which the whole leaves out.

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, globSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { ensureBubblewrap, ensureChromium, ensureNginx, ensurePrometheus, ensureRedis } from './programs.ts'

/** A check or a test file: a program that says by its exit code whether all is well. */
interface Job {
  readonly name: string
  readonly args: readonly string[]
}

interface Ended {
  readonly name: string
  readonly seconds: number
  readonly passed: number
  readonly failed: number
}

const root = join(import.meta.dirname, '..')
const bin = join(root, 'node_modules', '.bin')

/** Twenty seconds and more, on their own or because they wait: begun first, so that none is left alone at the end. */
const longest = [
  'chaos/chaos',
  'e2e/leaks',
  'interop/second-sdk',
  'conformance/client',
  'conformance/gateway-2025-11-25',
  'conformance/gateway-2026-07-28',
  'abuse/answers',
  'matrix/matrix',
  'e2e/clients-calls',
  'e2e/package',
  'upstream/modern-contract',
  'upstream/select-era',
  'store/redis-groups',
  'protocol/json',
  'upstream/contract',
  'upstream/stdio'
].map((name) => `test/${name}.test.ts`)
/** Real sockets, processes and foreign peers throughout: four fifths of the time. Their files come after the longest. */
const slowFolders = ['e2e', 'conformance', 'abuse', 'fuzz', 'http', 'interop', 'matrix', 'security']
/** Left out by `--fast`. */
const outOfFast = new Set(slowFolders.filter((folder) => folder !== 'abuse' && folder !== 'fuzz'))
/** Whose gateway may be several processes (test/kit/replicas.ts). */
const replicated = ['test/matrix/matrix.test.ts', 'test/conformance/gateway-*.test.ts', 'test/interop/*.test.ts']
/** In Chromium, which not every machine has: a command of its own. */
const inBrowser = ['test/console/*.test.ts', 'test/browser/*.test.ts']
/** What a test file gives itself: twice what the longest takes on a machine that does ten other things. */
const fileTimeoutS = 600
/** For a file that has lost itself and cannot even give up. */
const killAfterMs = 1_200_000

/**
 * Plugins of tap that no test uses: without them an empty file costs 0.21 s of CPU instead of 0.32 s. A file run by hand
 * works with them, too.
 */
const leftOut = [
  ...['after-each', 'before-each', 'chdir', 'intercept', 'mock', 'node-serialize', 'snapshot', 'spawn', 'stdin'],
  ...['typescript', 'worker']
]

/**
 * Types and lint are Go programs, which would check the same types once on each core, and collect garbage for half of
 * their time.
 */
const inOneThread = { GOMAXPROCS: '1', GOGC: '400' }

const checks: readonly Job[] = [
  { name: 'types', args: ['tsc', '--noEmit', '--checkers', '1', '--incremental', '--tsBuildInfoFile', '.tap/types'] },
  { name: 'types of the console', args: ['tsc', '--noEmit', '--checkers', '1', '--project', 'src/console'] },
  { name: 'lint', args: ['oxlint', '--type-aware'] },
  { name: 'format', args: ['oxfmt', '--check', 'src', 'test', 'bench', 'scripts', 'bin'] },
  { name: 'unused code', args: ['knip', '--cache', '--cache-location', '.tap/knip'] },
  { name: 'documents', args: ['node', 'scripts/docs.ts', '--check'] }
]

const isFast = process.argv.includes('--fast')
const isFull = process.argv.includes('--full')
const isReplicated = process.argv.includes('--replicas')
const isBrowser = process.argv.includes('--browser')
const named = process.argv.slice(2).filter((arg) => !arg.startsWith('--'))
const chosen = named.length > 0 ? named : isReplicated ? replicated : isBrowser ? inBrowser : []
const files = chosen.length > 0 ? globSync([...chosen], { cwd: root }) : testFiles()
/** Many files wait for sockets and timers more than they compute. */
const atOnce = isReplicated || isBrowser ? Math.ceil(availableParallelism() / 2) : availableParallelism() + 1

ensureRedis()
ensurePrometheus()
if (isBrowser) orSay(ensureChromium, 'a browser')
if (isReplicated) orSay(ensureNginx, 'several replicas')
ensureBubblewrap()
// Once after each installation, and again for other plugins: it takes 9 s, and a build under a run of another checkout
// breaks that run.
const builtFor = join(root, 'node_modules', '@tapjs', 'test', 'test-built', 'built-by-gatehouse')
if (!existsSync(builtFor) || readFileSync(builtFor, 'utf8') !== String(leftOut)) {
  const { status } = spawnSync(join(bin, 'tap'), ['build', ...leftOut.map((plugin) => `--plugin=!@tapjs/${plugin}`)], {
    cwd: root,
    stdio: 'inherit'
  })
  if (status !== 0) process.exit(status ?? 1)
  writeFileSync(builtFor, String(leftOut))
}

/** What each job said. */
const logs = join(root, '.tap', 'logs')
mkdirSync(logs, { recursive: true })
const waiting: Job[] = [
  ...(chosen.length === 0 ? checks : []),
  ...files.map((file) => ({ name: file, args: ['node', file] }))
]
const all = waiting.length
const ended: Ended[] = []
await Promise.all(Array.from({ length: atOnce }, work))

const slowest = ended.toSorted((a, b) => b.seconds - a.seconds).slice(0, 10)
process.stdout.write(`\nThe longest:\n${slowest.map((job) => `${job.seconds.toFixed(1)} s ${job.name}\n`).join('')}`)
for (const { name } of ended.filter(({ failed }) => failed > 0)) process.stdout.write(`failed: ${name}\n`)
const sum = (key: 'passed' | 'failed'): number => ended.reduce((total, job) => total + job[key], 0)
process.stdout.write(`\n${sum('passed')} passed, ${sum('failed')} failed\n`)
process.exit(sum('failed') === 0 && sum('passed') > 0 ? 0 : 1)

/** Ends with what is missing, on a machine that does not have it and gets none. */
function orSay(ensure: () => unknown, where: string): void {
  try {
    ensure()
  } catch (error) {
    process.stdout.write(`${(error as Error).message}\nNothing was tested with ${where}.\n0 passed, 0 failed\n`)
    process.exit(0)
  }
}

/** The test files, those that take long first. */
function testFiles(): string[] {
  const ranks = [...longest, ...slowFolders]
  const rank = (file: string): number => {
    const at = ranks.findIndex((name) => name === file || name === file.split('/')[1])
    return at === -1 ? ranks.length : at
  }
  return globSync('test/**/*.test.ts', { cwd: root, exclude: inBrowser })
    .filter((file) => !isFast || !outOfFast.has(file.split('/')[1] ?? ''))
    .toSorted((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
}

/** One job after another until none is left. */
async function work(): Promise<void> {
  for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) {
    const end = await run(job)
    ended.push(end)
    const state = end.failed === 0 ? 'passed' : 'FAILED'
    process.stdout.write(`${ended.length}/${all} ${state} ${end.name} ${end.seconds.toFixed(1)} s\n`)
  }
}

/**
 * A test file runs as it does by hand, without the runner of tap, whose hooks and source maps cost three times as much
 * as an average file.
 */
async function run({ name, args: [command = '', ...rest] }: Job): Promise<Ended> {
  const startedAt = performance.now()
  // Files rather than pipes, which a process that a test left behind would hold open.
  const log = join(logs, name.replaceAll('/', '-'))
  const [out, err] = [openSync(`${log}.out`, 'w'), openSync(`${log}.err`, 'w')]
  const child = spawn(join(bin, command), rest, {
    cwd: root,
    stdio: ['ignore', out, err],
    timeout: killAfterMs,
    killSignal: 'SIGKILL',
    // Three hundred processes load the same modules: compiled once, they cost half.
    env: {
      ...process.env,
      NODE_COMPILE_CACHE: join(root, '.tap', 'compiled'),
      ...inOneThread,
      TAP_TIMEOUT: String(fileTimeoutS),
      ...(isReplicated ? { GATEHOUSE_TEST_REPLICAS: '3' } : {}),
      ...(isFull ? { GATEHOUSE_TEST_FULL: '1' } : {})
    }
  })
  const [code, signal] = await once(child, 'exit')
  closeSync(out)
  closeSync(err)
  const output = readFileSync(`${log}.out`, 'utf8')
  const seconds = (performance.now() - startedAt) / 1000
  const isTest = name.startsWith('test/')
  // The summary of the outermost plan: "# { total: 12, pass: 11, fail: 1 }".
  const counts = isTest ? (/^# \{ ([^}]*) \}$/m.exec(output)?.[1] ?? '') : ''
  const count = (kind: string): number => Number(new RegExp(`\\b${kind}: (\\d+)`).exec(counts)?.[1] ?? 0)
  const skipped = count('skip') + count('todo')
  const isWell = code === 0 && skipped === 0 && (!isTest || count('pass') > 0)
  if (!isWell) {
    const said = isTest ? failures(output).join('\n\n') : output
    const end = skipped > 0 ? `${skipped} tests skip themselves; none may` : `ended with ${signal ?? `code ${code}`}`
    process.stdout.write(`\n${said}\n${readFileSync(`${log}.err`, 'utf8').slice(-4_000)}\n${name}: ${end}\n\n`)
  }
  return { name, seconds, passed: count('pass'), failed: isWell ? 0 : Math.max(1, count('fail')) }
}

/**
 * Each failed assertion with its diagnosis, and the test it stands in; what only repeats it further out is left out.
 */
function failures(tap: string): string[] {
  const lines = tap.split('\n')
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
