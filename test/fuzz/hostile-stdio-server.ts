// `node hostile-stdio-server.ts SEED ERA`: a hostile server as a child process.

import { createInterface } from 'node:readline'
import { hostileActs, type Act, type HostileEra } from './hostile.ts'
import { random } from './random.ts'

const [seed = '0', era = 'legacy'] = process.argv.slice(2)
let received = 0

function act(what: Act): void {
  if (what === 'cut') process.exit(1)
  else if (what === 'end') process.stdout.end()
  else if ('bytes' in what) process.stdout.write(what.bytes)
  else process.stdout.write(`${JSON.stringify(what.message)}\n`)
}

process.stdout.on('error', () => process.exit(0))
createInterface({ input: process.stdin }).on('line', (line) => {
  for (const each of hostileActs(random(Number(seed), received++), JSON.parse(line), era as HostileEra)) act(each)
})
