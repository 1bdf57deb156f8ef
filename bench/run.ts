// `npm run bench`: both benches, as tables for people and one JSON line for machines. Writes nothing into the project.

import { parseArgs } from 'node:util'
import { endToEnd } from './e2e.ts'
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
if (!(seconds > 0) || (only !== undefined && only !== 'path' && only !== 'e2e')) {
  process.stderr.write('usage: node bench/run.ts [--seconds N] [--only path|e2e] [--profile DIR]\n')
  process.exit(2)
}

const figures: Record<string, unknown> = { node: process.versions.node }
if (only !== 'e2e') {
  const path = await pathOfACall({ seconds: seconds / 4 })
  process.stdout.write(`${path.text}\n`)
  figures['path'] = path.figures
}
if (only !== 'path') {
  const e2e = await endToEnd({ seconds, workers: 32, profile })
  process.stdout.write(`${e2e.text}\n`)
  figures['e2e'] = e2e.figures
}
process.stdout.write(`${JSON.stringify(figures)}\n`)
