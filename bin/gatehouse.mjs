#!/usr/bin/env node
// Runs on any version of Node, to report the required one instead of failing with a syntax error.
const major = Number(process.versions.node.split('.')[0])
if (major < 24) {
  console.error(
    `gatehouse needs Node 24 or newer; this is Node ${process.versions.node}. Use "npm start" or "npm run gatehouse -- COMMAND", which bring Node 24 with them after "npm ci" (with install scripts allowed for the package "node"), or install Node 24.`
  )
  process.exit(1)
}
// While the modules load there is nothing to finish. Process 1 of a container ignores signals unless it has a handler.
// Without a terminal, SIGHUP stays with whoever started this: nohup has it ignored.
if (['serve', 'quickstart'].includes(process.argv[2])) {
  process.once('SIGTERM', () => process.exit(0)).once('SIGINT', () => process.exit(130))
  if (process.stdout.isTTY || process.stderr.isTTY) process.once('SIGHUP', () => process.exit(129))
}
await import('../src/main.ts')
