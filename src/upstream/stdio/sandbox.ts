// The sandbox of a stdio upstream, by bubblewrap (`bwrap`): it sees the programs of the system, read-only, and what its
// definition names; neither other processes nor the files of the gateway, its configuration, its secrets or its store.

import { execFile } from 'node:child_process'
import { accessSync, constants, existsSync, realpathSync, statSync } from 'node:fs'
import { basename, delimiter, dirname, isAbsolute, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { UnreachableError } from '../rpc/errors.ts'
import { isFaultOfGateway } from './start-error.ts'
import type { StdioDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'

/** What is started: without a shell. */
export interface Command {
  readonly command: string
  readonly args: readonly string[]
}

/** Programs and their libraries. */
const programFolders = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/opt', '/nix/store']
/** Names, certificates and the dynamic linker; the rest of /etc may hold secrets. */
const settings = [
  ...['alternatives', 'ca-certificates', 'ca-certificates.conf', 'crypto-policies', 'gai.conf', 'group', 'host.conf'],
  ...[
    'hosts',
    'ld.so.cache',
    'ld.so.conf',
    'ld.so.conf.d',
    'localtime',
    'mime.types',
    'nsswitch.conf',
    'passwd',
    'pki'
  ],
  ...['protocols', 'resolv.conf', 'services', 'ssl', 'timezone']
].map((name) => `/etc/${name}`)
/** Where `/etc/resolv.conf` may lead. */
const resolvers = ['/run/systemd/resolve', '/run/resolvconf', '/run/NetworkManager/resolv.conf']
/** Of `/tmp` and of the home folder, each in memory and its own, in bytes. */
const scratchBytes = 134_217_728
/** The test run ends by itself; a system that hangs must not hold the start of upstreams. */
const probeMs = 10_000

/** Where there is no PATH. */
const usualPath = '/usr/local/bin:/usr/bin:/bin'

const run = promisify(execFile)

export type Sandbox = ReturnType<typeof createSandbox>

/** @param path where `bwrap` is looked for */
export function createSandbox(path: string | undefined, log: Log) {
  let works: Promise<string | undefined> | undefined
  let missing: string | undefined
  /** Upstreams that run without one: said once of each. */
  const bare = new Set<string>()

  /** @returns why there is no sandbox; undefined where there is one. @throws what is a fault of the gateway */
  async function probe(): Promise<string | undefined> {
    try {
      const args = [
        ...mounts({ home: '/root', program: [], read: [], write: [] }),
        ...walls(true),
        '--',
        '/bin/sh',
        '-c',
        ':'
      ]
      await run('bwrap', args, { env: path === undefined ? {} : { PATH: path }, timeout: probeMs })
      return undefined
    } catch (error) {
      if (isFaultOfGateway(error)) {
        works = undefined
        throw error
      }
      const { code, stderr } = error as { readonly code?: unknown; readonly stderr?: string }
      if (code === 'ENOENT') return 'bubblewrap (bwrap) is not installed'
      const said = stderr?.trim().split('\n').at(-1) ?? ''
      return said === '' ? `bwrap failed with ${String(code)}` : said
    }
  }

  return {
    /**
     * Finds out, once, whether the system lets us make sandboxes; where it does not, again for each that needs one.
     * @throws what says that the gateway has no more of what that takes
     */
    async ready({ name, tenant, sandbox }: StdioDefinition): Promise<void> {
      if (sandbox === 'off') return
      if (missing !== undefined && sandbox === 'required') works = undefined
      missing = await (works ??= probe())
      if (missing === undefined || sandbox === 'required' || bare.has(`${tenant}/${name}`)) return
      bare.add(`${tenant}/${name}`)
      log.warn({ upstream: name, reason: missing }, 'the upstream runs without a sandbox: the system offers none')
    },
    /**
     * Runs after `ready`.
     * @param env of the server
     * @returns what starts the server, within its sandbox if it is to have one
     * @throws GatewayError upstream_unavailable where it needs one and there is none
     */
    wrap(definition: StdioDefinition, env: Readonly<Record<string, string | undefined>>): Command {
      const { name, command, args, cwd, sandbox } = definition
      if (sandbox === 'off' || (sandbox === 'preferred' && missing !== undefined)) return { command, args }
      if (missing !== undefined) {
        const text =
          `Upstream ${name} cannot start: it has \`sandbox: required\`, and the system offers none: ${missing}. ` +
          'Install bubblewrap, and in a container allow user namespaces.'
        throw new UnreachableError('upstream_unavailable', text, { data: { upstream: name } })
      }
      const found = findCommand(command, env['PATH'], cwd)
      // Where it is not found, it is started bare, so that the error says so.
      if (found === undefined) return { command, args }
      const home = env['HOME'] ?? '/root'
      const read = [...(cwd === undefined ? [] : [cwd]), ...definition.sandboxRead]
      const wrapped = [
        ...mounts({ home, program: mountsOf(found, home), read, write: definition.sandboxWrite }),
        ...walls(definition.sandboxNetwork)
      ]
      return { command: 'bwrap', args: [...wrapped, '--chdir', cwd ?? '/', '--', found, ...args] }
    }
  }
}

interface Mounts {
  readonly home: string
  /** Arguments of bwrap. */
  readonly program: readonly string[]
  readonly read: readonly string[]
  readonly write: readonly string[]
}

const mounts = ({ home, program, read, write }: Mounts): string[] => [
  ...['--size', String(scratchBytes), '--tmpfs', '/tmp', '--setenv', 'TMPDIR', '/tmp'],
  ...['--size', String(scratchBytes), '--tmpfs', home],
  ...[...programFolders, ...settings, ...resolvers].flatMap((place) => ['--ro-bind-try', place, place]),
  ...program,
  ...read.flatMap((place) => ['--ro-bind', place, place]),
  ...write.flatMap((place) => ['--bind', place, place]),
  ...['--proc', '/proc', '--dev', '/dev', '--remount-ro', '/']
]

const walls = (network: boolean): string[] => [
  ...['--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try', '--cap-drop', 'ALL'],
  ...(network ? [] : ['--unshare-net']),
  '--die-with-parent'
]

/** As the system would find it. @returns an absolute path */
export function findCommand(command: string, path = usualPath, cwd: string | undefined): string | undefined {
  const places = command.includes('/')
    ? [isAbsolute(command) ? command : resolve(cwd ?? '', command)]
    : path.split(delimiter).map((folder) => join(folder, command))
  return places.find((place) => {
    try {
      accessSync(place, constants.X_OK)
      return statSync(place).isFile()
    } catch {
      return false
    }
  })
}

/**
 * What is needed of a program that is installed elsewhere, such as by a version manager: with the `lib` beside its
 * `bin` all of both, else the file alone. Never a home folder, which holds more than programs.
 */
function mountsOf(command: string, home: string): string[] {
  const real = realpathSync(command)
  return [...new Set([command, real])].flatMap((file) => {
    const folder = dirname(file)
    const prefix = dirname(folder)
    const isPrefix = basename(folder) === 'bin' && prefix !== home && existsSync(join(prefix, 'lib'))
    const place = isPrefix ? prefix : file
    if (place === '/' || programFolders.some((known) => `${place}/`.startsWith(`${known}/`))) return []
    return ['--ro-bind', isPrefix ? prefix : real, place]
  })
}
