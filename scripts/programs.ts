// Finds programs for the tests, or installs Debian's where that is allowed. No test is skipped for want of Redis.

import { spawnSync } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

const remedy =
  'Install Redis 6 or newer or Valkey so that redis-server or valkey-server is on the PATH ' +
  '(Debian, Ubuntu: apt-get install redis-server; Fedora: dnf install valkey; macOS: brew install redis). ' +
  'REDIS_URL=redis://HOST:PORT names a running one for the contract tests; the tests that kill and freeze Redis need a program of their own.'

/** @returns the path of redis-server or valkey-server, or undefined where there is none on the PATH */
export function findRedis(): string | undefined {
  return onPath('redis-server') ?? onPath('valkey-server')
}

/**
 * @returns the path of a server program, installed first where this user may and apt-get is there
 * @throws Error that says what to install
 */
export function ensureRedis(): string {
  const found = findRedis()
  if (found !== undefined) return found
  if (!install('redis-server')) throw new Error(`The tests need a Redis server and found none. ${remedy}`)
  const installed = findRedis()
  if (installed === undefined)
    throw new Error(`The package redis-server was installed, yet no redis-server is on the PATH. ${remedy}`)
  return installed
}

/**
 * For the tests of metrics: Debian's package has both programs.
 * @throws Error that says what to install
 */
export function ensurePrometheus(): { readonly prometheus: string; readonly promtool: string } {
  if (onPath('prometheus') === undefined) install('prometheus')
  const [prometheus, promtool] = [onPath('prometheus'), onPath('promtool')]
  if (prometheus !== undefined && promtool !== undefined) return { prometheus, promtool }
  throw new Error('The tests need prometheus and promtool on the PATH (Debian, Ubuntu: apt-get install prometheus).')
}

/** For tests behind a real load balancer. @throws Error that says what to install */
export function ensureNginx(): string {
  if (findNginx() === undefined) install('nginx-light')
  const found = findNginx()
  if (found === undefined) throw new Error('The tests need nginx (Debian, Ubuntu: apt-get install nginx-light).')
  return found
}

/** For the tests of the console, in a real browser. @throws Error that says what to install */
export function ensureChromium(): string {
  const find = (): string | undefined =>
    ['chromium', 'chromium-browser', 'google-chrome'].map(onPath).find((path) => path !== undefined)
  if (find() === undefined) install('chromium')
  const found = find()
  if (found === undefined) throw new Error('The tests need Chromium (Debian: apt-get install chromium).')
  return found
}

/** Debian keeps it where the PATH of most users does not lead. */
const findNginx = (): string | undefined =>
  onPath('nginx') ?? (executable('/usr/sbin/nginx') ? '/usr/sbin/nginx' : undefined)

/** For the tests of sandboxes. Some systems have none, or let nobody use it: they are then skipped, and say so. */
export function ensureBubblewrap(): void {
  if (process.platform !== 'linux' || onPath('bwrap') !== undefined) return
  try {
    install('bubblewrap')
  } catch (error) {
    console.error(`Tests of sandboxes are skipped: ${(error as Error).message}`)
  }
}

/** For the tests of completion. Elsewhere than on Debian they try the shells that are there, and say which are not. */
export function ensureShells(): void {
  const missing = ['fish', 'zsh'].filter((shell) => onPath(shell) === undefined)
  if (missing.length === 0) return
  try {
    install(...missing)
  } catch (error) {
    console.error(`Completion is not tried in ${missing.join(' and ')}: ${(error as Error).message}`)
  }
}

/** What `npm run containers` needs, on a machine that has no podman and may install it. */
export function installPodman(): void {
  if (onPath('podman') !== undefined) return
  const packages = ['podman', 'runc', 'netavark', 'aardvark-dns', 'uidmap', 'iptables', 'debootstrap', 'python3-venv']
  try {
    install(...packages)
  } catch (error) {
    console.error((error as Error).message)
  }
}

/** @returns false where this user may not, or the system is no Debian */
function install(...names: readonly string[]): boolean {
  if (process.getuid?.() !== 0 || onPath('apt-get') === undefined) return false
  run('apt-get', ['update'])
  run('apt-get', ['install', '-y', '--no-install-recommends', ...names])
  return true
}

function run(program: string, args: readonly string[]): void {
  console.error(`Needed for the tests: ${program} ${args.join(' ')}`)
  // Standard output stays clean: the last line of the test command is the count of tests.
  const { status, error } = spawnSync(program, args, {
    stdio: ['ignore', 2, 2],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  })
  if (error !== undefined || status !== 0) {
    throw new Error(`${program} ${args.join(' ')} failed (${error?.message ?? `exit code ${status}`}). ${remedy}`, {
      cause: error
    })
  }
}

function onPath(program: string): string | undefined {
  return (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, program))
    .find(executable)
}

function executable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false // Not there or not a program for us: the next folder may have it.
  }
}

if (import.meta.main) console.error(`Redis for the tests: ${ensureRedis()}`)
