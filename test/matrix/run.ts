// The whole matrix in one process: ten strict servers, one gateway with an endpoint for each, five clients at each
// endpoint.

import type { Revision } from '../../src/protocol/messages.ts'
import { key } from '../kit/gateway.ts'
import { startHouse } from '../kit/replicas.ts'
import { patienceMs } from '../kit/until.ts'
import { legacyOverHttp, legacyOverSse, legacyOverStdio, type RunningServer } from './transports.ts'
import type { Seen, Transport } from './cell.ts'
import type { MatrixClient } from './client.ts'
import { httpClient, sseClient } from './client-legacy.ts'
import { modernClient } from './client-modern.ts'
import { backFeatures } from './features-back.ts'
import { plainFeatures } from './features-plain.ts'
import { modernOverHttp, modernOverStdio } from './modern-upstream.ts'
import { createMatrixServer, type MatrixServer } from './matrix-server.ts'
import { expected } from './table.ts'

const features = { ...plainFeatures, ...backFeatures }
export const featureNames = Object.keys(features)

export const clients: readonly Revision[] = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28']

export interface Server {
  readonly revision: Revision
  readonly transport: Transport
}

const carriers: ReadonlyArray<Server & { readonly carry: (state: MatrixServer) => Promise<RunningServer> }> = [
  { revision: '2024-11-05', transport: 'stdio', carry: legacyOverStdio },
  { revision: '2024-11-05', transport: 'HTTP+SSE', carry: legacyOverSse },
  ...(['2025-03-26', '2025-06-18', '2025-11-25'] as const).flatMap((revision) => [
    { revision, transport: 'stdio', carry: legacyOverStdio } as const,
    { revision, transport: 'Streamable HTTP', carry: legacyOverHttp } as const
  ]),
  { revision: '2026-07-28', transport: 'stdio', carry: modernOverStdio },
  { revision: '2026-07-28', transport: 'Streamable HTTP', carry: modernOverHttp }
]
export const servers: readonly Server[] = carriers.map(({ revision, transport }) => ({ revision, transport }))

export interface Ran extends Server {
  readonly client: Revision
  readonly feature: string
  /** Undefined where the cell was neither right nor properly refused. */
  readonly seen: Seen | undefined
  /** What was wrong: of the cell itself, with what the server got, with what the client got. */
  readonly faults: readonly string[]
  readonly ms: number
}

export interface Only {
  readonly client?: string | undefined
  readonly server?: string | undefined
  readonly feature?: string | undefined
  /** Through so many processes. */
  readonly replicas?: number
}

/** What is wrong with a cell, in sentences. */
export function wrong({ client, revision, transport, feature, seen, faults }: Ran): string[] {
  const due = expected(feature, client, revision, transport)
  if (due === undefined) return ['the table has no rule for it']
  if (seen === undefined) return [...faults]
  const shown = ({ kind, error }: { kind: string; error?: unknown }): string =>
    error === undefined ? kind : `${kind} (${String(error)})`
  return shown(seen) === shown(due) ? [...faults] : [`it is ${shown(seen)} and should be ${shown(due)}`, ...faults]
}

/** Runs every cell once, or those that fit. */
export async function runMatrix(t: { teardown(run: () => unknown): void }, only: Only = {}): Promise<Ran[]> {
  const fits = (wanted: string | undefined, ...names: string[]): boolean =>
    wanted === undefined || names.some((name) => name.startsWith(wanted))
  const wanted = carriers.filter(({ revision, transport }) => fits(only.server, revision, `${revision} ${transport}`))
  const upstreams = await Promise.all(
    wanted.map(async (server, n) => {
      const state = createMatrixServer(server.revision)
      const carried = await server.carry(state)
      return { ...server, state, carried, name: `u${n}` }
    })
  )
  const options = {
    upstreams: Object.fromEntries(upstreams.map(({ name, carried }) => [name, carried.config])),
    endpoints: Object.fromEntries(upstreams.map(({ name }) => [name, { upstreams: [name], prefix: '' }])),
    // The first client waits for its server however slow the machine.
    limits: { pageSize: 6, coldStartMs: 30_000 }
  }
  const made = await startHouse(t, options, only.replicas)
  const ran = await Promise.all(
    upstreams.map(async ({ name, state, revision, transport }) => {
      const cells: Ran[] = []
      // One after the other, so that what a server got belongs to the client that was there.
      for (const client of clients) {
        if (fits(only.client, client))
          cells.push(
            ...(await runPair(made.url(name), client, { revision, transport }, state, (feature) =>
              fits(only.feature, feature)
            ))
          )
      }
      return cells
    })
  )
  await made.close()
  for (const { carried } of upstreams) await carried.close()
  const late = upstreams.flatMap(({ state, revision, transport }) =>
    state.violations.splice(0).map((fault) => `${revision} ${transport}: ${fault}`)
  )
  return late.length === 0
    ? ran.flat()
    : [
        ...ran.flat(),
        { ...(servers[0] as Server), client: '2024-11-05', feature: 'the end', seen: undefined, faults: late, ms: 0 }
      ]
}

const connect = (url: string, revision: Revision): Promise<MatrixClient> =>
  revision === '2026-07-28'
    ? modernClient(url, key)
    : revision === '2024-11-05'
      ? sseClient(url, key, revision)
      : httpClient(url, key, revision)

async function runPair(
  url: string,
  revision: Revision,
  server: Server,
  state: MatrixServer,
  wants: (feature: string) => boolean
): Promise<Ran[]> {
  const cells: Ran[] = []
  const client = await connect(url, revision)
  for (const [feature, run] of Object.entries(features)) {
    if (!wants(feature)) continue
    const token = `${revision} ${server.revision} ${server.transport} ${feature}`
    const began = performance.now()
    const faults: string[] = []
    let seen: Seen | undefined
    try {
      seen = await inTime(run({ client, state, transport: server.transport, token }))
    } catch (error) {
      faults.push(error instanceof Error ? error.message : String(error))
    }
    faults.push(
      ...state.violations.splice(0).map((fault) => `the server got: ${fault}`),
      ...client.violations.splice(0).map((fault) => `the client got: ${fault}`)
    )
    cells.push({ ...server, client: revision, feature, seen, faults, ms: performance.now() - began })
  }
  await client.close()
  return cells
}

async function inTime<T>(run: Promise<T>): Promise<T> {
  let late: NodeJS.Timeout | undefined
  try {
    return await Promise.race([
      run,
      new Promise<never>((_resolve, reject) => {
        late = setTimeout(() => reject(new Error(`no end within ${patienceMs} ms`)), patienceMs)
      })
    ])
  } finally {
    clearTimeout(late)
  }
}
