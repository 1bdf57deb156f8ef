// Does the time of an answer tell a denied name from one that nobody has? One caller, one connection, one call after
// the other, in an order by chance: a denied tool, an unknown one, and, so that it is seen what this measure can tell, an
// allowed one. `npm run bench -- --only denied`.

import { randomInt } from 'node:crypto'
import { Pool } from 'undici'
import { median, quantile } from './figures.ts'
import type { Section } from './report.ts'
import { apiKey, createStage } from './stage.ts'

const calls = 30_000
const warmUp = 5_000
/** As long as each other. */
const names = { denied: 'json__echo', unknown: 'json__ohce', allowed: 'free__echo' } as const
type Kind = keyof typeof names
const kinds = Object.keys(names) as Kind[]

/** How often a sample of one is larger than one of the other, ties by half: 0.5 where they are alike (Mann-Whitney). */
export function shareLarger(some: readonly number[], others: readonly number[]): number {
  const all = [...some.map((ms) => ({ ms, own: true })), ...others.map((ms) => ({ ms, own: false }))]
  all.sort((a, b) => a.ms - b.ms)
  let [ranks, at] = [0, 0]
  while (at < all.length) {
    let end = at
    while (end < all.length && all[end]?.ms === all[at]?.ms) end++
    // Ranks begin at one; those who are alike have their middle.
    for (let each = at; each < end; each++) if (all[each]?.own === true) ranks += (at + 1 + end) / 2
    at = end
  }
  return (ranks - (some.length * (some.length + 1)) / 2) / (some.length * others.length)
}

export async function denied(): Promise<{ section: Section; figures: Record<string, unknown> }> {
  const stage = await createStage()
  try {
    const upstream = await stage.peer('peers/upstream.ts', 'ends')
    const server = { type: 'http', url: `${upstream.origin}/legacy/20` }
    const gateway = await stage.gateway('denied', {
      audit: {},
      tenants: {
        bench: {
          auth: { keys: [{ name: 'bench', key: apiKey }] },
          upstreams: { json: server, free: server },
          policy: {
            default: 'allow',
            rules: [{ name: 'no-echo', effect: 'deny', what: { upstreams: ['json'], names: ['echo'] } }]
          }
        }
      }
    })
    const client = new Pool(gateway.origin, { connections: 1, pipelining: 1 })
    const ms: Record<Kind, number[]> = { denied: [], unknown: [], allowed: [] }
    for (let at = 0; at < calls; at++) {
      const kind = kinds[randomInt(kinds.length)] ?? 'denied'
      const sample = await time(client, names[kind], kind === 'allowed')
      if (at >= warmUp) ms[kind].push(sample)
    }
    await client.close()
    return {
      section: {
        head: ['answer to a name that is', 'p25 ms', 'p50 ms', 'p75 ms', 'slower than an unknown one, %'],
        rows: kinds.map((kind) => [
          kind,
          ...[0.25, 0.5, 0.75].map((share) => quantile(ms[kind], share).toFixed(4)),
          (shareLarger(ms[kind], ms.unknown) * 100).toFixed(1)
        ]),
        notes: [
          `${ms.denied.length} and ${ms.unknown.length} calls; 50 % is what chance alone gives, give or take ` +
            `${(100 * Math.sqrt((ms.denied.length + ms.unknown.length + 1) / (12 * ms.denied.length * ms.unknown.length))).toFixed(1)}.`
        ]
      },
      figures: Object.fromEntries(
        kinds.map((kind) => [kind, { ms: median(ms[kind]), slower: shareLarger(ms[kind], ms.unknown) }])
      )
    }
  } finally {
    await stage.close()
  }
}

async function time(client: Pool, name: string, isAllowed: boolean): Promise<number> {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {}
  }
  const params = { name, arguments: { text: 'x' }, _meta: meta }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  const began = performance.now()
  const answer = await client.request({
    method: 'POST',
    path: '/t/bench/mcp',
    headers: {
      authorization: `Bearer ${apiKey}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': name
    },
    body
  })
  const text = await answer.body.text()
  const took = performance.now() - began
  if (text.includes('"result"') !== isAllowed || !text.includes(isAllowed ? '"result"' : 'Unknown tool'))
    throw new Error(`${name}: ${answer.statusCode} ${text.slice(0, 300)}`)
  return took
}
