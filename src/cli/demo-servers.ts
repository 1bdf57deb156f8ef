// The demo servers of the quickstart: those of the checkout, or else fetched by npx, which keeps them in npm's cache.
// They are no dependencies of the package, because a real installation does not need them.

import { execFile } from 'node:child_process'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Log } from '../observe/log.ts'

/** How long npx may take to fetch them. */
const fetchMs = 300_000

const servers = {
  everything: { name: '@modelcontextprotocol/server-everything', bin: 'mcp-server-everything' },
  memory: { name: '@modelcontextprotocol/server-memory', bin: 'mcp-server-memory' }
}

/** The paths of their scripts. */
export type DemoServers = Readonly<Record<keyof typeof servers, string>>

/** @throws {Error} where they are neither installed nor can be fetched */
export async function demoServers(env: NodeJS.ProcessEnv, log: Log): Promise<DemoServers> {
  return installed() ?? (await fetched(env, log))
}

function installed(): DemoServers | undefined {
  try {
    const pathOf = (name: string): string => fileURLToPath(import.meta.resolve(`${name}/dist/index.js`))
    const [everything, memory] = [pathOf(servers.everything.name), pathOf(servers.memory.name)]
    return existsSync(everything) && existsSync(memory) ? { everything, memory } : undefined
  } catch {
    return undefined // Not below any node_modules that this file can see: they are fetched.
  }
}

async function fetched(env: NodeJS.ProcessEnv, log: Log): Promise<DemoServers> {
  const { devDependencies } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    devDependencies: Readonly<Record<string, string>>
  }
  const packages = Object.values(servers).map(({ name }) => `--package=${name}@${devDependencies[name]}`)
  log.info('fetching the demo servers with npx: the first time that takes a while')
  // What npx runs has the folder of their programs in its PATH.
  const { stdout } = await promisify(execFile)('npx', ['--yes', ...packages, '--', 'node', '-p', 'process.env.PATH'], {
    env,
    timeout: fetchMs
  }).catch((cause: unknown) => {
    throw new Error(
      'The demo servers are not installed, and npx could not fetch them. Is npm installed, and can it reach its ' +
        'registry? "gatehouse serve --mcp-json FILE" runs your own servers.',
      { cause }
    )
  })
  const scriptOf = (bin: string): string => {
    const path = stdout
      .trim()
      .split(delimiter)
      .map((folder) => join(folder, bin))
      .find((path) => existsSync(path))
    if (path === undefined) throw new Error(`npx has fetched the demo servers, yet there is no ${bin} in its PATH.`)
    return realpathSync(path)
  }
  return { everything: scriptOf(servers.everything.bin), memory: scriptOf(servers.memory.bin) }
}
