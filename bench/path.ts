// The path of a call without sockets: bytes of a request in, text of the answer out, with a fake connection behind the
// relay. Real: the parser, the session and its store, the catalog, dispatch, rewriting, the log line. Not in it: HTTP,
// authentication, the transports.

import pino from 'pino'
import { randomBytes } from 'node:crypto'
import { compileConfig } from '../src/config/load.ts'
import {
  classifyMessage,
  endpointName,
  type Request,
  responseMessage,
  type Result,
  tenantId
} from '../src/protocol/messages.ts'
import { parseJson } from '../src/protocol/json.ts'
import type { Client, Upstream } from '../src/protocol/seams.ts'
import { createCallLimits } from '../src/policy/call-limits.ts'
import { createLegacyRelay } from '../src/relay/legacy-relay.ts'
import { createLiveSessions } from '../src/session/live-sessions.ts'
import { createBus } from '../src/session/bus/bus.ts'
import { createSessions } from '../src/session/sessions.ts'
import { createSqliteStore } from '../src/store/sqlite.ts'
import { createSealer } from '../src/store/seal.ts'
import { createServerRequestQuotas } from '../src/upstream/rpc/server-requests.ts'
import type { Pool } from '../src/upstream/pool/pool.ts'
import { median } from './figures.ts'
import type { Section } from './report.ts'
import { toolCall, toolResult } from './messages.ts'

export interface PathOptions {
  /** Measured time for each row; the warm-up comes on top. */
  readonly seconds: number
}

interface Case {
  readonly name: string
  /** Once; resolves with the length of the answer, so that no work can be left out. */
  run(): Promise<number> | number
}

const rounds = 10
const tools = Array.from({ length: 500 }, (_, at) => ({
  name: at === 0 ? 'echo' : `tool_${at}`,
  title: `Tool number ${at}`,
  description: 'Does something useful with the text that it is given, and says how it went.',
  inputSchema: {
    type: 'object',
    properties: { text: { type: 'string', description: 'What to work on.' }, limit: { type: 'integer' } },
    required: ['text']
  }
}))
const large: Result = { content: [{ type: 'text', text: 'Line of a large document.\n'.repeat(4_000) }], isError: false }

export async function pathOfACall({
  seconds
}: PathOptions): Promise<{ section: Section; figures: Record<string, unknown> }> {
  const { cases, close } = await prepare()
  const results: Array<{ name: string; usPerCall: number[] }> = []
  for (const one of cases) {
    const count = await calibrate(one, (seconds * 1000) / rounds)
    const usPerCall: number[] = []
    for (let round = 0; round < rounds; round++) usPerCall.push(((await time(one, count)) * 1000) / count)
    results.push({ name: one.name, usPerCall })
  }
  await close()
  return {
    section: {
      head: ['path of a call', 'calls/s', 'us/call', 'lowest', 'highest'],
      rows: results.map(({ name, usPerCall }) => [
        name,
        (1e6 / median(usPerCall)).toFixed(0),
        ...[median(usPerCall), Math.min(...usPerCall), Math.max(...usPerCall)].map((us) => us.toFixed(2))
      ]),
      notes: [`${rounds} rounds, one call after the other; median, lowest and highest round.`]
    },
    figures: Object.fromEntries(
      results.map(({ name, usPerCall }) => [
        name,
        { usPerCall: median(usPerCall), lowest: Math.min(...usPerCall), highest: Math.max(...usPerCall) }
      ])
    )
  }
}

/** Warms the code up and says how many calls fill the time of a round. */
async function calibrate(one: Case, roundMs: number): Promise<number> {
  let count = 50
  for (;;) {
    const ms = await time(one, count)
    if (ms > roundMs) return Math.max(1, Math.round((count * roundMs) / ms))
    count *= 2
  }
}

async function time({ name, run }: Case, count: number): Promise<number> {
  const startedAt = performance.now()
  for (let at = 0; at < count; at++) if ((await run()) === 0) throw new Error(`${name}: no answer`)
  return performance.now() - startedAt
}

async function prepare(): Promise<{ cases: Case[]; close: () => Promise<void> }> {
  const config = JSON.stringify({
    tenants: {
      bench: {
        auth: { keys: [{ name: 'bench', key: 'gh_bench_key_0123456789abcdef' }] },
        upstreams: { fake: { type: 'http', url: 'http://127.0.0.1:1/mcp' } }
      }
    }
  })
  const snapshot = compileConfig(config, { path: 'bench.json', env: {} })
  const tenant = snapshot.tenants.get(tenantId('bench'))
  const endpoint = tenant?.endpoints.get(endpointName('default'))
  if (tenant === undefined || endpoint === undefined) throw new Error('the configuration of the bench has no endpoint')
  const place = { snapshot, tenant, endpoint }

  const clock = {
    now: () => performance.timeOrigin + performance.now(),
    timer: (ms: number, run: () => void) => setTimeout(run, ms)
  }
  const log = pino({ level: 'info', base: null }, { write() {} })
  const store = await createSqliteStore({ path: ':memory:', clock, log })
  const sessions = await createSessions({ store, clock, randomBytes, snapshot: () => snapshot, node: 'bench', log })
  const live = createLiveSessions(clock, 'bench')
  const upstream = fakeUpstream()
  const pool: Pool = {
    acquire: async () => upstream,
    connect: async () => upstream,
    endSession: async () => {},
    touch() {},
    lent: () => true,
    peek: () => undefined,
    use: () => upstream,
    find: () => undefined,
    stderrOf: () => [],
    statesOf: () => [],
    stateOf: () => ({
      connections: 1,
      calls: 0,
      transport: undefined,
      revisions: [],
      lastLine: undefined,
      awayMs: undefined,
      retriedInMs: undefined,
      lastError: undefined
    }),
    release: async () => {},
    renew() {},
    retain() {},
    leave() {},
    close: async () => {},
    destroy() {}
  }
  const runtime = {
    clock,
    wall: clock,
    random: Math.random,
    newId: () => randomBytes(16).toString('base64url'),
    clientInfo: { name: 'gatehouse', version: '0' },
    log,
    observers: { clock, log },
    callLimits: createCallLimits({ store, clock, wall: clock, node: 'here', log })
  }
  const sealer = await createSealer({ store, randomBytes, timer: clock.timer, log })
  const relay = createLegacyRelay({
    runtime,
    pool,
    store,
    sealer,
    bus: await createBus({ store, sealer, node: 'bench', clock, log }),
    serverRequestQuotas: createServerRequestQuotas(),
    sessions,
    live,
    contextOf: Object.assign(() => place, { load: () => Promise.resolve(place) })
  })
  await relay.warm(place)

  const principal = {
    kind: 'key' as const,
    tenant: tenant.id,
    issuer: 'urn:gatehouse:key',
    subject: 'bench',
    clientId: 'bench',
    scopes: new Set<string>(),
    groups: [],
    roles: [],
    expiresAt: undefined
  }
  const owner = {
    tenant: tenant.id,
    issuer: principal.issuer,
    subject: principal.subject,
    clientId: principal.clientId
  }
  const { id } = await sessions.open(owner, endpoint.name, {
    revision: '2025-11-25',
    clientInfo: undefined,
    capabilities: {}
  })
  const client: Client = {
    era: 'legacy',
    capabilities: {},
    notify() {},
    ask: () => Promise.reject(new Error('nobody is asked'))
  }

  async function answer(body: Buffer): Promise<number> {
    const message = classifyMessage(parseJson(body))
    if (message.kind !== 'request') throw new Error('not a request')
    const session = await sessions.load(id, owner, endpoint?.name ?? endpointName(''))
    if (session === undefined) throw new Error('the session is gone')
    const { signal } = new AbortController()
    const result = await relay.call({
      ...place,
      request: message.request,
      principal,
      session: live.use(session),
      client,
      signal
    })
    return JSON.stringify(responseMessage(message.id, result)).length
  }
  const call = (name: string, text: string): Case => {
    const body = Buffer.from(text)
    return { name, run: () => answer(body) }
  }
  const small = Buffer.from(toolCall(1, 'fake__echo'))
  return {
    cases: [
      call('tools/call, small', toolCall(1, 'fake__echo')),
      call('tools/call, 100 KiB result', toolCall(1, 'fake__tool_1')),
      call('tools/list, 500 tools', JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })),
      { name: 'parse and classify, small', run: () => classifyMessage(parseJson(small)).kind.length }
    ],
    async close() {
      relay.close()
      live.close()
      await sessions.close()
      await store.close()
    }
  }
}

/** Answers at once, from memory. */
function fakeUpstream(): Upstream {
  const answers: Record<string, (request: Request) => unknown> = {
    'tools/list': () => ({ tools }),
    'tools/call': ({ params }) => (params?.['name'] === 'echo' ? toolResult(params) : large)
  }
  return {
    id: 'fake',
    name: 'fake' as Upstream['name'],
    era: 'legacy',
    revision: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'fake', version: '0' },
    instructions: undefined,
    request: async (request) => answers[request.method]?.(request) as Result,
    notify() {},
    close: async () => {},
    destroy() {}
  }
}
