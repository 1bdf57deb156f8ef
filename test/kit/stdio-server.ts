// The scripted server as a child process: `node stdio-server.ts [JSON]`, where the JSON is a `Script` and may also say
// `banner` (written to standard output first), `deaf` (never reads), `stubborn` (ignores the end of its input and
// TERM), `die` (exit code, at once), `dieAfterMs`.

import { createInterface } from 'node:readline'
import { createMcpServer, type Json, type Peer, type Script } from './mcp-server.ts'

interface Options extends Script {
  readonly banner?: string
  readonly deaf?: boolean
  readonly stubborn?: boolean
  readonly die?: number
  readonly dieAfterMs?: number
}

const options = JSON.parse(process.argv[2] ?? '{}') as Options
const server = createMcpServer(options)
const write = (message: Json): void => {
  process.stdout.write(`${JSON.stringify(message)}\n`)
}
const peer: Peer = {
  reply: write,
  push: write,
  exit: (code) => process.exit(code),
  raw: (text) => {
    process.stdout.write(text)
  }
}

if (options.die !== undefined) {
  process.stderr.write('cannot start: bad configuration\n')
  process.exit(options.die)
}
if (options.banner !== undefined) process.stdout.write(options.banner)
if (options.dieAfterMs !== undefined) setTimeout(() => process.exit(3), options.dieAfterMs)
if (options.stubborn === true) {
  process.on('SIGTERM', () => {})
  setInterval(() => {}, 1_000)
}

let handshakes = 0
const input = createInterface({ input: process.stdin })
input.on('line', (line) => {
  server.receive(JSON.parse(line) as Json, peer)
  // Deaf once the handshake is over.
  if (options.deaf === true && ++handshakes === 2) {
    input.pause()
    process.stdin.pause()
    setInterval(() => {}, 1_000)
  }
})
