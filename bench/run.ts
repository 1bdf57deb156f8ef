// `npm run bench`: the benches, as tables for people and one JSON line for machines. Writes nothing into the project.

import { parseArgs } from 'node:util'
import { endToEnd } from './e2e.ts'
import { memory } from './memory.ts'
import { pathOfACall } from './path.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '6' },
    only: { type: 'string' },
    profile: { type: 'string' }
  }
})
const seconds = Number(values.seconds)
const { only, profile } = values
if (!(seconds > 0) || (only !== undefined && !['path', 'e2e', 'memory'].includes(only))) {
  process.stderr.write('usage: node bench/run.ts [--seconds N] [--only path|e2e|memory] [--profile DIR]\n')
  process.exit(2)
}

const figures: Record<string, unknown> = { node: process.versions.node }
if (only === undefined || only === 'path') {
  const path = await pathOfACall({ seconds: seconds / 4 })
  process.stdout.write(`${path.text}\n`)
  figures['path'] = path.figures
}
if (only === undefined || only === 'e2e') {
  const e2e = await endToEnd({ seconds, workers: 32, profile })
  process.stdout.write(`${e2e.text}\n`)
  figures['e2e'] = e2e.figures
}
if (only === 'memory') {
  const held = await memory({ sessions: 2_000, abandoned: 10_000 })
  process.stdout.write(`${held.text}\n`)
  figures['memory'] = held.figures
}
process.stdout.write(`${JSON.stringify(figures)}\n`)
