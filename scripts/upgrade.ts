// `npm run upgrade -- [--from REVISION]`: an upgrade from another version, and the way back, under load: both on one
// Redis. Default: the last release that is tagged, or the commit before this one.

import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const root = join(import.meta.dirname, '..')
const git = (...args: string[]): Buffer =>
  execFileSync('git', args, { cwd: root, maxBuffer: 1024 ** 3, stdio: ['ignore', 'pipe', 'pipe'] })

function lastRelease(): string {
  try {
    return git('describe', '--tags', '--match', 'v*', '--abbrev=0').toString().trim()
  } catch {
    return 'HEAD^' // There is none yet.
  }
}

const { from = lastRelease() } = parseArgs({ options: { from: { type: 'string' } } }).values
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-version-'))
try {
  const commit = git('rev-parse', '--verify', `${from}^{commit}`).toString().trim()
  process.stdout.write(`from ${from} (${commit.slice(0, 8)}) to the files of this checkout, and back\n`)
  const archive = git('archive', '--format=tar', commit, 'bin', 'src', 'package.json', 'package-lock.json')
  execFileSync('tar', ['-x', '-C', folder], { input: archive })
  const [then, now] = [folder, root].map((path) => readFileSync(join(path, 'package-lock.json'), 'utf8'))
  if (then === now) symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  else execFileSync('npm', ['ci', '--omit=dev', '--ignore-scripts'], { cwd: folder, stdio: ['ignore', 2, 2] })
  const { status } = spawnSync(process.execPath, [join(root, 'test', 'replicas', 'two-versions.ts')], {
    stdio: 'inherit',
    env: { TAP_TIMEOUT: '600', ...process.env, GATEHOUSE_OTHER_VERSION: join(folder, 'bin', 'gatehouse.mjs') }
  })
  process.exitCode = status ?? 1
} catch (error) {
  process.stderr.write(`${(error as Error).message}\nName a revision of this repository with --from.\n`)
  process.exitCode = 2
} finally {
  rmSync(folder, { recursive: true, force: true })
}
