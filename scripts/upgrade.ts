// `npm run upgrade -- [--from REVISION]`: an upgrade from another version, and the way back, under load: both on one
// Redis. Default: the last release that is tagged, or the commit before this one. Ends with `N passed, N failed`.

import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const root = join(import.meta.dirname, '..')
const git = (...args: string[]): Buffer =>
  execFileSync('git', args, { cwd: root, maxBuffer: 1024 ** 3, stdio: ['ignore', 'pipe', 'pipe'] })
const commitOf = (revision: string): string => git('rev-parse', '--verify', `${revision}^{commit}`).toString().trim()

function lastRelease(): string {
  try {
    return git('describe', '--tags', '--match', 'v*', '--abbrev=0', 'HEAD^').toString().trim()
  } catch {
    return 'HEAD^' // There is none yet.
  }
}

const { from } = parseArgs({ options: { from: { type: 'string' } } }).values
const revision = from ?? lastRelease()
let commit = ''
try {
  commit = commitOf(revision)
} catch {
  const reason = `no ${revision} in this repository; name a revision with --from`
  process.stdout.write(`missing: ${reason}; no upgrade was tried\n0 passed, 0 failed\n`)
  process.exit(from === undefined ? 0 : 2)
}
process.stdout.write(`from ${revision} (${commit.slice(0, 8)}) to the files of this checkout, and back\n`)
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-version-'))
try {
  const archive = git('archive', '--format=tar', commit, 'bin', 'src', 'package.json', 'package-lock.json')
  execFileSync('tar', ['-x', '-C', folder], { input: archive })
  const [then, now] = [folder, root].map((path) => readFileSync(join(path, 'package-lock.json'), 'utf8'))
  if (then === now) symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  else execFileSync('npm', ['ci', '--omit=dev', '--ignore-scripts'], { cwd: folder, stdio: ['ignore', 2, 2] })
  const { status } = spawnSync(process.execPath, [join(root, 'scripts', 'test.ts'), 'test/replicas/two-versions.ts'], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, GATEHOUSE_OTHER_VERSION: join(folder, 'bin', 'gatehouse.mjs') }
  })
  process.exitCode = status ?? 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
