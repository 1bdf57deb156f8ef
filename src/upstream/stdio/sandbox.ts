// Runs a stdio upstream in a sandbox made by bubblewrap (`bwrap`). The upstream sees the programs of the system,
// read-only, and the files that its definition names. It sees no other processes, and none of the gateway's files.

import { execFile } from 'node:child_process'
import { accessSync, constants, existsSync, realpathSync, statSync } from 'node:fs'
import { basename, delimiter, dirname, isAbsolute, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { UnreachableError } from '../rpc/errors.ts'
import { isFaultOfGateway } from './start-error.ts'
import type { StdioDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'

/** A program and its arguments, which are started without a shell. */
export interface Command {
  readonly command: string
  readonly args: readonly string[]
}

/** Folders of programs and libraries that every sandbox sees. */
const programFolders = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/opt', '/nix/store']
/** The files in /etc that every sandbox sees: host and user names, certificates, linker. Others may hold secrets. */
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
/** Places to which `/etc/resolv.conf` may link. */
const resolvers = ['/run/systemd/resolve', '/run/resolvconf', '/run/NetworkManager/resolv.conf']
/** The size of /tmp and of the home folder of one sandbox, in bytes each; both are in memory. */
const scratchBytes = 134_217_728
/** The timeout of the test run of `bwrap`, so that a system that hangs does not block the start of upstreams. */
const probeMs = 10_000

const remedy = 'Install bubblewrap, and in a container allow user namespaces.'

/** The folders that are searched if there is no PATH. */
const usualPath = '/usr/local/bin:/usr/bin:/bin'

const run = promisify(execFile)

export type Sandbox = ReturnType<typeof createSandbox>

/** @param path the PATH in which `bwrap` is searched */
export function createSandbox(path: string | undefined, log: Log) {
  let works: Promise<string | undefined> | undefined
  let missing: string | undefined
  /** Upstreams that run without a sandbox and for which that was logged. */
  const bare = new Set<string>()

  /** @returns why sandboxes do not work; undefined if they work. @throws the error if `isFaultOfGateway` */
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
     * Tests once whether sandboxes work; if they do not, again for each upstream with `sandbox: required`.
     * @throws the error of the test run if `isFaultOfGateway`
     */
    async ready({ name, tenant, sandbox }: StdioDefinition): Promise<void> {
      if (sandbox === 'off') return
      if (missing !== undefined && sandbox === 'required') works = undefined
      missing = await (works ??= probe())
      if (missing === undefined || sandbox === 'required' || bare.has(`${tenant}/${name}`)) return
      bare.add(`${tenant}/${name}`)
      log.warn({ upstream: name, reason: missing }, `the upstream runs without a sandbox. ${remedy}`)
    },
    /**
     * Must be called after `ready`.
     * @param env the environment of the server
     * @returns the command that starts the server, in a sandbox if its definition wants one
     * @throws GatewayError upstream_unavailable if it has `sandbox: required` and sandboxes do not work
     */
    wrap(definition: StdioDefinition, env: Readonly<Record<string, string | undefined>>): Command {
      const { name, command, args, cwd, sandbox } = definition
      if (sandbox === 'off' || (sandbox === 'preferred' && missing !== undefined)) return { command, args }
      if (missing !== undefined) {
        const text =
          `Upstream ${name} cannot start: it has \`sandbox: required\`, but no sandbox works: ${missing}. ` + remedy
        throw new UnreachableError('upstream_unavailable', text, { data: { upstream: name } })
      }
      const found = findCommand(command, env['PATH'], cwd)
      // A command that is not found is started without a sandbox, so that the error names the command and not bwrap.
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
  /** Arguments of bwrap that make the program visible. */
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

/** Searches a command as the system does. @returns its path; undefined if there is no such executable file */
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
 * Makes a program visible that is installed outside `programFolders`, such as by a version manager. If there is a `lib`
 * beside its `bin`, the sandbox sees their common folder, but never a home folder; otherwise only the file.
 * @returns arguments of bwrap
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
