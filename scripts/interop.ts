// `npm run interop`: peers of other languages, the official Python and Go SDKs, through the gateway in both directions;
// AWS KMS, as moto speaks it; Keycloak; and the client that openapi-typescript makes of the admin API. Installs them into
// .interop/, says what is missing, and ends with `N passed, N failed`. Arguments: python, go, kms, keycloak, openapi; none:
// all.

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { meetHost } from '../test/interop/kit/foreign-hosts.ts'
import { meetClient, meetServer, type Outcome } from '../test/interop/kit/foreign.ts'
import { generator, meetGeneratedClient } from '../test/interop/kit/generated-client.ts'
import { meetKeyService } from '../test/interop/kit/key-service.ts'
import { meetKeycloak } from '../test/interop/kit/meet-keycloak.ts'

const root = join(import.meta.dirname, '..')
const folder = join(root, '.interop')
const adminClient = join(folder, 'admin-client')
const sources = join(root, 'test', 'interop')
const installMs = 300_000
/** As docker-compose.yml has it. */
const keycloak = 'keycloak-26.7.3'

interface Language {
  readonly name: string
  /** Why it cannot be used here; undefined: it can. */
  missing(): string | undefined
  install(): Promise<void>
  meet(): Promise<Outcome[]>
}

function languages(): Language[] {
  const [python, moto] = [pythonOf('python'), pythonOf('kms')]
  const [server, client, host] = ['server.py', 'client.py', 'host.py'].map((name) => join(sources, 'python', name)) as [
    string,
    string,
    string
  ]
  const gopher = join(folder, 'go', 'peer')
  const goFolders = {
    GOPATH: join(folder, 'go'),
    GOMODCACHE: join(folder, 'go', 'mod'),
    GOCACHE: join(folder, 'go', 'cache')
  }
  return [
    {
      name: 'python',
      missing: missingPython,
      install: () => installPython('python', 'requirements.txt'),
      meet: () =>
        inTurn([
          () => meetServer('Python SDK, server over stdio', 'stdio', { command: python, args: [server, 'stdio'] }),
          () => meetServer('Python SDK, server over HTTP', 'http', { command: python, args: [server, 'http'] }),
          () => meetClient('Python SDK, client', 'mcp', { command: python, args: [client, 'http', 'auto'] }),
          () =>
            meetClient('Python SDK, client that does not probe', 'mcp', {
              command: python,
              args: [client, 'http', 'legacy']
            }),
          () =>
            meetClient('Python SDK, client over HTTP+SSE', 'sse', { command: python, args: [client, 'sse', 'auto'] }),
          () => meetHost('Python SDK, host with a URL alone', false, { command: python, args: [host, 'sdk'] }),
          () => meetHost('FastMCP, host with a URL alone', true, { command: python, args: [host, 'fastmcp'] })
        ])
    },
    {
      name: 'go',
      missing() {
        // From Go 1.21 on, an older one gets itself what go.mod asks for, where it may.
        const { stdout } = spawnSync('go', ['env', 'GOVERSION'], {
          cwd: join(sources, 'go'),
          env: { ...process.env, ...goFolders },
          encoding: 'utf8',
          timeout: installMs
        })
        const [, minor = '0'] = /^go1\.(\d+)/.exec(stdout ?? '') ?? []
        return Number(minor) >= 25 ? undefined : 'no go of 1.25 or later'
      },
      install: () => step('go', ['build', '-modcacherw', '-o', gopher, '.'], join(sources, 'go'), goFolders),
      meet: () =>
        inTurn([
          () => meetServer('Go SDK, server over stdio', 'stdio', { command: gopher, args: ['server', 'stdio'] }),
          () => meetServer('Go SDK, server over HTTP', 'http', { command: gopher, args: ['server', 'http'] }),
          () => meetClient('Go SDK, client', 'mcp', { command: gopher, args: ['client', 'http', 'auto'] }),
          () =>
            meetClient('Go SDK, client of 2025-11-25', 'mcp', {
              command: gopher,
              args: ['client', 'http', '2025-11-25']
            }),
          () =>
            meetClient('Go SDK, client over HTTP+SSE', 'sse', {
              command: gopher,
              args: ['client', 'sse', '2025-11-25']
            })
        ])
    },
    {
      name: 'kms',
      missing: missingPython,
      // In a place of its own: it wants other versions of what it shares with the SDK.
      install: () => installPython('kms', 'key-service.txt'),
      meet: () => meetKeyService('AWS KMS (moto)', moto)
    },
    {
      name: 'keycloak',
      missing: () =>
        runs('java', ['-version']) && runs('mvn', ['-version']) ? undefined : 'no java of 17 or later, or no mvn',
      install: installKeycloak,
      meet: () => meetKeycloak('Keycloak', join(folder, keycloak))
    },
    {
      name: 'openapi',
      missing: () => (runs('npm', ['--version']) ? undefined : 'no npm'),
      install: async () => {
        mkdirSync(adminClient, { recursive: true })
        await step('npm', ['install', '--silent', '--no-audit', '--no-fund', '--prefix', adminClient, ...generator])
      },
      meet: () => meetGeneratedClient('openapi-typescript', adminClient)
    }
  ]
}

const pythonOf = (name: string): string => join(folder, name, 'bin', 'python')

const missingPython = (): string | undefined =>
  runs('python3', ['-c', 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))'])
    ? undefined
    : 'no python3 of 3.10 or later with venv'

async function installPython(name: string, requirements: string): Promise<void> {
  const python = pythonOf(name)
  if (!existsSync(python)) await step('python3', ['-m', 'venv', join(folder, name)])
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check']
  await step(python, [...pip, '--requirement', join(sources, 'python', requirements)])
}

async function installKeycloak(): Promise<void> {
  if (existsSync(join(folder, keycloak))) return
  const artifact = `org.keycloak:keycloak-quarkus-dist:${keycloak.replace('keycloak-', '')}:tar.gz`
  const goal = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy'
  await step('mvn', ['-q', '-B', goal, `-Dartifact=${artifact}`, `-DoutputDirectory=${folder}`])
  const archive = join(folder, `keycloak-quarkus-dist-${keycloak.replace('keycloak-', '')}.tar.gz`)
  await step('tar', ['xzf', archive, '-C', folder])
  await rm(archive)
}

const runs = (command: string, args: readonly string[]): boolean =>
  spawnSync(command, args, { stdio: 'ignore' }).status === 0

/** @throws {Error} with what it wrote, where it does not end well */
async function step(
  command: string,
  args: readonly string[],
  cwd = root,
  env: Record<string, string> = {}
): Promise<void> {
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: installMs
  })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) throw new Error(`${command} ${args.join(' ')}: exit ${code}\n${errors}`)
}

async function inTurn(meetings: ReadonlyArray<() => Promise<Outcome[]>>): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  for (const meet of meetings) outcomes.push(...(await meet()))
  return outcomes
}

const only = process.argv.slice(2)
const wanted = languages().filter(({ name }) => only.length === 0 || only.includes(name))
mkdirSync(folder, { recursive: true })
const missing = wanted.flatMap(({ name, missing }) => {
  const reason = missing()
  return reason === undefined ? [] : [{ name, reason }]
})
const there = wanted.filter(({ name }) => !missing.some((language) => language.name === name))
const installed = await Promise.all(
  there.map(async (language) => {
    const failure = await language.install().then(() => undefined, String)
    return { language, failure }
  })
)

const outcomes: Outcome[] = []
for (const { language, failure } of installed) {
  if (failure === undefined)
    outcomes.push(
      ...(await language
        .meet()
        .catch((error: unknown): Outcome[] => [{ peer: language.name, step: 'starts', failure: String(error) }]))
    )
  else outcomes.push({ peer: language.name, step: 'installs', failure })
}

for (const [peer, steps] of Map.groupBy(outcomes, ({ peer }) => peer)) {
  const failed = steps.filter(({ failure }) => failure !== undefined)
  process.stdout.write(`${peer}: ${steps.length - failed.length} of ${steps.length}\n`)
  for (const { step, failure } of failed) process.stdout.write(`  not ok ${step}: ${failure}\n`)
}
for (const { name, reason } of missing) process.stdout.write(`missing: ${name} (${reason}); its peers were not met\n`)
const failed = outcomes.filter(({ failure }) => failure !== undefined).length
process.stdout.write(`${outcomes.length - failed} passed, ${failed} failed\n`)
process.exit(failed === 0 ? 0 : 1)
