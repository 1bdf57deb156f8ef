// Which attacks a slice of the run combines: several kinds by callers and several by upstreams, chosen with the seed.

import { random, type Random } from '../../fuzz/random.ts'
import { memoryAttacks } from '../memory-attacks.ts'
import { connectionAttacks } from './connection-attacks.ts'
import { callFloods, listFloods } from './floods.ts'
import { messageAttacks } from './message-attacks.ts'

const httpKinds = [
  'retryAfter',
  'neverEnds',
  'tinyChunks',
  'forgets',
  'refuses',
  'resets',
  'headers',
  'extraAnswers',
  'inputRequests'
] as const
const processKinds = ['crashes', 'exits', 'floodsErrors', 'isDeaf', 'staysOn', 'forks', 'grows', 'endsOutput'] as const

export type HttpKind = (typeof httpKinds)[number]
export type ProcessKind = (typeof processKinds)[number]

const floodKinds = [...Object.keys(callFloods), ...Object.keys(listFloods)]
const serverKinds = {
  http: [...floodKinds, ...httpKinds],
  stdio: [...floodKinds, ...processKinds]
} as const

/** Names of upstreams, and of the endpoint with nothing but that one. */
const nameOf = (transport: string, kind: string): string => `${transport}-${kind.toLowerCase()}`

/** @param origin of the hostile servers over HTTP */
export function hostileUpstreams(origin: string, seed: number): Record<string, object> {
  const stdioServer = new URL('attack-stdio-server.ts', import.meta.url).pathname
  const http = serverKinds.http.map(
    (kind) => [nameOf('http', kind), { type: 'http', url: `${origin}/${kind}` }] as const
  )
  const stdio = serverKinds.stdio.map((kind) => {
    const args = [stdioServer, kind, String(seed)]
    return [nameOf('stdio', kind), { command: process.execPath, args }] as const
  })
  return Object.fromEntries([...http, ...stdio])
}

export const callerAttacks = { ...connectionAttacks, ...messageAttacks }

const allUpstreams = Object.keys(hostileUpstreams('', 0))

export interface Slice {
  readonly number: number
  /** Names of attacks by callers. */
  readonly callers: readonly string[]
  /** Names of attacks on the memory. */
  readonly memory: readonly string[]
  /** Names of upstreams that attack whoever uses them. */
  readonly upstreams: readonly string[]
  /** Attackers of each of these. */
  readonly crowd: number
}

function some(chance: Random, from: readonly string[], count: number): string[] {
  const left = [...from]
  return Array.from({ length: count }, () => left.splice(chance.below(left.length), 1)[0] ?? '')
}

export function sliceOf(seed: number, number: number): Slice {
  const chance = random(seed, number)
  return {
    number,
    callers: some(chance, Object.keys(callerAttacks), 3 + chance.below(3)),
    memory: some(chance, Object.keys(memoryAttacks), chance.below(3)),
    upstreams: some(chance, allUpstreams, 2 + chance.below(3)),
    crowd: 2 + chance.below(4)
  }
}
