// `npm run containers`: builds the Dockerfile and brings docker-compose.yml up, both unchanged, with podman; logs a host
// in, calls tools, kills a gateway, restarts Redis, takes it down. Where no image registry can be reached it makes
// stand-ins for the base images and says so. Where podman is missing it says so, too. Ends with `N passed, N failed`.

import { execFile, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { meetContainers, type Outcome, type Stack } from '../test/containers/meet.ts'
import { freePort } from '../test/kit/free-port.ts'
import { installPodman } from './programs.ts'
import { baseImages, hasImage, makeStandIns, run, standInDebian } from './stand-ins/stand-ins.ts'

const root = join(import.meta.dirname, '..')
const folder = join(root, '.interop', 'containers')
const composeVersion = '1.6.0'
const pullMs = 60_000

function missing(): string | undefined {
  const has = (program: string, ...args: string[]): boolean =>
    spawnSync(program, args, { stdio: 'ignore' }).status === 0
  if (!has('podman', '--version')) return 'no podman (Debian: apt-get install podman runc netavark aardvark-dns)'
  if (!has('podman', 'info')) return 'podman does not work for this user: see "podman info"'
  if (!has('python3', '-c', 'import venv, ensurepip')) return 'no python3 with venv and pip, for podman-compose'
  return undefined
}

/** A machine without image registry is mostly one with few rights, too: with these settings podman works there. */
function standInSettings(): void {
  const file = join(folder, 'containers.conf')
  writeFileSync(
    file,
    `[containers]
default_ulimits = ["nofile=1024:16384", "nproc=4096:4096"]
[engine]
runtime = "runc"
[network]
network_backend = "netavark"
`
  )
  process.env['CONTAINERS_CONF'] = file
}

/**
 * @returns whether stand-ins are used
 * @throws {Error} where neither the images nor stand-ins can be had
 */
function prepareImages(): boolean {
  const images = Object.values(baseImages())
  const pulled = images.every(
    (name) => hasImage(name) || spawnSync('podman', ['pull', '--quiet', name], { timeout: pullMs }).status === 0
  )
  if (!pulled) {
    const has = (program: string, argument: string): boolean => spawnSync(program, [argument]).status === 0
    if (process.getuid?.() !== 0 || !has('debootstrap', '--version') || !has('go', 'version'))
      throw new Error(
        'No image registry can be reached, and stand-ins need root, debootstrap (apt-get install debootstrap) and Go.'
      )
    makeStandIns()
  }
  return hasImage(standInDebian)
}

/** What npm needs on this machine, mounted while the images are built and in none of their layers. */
function npmSettings(): string[] {
  const setting = (name: string): string =>
    spawnSync('npm', ['config', 'get', name], { encoding: 'utf8' }).stdout.trim()
  const mounts: Array<readonly [from: string, to: string]> = [
    [setting('userconfig'), '/root/.npmrc'],
    [setting('globalconfig'), '/usr/local/etc/npmrc'],
    ['/usr/etc/npmrc', '/usr/local/etc/npmrc'],
    ...[setting('cafile'), process.env['NODE_EXTRA_CA_CERTS'] ?? ''].map((path) => [path, path] as const)
  ]
  const targets = new Map(
    mounts.filter(([from]) => from.startsWith('/') && existsSync(from)).map(([from, to]) => [to, from])
  )
  return [...targets].map(([to, from]) => `--volume=${from}:${to}:ro`)
}

function compose(): string {
  const program = join(folder, 'venv', 'bin', 'podman-compose')
  if (!existsSync(program)) {
    run('python3', ['-m', 'venv', join(folder, 'venv')])
    const pip = join(folder, 'venv', 'bin', 'pip')
    run(pip, ['install', '--quiet', '--disable-pip-version-check', `podman-compose==${composeVersion}`])
  }
  return program
}

function endWithout(reason: string): never {
  process.stdout.write(`missing: ${reason}; no container was built or run\n0 passed, 0 failed\n`)
  process.exit(0)
}

installPodman()
const reason = missing()
if (reason !== undefined) endWithout(reason)
mkdirSync(folder, { recursive: true })
// Without it podman makes images in a format that has no HEALTHCHECK.
process.env['BUILDAH_FORMAT'] = 'docker'
if (homedir() === '/root') standInSettings()
let standIns = false
try {
  standIns = prepareImages()
} catch (error) {
  endWithout((error as Error).message)
}
if (standIns)
  process.stdout.write(
    'No image registry: stand-ins of this machine are used for the base images. That of the collector is built from its ' +
      'own modules; that of Grafana takes the files that Grafana is given and answers for it, so its pages were not seen.\n'
  )
const build = ['--network=host', '--pull=never', ...npmSettings()]
const [port, loginPort, grafanaPort] = [await freePort(), await freePort(), await freePort()]
Object.assign(process.env, {
  GATEHOUSE_PORT: String(port),
  GATEHOUSE_LOGIN_PORT: String(loginPort),
  GATEHOUSE_GRAFANA_PORT: String(grafanaPort),
  // Another run on this machine has another one.
  GATEHOUSE_NETWORK: `10.${213 + (process.pid % 40)}.${Math.floor(process.pid / 40) % 256}`
})
const project = `gatehouse-test-${process.pid}`
const program = compose()
const composed = (...args: string[]): string => run(program, ['--project-name', project, ...args], { cwd: root })

const stack: Stack = {
  url: `http://localhost:${port}/t/demo/mcp`,
  name: (service) => `${project}_${service}_1`,
  podman: (...args) => run('podman', args),
  podmanInBackground: (...args) => promisify(execFile)('podman', args),
  grafana: `http://localhost:${grafanaPort}`,
  npm: ['--network=host', ...npmSettings()],
  log: (service) => spawnSync('podman', ['logs', `${project}_${service}_1`], { encoding: 'utf8' }).stderr
}
/** Before the containers are removed. */
function keepLogs(): void {
  const names = run('podman', ['ps', '--all', '--format', '{{.Names}}']).split('\n')
  for (const name of names.filter((each) => each.startsWith(`${project}_`))) {
    const { stdout, stderr } = spawnSync('podman', ['logs', '--timestamps', name], { encoding: 'utf8' })
    writeFileSync(join(folder, `${name.slice(project.length + 1)}.log`), `${stdout}${stderr}`)
  }
  process.stdout.write(`What the containers said is kept in ${folder}\n`)
}

const outcomes: Outcome[] = []
try {
  run('podman', ['build', ...build, '--target=with-runtimes', '--tag=localhost/gatehouse-with-runtimes:local', '.'], {
    cwd: root
  })
  // What a person types, but that images of an earlier run are made anew.
  composed(`--podman-build-args=${build.join(' ')}`, '--profile=observability', 'up', '--detach', '--build')
  outcomes.push(...(await meetContainers(stack)))
} catch (error) {
  outcomes.push({ step: 'builds and starts', failure: String(error) })
} finally {
  if (outcomes.some(({ failure }) => failure !== undefined)) keepLogs()
  const { status, stderr } = spawnSync(
    program,
    ['--project-name', project, '--profile=observability', 'down', '--volumes'],
    {
      cwd: root,
      encoding: 'utf8'
    }
  )
  outcomes.push({ step: 'is taken down', failure: status === 0 ? undefined : stderr })
}

for (const { step, failure } of outcomes)
  process.stdout.write(failure === undefined ? `ok ${step}\n` : `not ok ${step}: ${failure}\n`)
const failed = outcomes.filter(({ failure }) => failure !== undefined).length
process.stdout.write(`${outcomes.length - failed} passed, ${failed} failed\n`)
process.exit(failed === 0 ? 0 : 1)
