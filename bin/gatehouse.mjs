#!/usr/bin/env node
// Runs on any version of Node that knows modules, to report the required one instead of failing with a syntax error:
// so it imports nothing before it has looked, and does not await at its top level.
const major = Number(process.versions.node.split('.')[0])
if (major < 24) {
  console.error(
    `gatehouse needs Node 24 or newer; this is Node ${process.versions.node}. Install Node 24. In a clone "npm start" and "npm run gatehouse -- COMMAND" have it after "npm ci" (with install scripts allowed for the package "node").`
  )
  process.exit(1)
}
const stays = ['serve', 'quickstart'].includes(process.argv[2])
// Left to itself, glibc keeps ever more of the memory that native code has freed: 100 MiB of a gateway that had long
// messages (https://sourceware.org/glibc/manual/latest/html_node/Memory-Allocation-Tunables.html). V8 lets the space of
// young objects grow with the memory of the machine, to 128 MiB, most of which is never given back. Both read settings
// only when a program starts, so the program takes the place of itself once, as the same process. A parent that talks
// to it over IPC would lose it.
if (stays && process.platform === 'linux' && !process.send && process.env.GLIBC_TUNABLES === undefined) {
  const settings = { arena_max: 2, mmap_threshold: 131_072, trim_threshold: 4_194_304 }
  const tunables = Object.entries(settings).map(([name, value]) => `glibc.malloc.${name}=${value}`)
  // In MiB; the space has three parts of that size.
  const young = process.env.NODE_OPTIONS?.includes('semi-space') ? [] : ['--max-semi-space-size=16']
  const command = [process.execPath, ...young, ...process.execArgv, ...process.argv.slice(1)]
  process.execve?.(process.execPath, command, { ...process.env, GLIBC_TUNABLES: tunables.join(':') })
}
// While the modules load there is nothing to finish. Process 1 of a container ignores signals unless it has a handler.
// Without a terminal, SIGHUP stays with whoever started this: nohup has it ignored.
if (stays) {
  process.once('SIGTERM', () => process.exit(0)).once('SIGINT', () => process.exit(130))
  if (process.stdout.isTTY || process.stderr.isTTY) process.once('SIGHUP', () => process.exit(129))
}
// A checkout has the sources, and JavaScript only while it is packed; the package has JavaScript only.
void import('node:fs').then(({ existsSync }) =>
  existsSync(new URL('../src/main.ts', import.meta.url)) ? import('../src/main.ts') : import('../dist/main.js')
)
