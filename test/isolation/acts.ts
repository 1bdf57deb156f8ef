// What somebody does next: of three sorts, by what they cost.

import type { Actor, Acts } from './acting.ts'
import { attacks } from './attacks.ts'
import { batch } from './batches.ts'
import { changes } from './changes.ts'
import { openSession, ordinary } from './ordinary.ts'

const openings: Acts = [['session', openSession]]
const listenings: Acts = ordinary.filter(([kind]) => kind === 'streams')
const batches: Acts = [['batch', batch]]
const acts: Acts = [...ordinary, ...batches, ...attacks, ...changes]

/** Of the acts of a long run: nine tenths of its operations. */
const batchShare = 0.2

/** Each begins or ends something, or goes to the admin API, which lets nobody ask often. */
const slow: ReadonlySet<string> = new Set([
  ...['session', 'end', 'streams', 'HTTP+SSE', 'input of a session', 'subscription'],
  ...['admin API', 'foreign admin API', 'foreign event', 'foreign session']
])
const dear: ReadonlySet<string> = new Set(changes.map(([kind]) => kind))
const ofSort = (sort: ReadonlySet<string>): Acts => acts.filter(([kind]) => sort.has(kind))
const fastActs = [...ordinary, ...attacks].filter(([kind]) => !slow.has(kind))
const [slowActs, dearActs] = [ofSort(slow), ofSort(dear)]

/** Of acts, of which a batch is one: those that begin or end something, and those that change something at every process. */
export interface Shares {
  readonly slow: number
  readonly dear: number
}

/** @param shares undefined: each is as likely as any other */
export function nextAct({ chance, known }: Actor, shares: Shares | undefined): Acts[number] {
  if (known.session === undefined && (shares === undefined || chance.chance(10 * shares.slow)))
    return chance.pick(openings)
  if (shares === undefined) return chance.pick(acts)
  // In a long run nearly everybody listens.
  if ((known.stream === undefined || known.listen === undefined) && chance.chance(5 * shares.slow))
    return chance.pick(listenings)
  const drawn = chance.below(1e9) / 1e9
  if (drawn < shares.dear) return chance.pick(dearActs)
  if (drawn < shares.dear + shares.slow) return chance.pick(slowActs)
  return chance.pick(chance.chance(batchShare) ? batches : fastActs)
}
