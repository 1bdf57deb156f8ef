// `node attack-stdio-server.ts KIND SEED`: an MCP server over stdio that attacks in answer to calls, or with its lists.

import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { random } from '../../fuzz/random.ts'
import { callFloods, listFloods, politeResult, pour } from './floods.ts'
import type { ProcessKind } from './slices.ts'

type Json = Record<string, unknown>

const [kind = '', seed = '0'] = process.argv.slice(2)
let received = process.pid

const answer = (id: unknown, members: Json): void => {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...members })}\n`)
}

/** Attacks that only a process can make, in answer to a call. */
const processAttacks: Readonly<Record<ProcessKind, () => void>> = {
  crashes: () => process.kill(process.pid, 'SIGKILL'),
  exits: () => process.exit(3),
  floodsErrors: () =>
    void pour(
      process.stderr,
      Array.from({ length: 500 }, () => 'a line of errors\n'.repeat(500))
    ),
  isDeaf: () => void process.stdin.pause(),
  staysOn() {
    process.on('SIGTERM', () => {})
    process.stdin.removeAllListeners()
    setInterval(() => {}, 1_000)
  },
  forks() {
    for (let n = 0; n < 10; n++) spawn('sleep', ['60'], { detached: n % 2 === 0, stdio: 'inherit' })
  },
  grows() {
    const held: Buffer[] = []
    const timer = setInterval(
      () => (held.length < 50 ? void held.push(Buffer.alloc(1_000_000, 1)) : clearInterval(timer)),
      20
    )
  },
  endsOutput: () => void process.stdout.end()
}

const attackOf: Readonly<Record<string, (() => void) | undefined>> = processAttacks

process.stdout.on('error', () => process.exit(0))
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line) as { id?: unknown; method?: unknown; params?: Json }
  if (id === undefined || method === undefined) return
  const chance = random(Number(seed), received++)
  const said = { id, chance, frame: (text: string) => `${text}\n` }
  const flood = method === 'tools/call' ? callFloods[kind] : method === 'tools/list' ? listFloods[kind] : undefined
  if (flood !== undefined) return void pour(process.stdout, flood(said))
  const attack = attackOf[kind]
  if (method === 'tools/call' && attack !== undefined) {
    attack()
    if (kind !== 'forks' && kind !== 'grows') return
  }
  if (method === 'initialize' && kind === 'exits' && chance.chance(0.5)) process.exit(4)
  const result = method === 'tools/call' ? { content: [] } : politeResult(method, params ?? {})
  answer(id, result === undefined ? { error: { code: -32601, message: 'Method not found' } } : { result })
})
