#!/usr/bin/env node
// Runs on any Node, to say which one is needed instead of failing with a syntax error; then hands over.
const major = Number(process.versions.node.split('.')[0])
if (major < 24) {
  console.error(`gatehouse needs Node 24 or newer; this is Node ${process.versions.node}. Use "npm start" or "npm run gatehouse -- COMMAND", which bring Node 24 with them after "npm ci" (with install scripts allowed for the package "node"), or install Node 24.`)
  process.exit(1)
}
// While the modules load there is nothing to finish. Without a handler, process 1 of a container would not even hear the signal.
if (['serve', 'quickstart'].includes(process.argv[2])) process.once('SIGTERM', () => process.exit(0))
await import('../src/main.ts')
