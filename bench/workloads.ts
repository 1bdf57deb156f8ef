// The workloads: what clients do, at which gateway, and what its cost is compared with.

import { join } from 'node:path'
import { findCores } from './cpu.ts'
import type { Target } from './load/operations.ts'
import { pinned, tenantAuth, type Stage } from './stage.ts'

type Json = Readonly<Record<string, unknown>>

/** One way from the load to a server, measured in turn with the others of its workload. */
export interface Way {
  /** `direct`: nothing in between; a proxy; or the name of a gateway. */
  readonly via: string
  readonly path: string
  readonly client: Pick<Target, 'kind' | 'tool'>
  readonly token?: 'jwt' | 'key' | 'opaque'
  readonly sessions?: number
  /** The other replica, which owns what is asked for; its CPU time counts, too. */
  readonly owner?: string
}

export interface Workload {
  readonly name: string
  readonly what: string
  readonly connections: number
  /** The first is the reference, the last is what the aim is about. */
  readonly ways: readonly Way[]
  /** Ratio to the reference. */
  readonly aim: number
  readonly least: number
  /** What the reference is, where it is not the bare proxy. */
  readonly of?: string
  /** Of a round: where one operation takes long. */
  readonly times?: { readonly warmMs: number; readonly ms: number }
  /** Open loop, at half of what the last way can do. */
  readonly open?: true
  readonly redis?: true
  /** Configurations by name; default: one gateway with all that the others need. */
  readonly gateways?: (stage: Stage, upstream: string) => Readonly<Record<string, Json>>
}

const many = { tenants: 1_000, tools: 10_000, sessions: 10_000, rules: 10_000 }
type Grown = keyof typeof many

const call = { kind: 'call', tool: 'echo' } as const
const modernCall = { kind: 'modern-call', tool: 'echo' } as const
const large = { kind: 'call', tool: 'large' } as const
const progress = { kind: 'call', tool: 'progress' } as const
const list = { kind: 'list', tool: 'echo' } as const
const life = { kind: 'life', tool: 'echo' } as const
const task = { kind: 'task', tool: 'echo' } as const

const legacyPath = '/legacy/4'
const modernPath = '/modern/4'
const endpoint = (name?: string): string => (name === undefined ? '/t/bench/mcp' : `/t/bench/${name}/mcp`)
const gateway = (client: Way['client'], name?: string): Way => ({ via: 'gateway', path: endpoint(name), client })
const references = (client: Way['client'], path: string): Way[] => [
  { via: 'bare', path, client },
  { via: 'fastify', path, client }
]
const small = { connections: 32, ways: [...references(call, legacyPath), gateway(call)], aim: 1.3, least: 1.9 }

export const workloads: readonly Workload[] = [
  { name: 'W1', what: 'small tools/call in a 2025-11-25 session, JWT', ...small },
  {
    ...small,
    name: 'W1-key',
    what: 'the same with an API key',
    ways: [...references(call, legacyPath), { ...gateway(call), token: 'key' }]
  },
  { ...small, name: 'W1-open', what: 'W1 at a fixed rate, half of what the gateway can do', open: true },
  {
    ...small,
    name: 'one',
    what: 'W1 over one connection',
    connections: 1,
    ways: [...references(call, legacyPath), { via: 'direct', path: legacyPath, client: call }, gateway(call)]
  },
  {
    name: 'W2',
    what: 'tools/list, 5 upstreams x 20 tools; reference: one list of as many',
    connections: 32,
    ways: [...references(list, '/legacy/100'), gateway(list, 'lists')],
    aim: 0.35,
    least: 0.5
  },
  {
    name: 'W3',
    what: 'tools/call with a result of 64 KiB',
    connections: 32,
    ways: [...references(large, legacyPath), gateway(large)],
    aim: 1.2,
    least: 1.8
  },
  {
    name: 'W4',
    what: 'initialize, initialized, one call, DELETE',
    connections: 32,
    ways: [...references(life, legacyPath), gateway(life)],
    aim: 1.6,
    least: 2.5
  },
  {
    name: 'W5',
    what: '200 calls at once of 500 ms with 10 progress events each',
    connections: 200,
    ways: [...references(progress, legacyPath), gateway(progress)],
    aim: 1.2,
    least: 1.6,
    times: { warmMs: 1_200, ms: 2_000 }
  },
  {
    name: 'W6',
    what: 'small tools/call of 2026-07-28',
    connections: 32,
    ways: [...references(modernCall, modernPath), gateway(modernCall, 'modern')],
    aim: 1.3,
    least: 1.9
  },
  {
    name: 'W8',
    what: 'W1 to a shared stdio server; reference: HTTP',
    connections: 32,
    ways: [...references(call, legacyPath), gateway(call, 'stdio')],
    aim: 1,
    least: 1.5
  },
  {
    name: 'W8-modern',
    what: 'W6 to a shared stdio server; reference: HTTP',
    connections: 32,
    ways: [...references(modernCall, modernPath), gateway(modernCall, 'stdio-modern')],
    aim: 1,
    least: 1.5
  },
  {
    name: 'W9',
    what: 'client of 2026-07-28 at a 2025-11-25 server',
    connections: 32,
    of: 'W6',
    ways: [gateway(modernCall, 'modern'), gateway(modernCall)],
    aim: 1.1,
    least: 1.4
  },
  {
    name: 'W9-reverse',
    what: 'session of 2025-11-25 at a 2026-07-28 server',
    connections: 32,
    of: 'W1',
    ways: [gateway(call), gateway(call, 'modern')],
    aim: 1.1,
    least: 1.4
  },
  ...(['tenants', 'tools', 'sessions', 'rules'] as const).map((what) => growth(what, [what], 1.1)),
  growth('together', ['tenants', 'tools', 'rules'], 1.05),
  limited(),
  introspected(),
  traced(),
  audited('audit', 'W1 with the audit log in the store', false),
  audited('audit-required', 'the same, each call answered after its record', true),
  acrossReplicas('replica', 'tasks/get at a replica that has to ask another one, over Redis; CPU of both', task),
  {
    ...acrossReplicas(
      'hop',
      'a call of a session that lives at another replica, at a server over HTTP; CPU of both',
      call,
      [{ via: 'bare-b', path: legacyPath, client: call, owner: 'bare-a' }]
    ),
    // It is sent from there, in the session that the other one has.
    aim: 1.1,
    least: 1.4
  }
]

function acrossReplicas(name: string, what: string, client: Way['client'], between: readonly Way[] = []): Workload {
  return {
    name,
    what,
    connections: 32,
    of: 'W1',
    redis: true,
    ways: [
      { via: 'b', path: endpoint(), client: call },
      ...between,
      { via: 'b', path: endpoint(), client, owner: 'a' }
    ],
    aim: 2,
    least: 2.5,
    gateways: (stage, upstream) => ({ a: usual(stage, upstream), b: usual(stage, upstream) })
  }
}

function growth(name: string, grows: readonly Grown[], least: number): Workload {
  const has = (what: Grown): boolean => grows.includes(what)
  const grown: Way = { via: 'grown', path: endpoint(), client: call }
  return {
    name,
    what: `W1 with ${grows.map((what) => `${many[what].toLocaleString('en')} ${what}`).join(', ')}`,
    connections: 32,
    of: 'W1',
    ways: [{ ...grown, via: 'small' }, has('sessions') ? { ...grown, sessions: many.sessions } : grown],
    aim: 1.02,
    least,
    gateways: (stage, upstream) => {
      const one = { upstreams: { json: http(upstream, legacyPath) }, ...(has('rules') && { policy: policyOf(1) }) }
      const tenants = Array.from({ length: many.tenants - 1 }, (_, at) => [`other-${at}`, tenantOf(stage, one)])
      const lists = Array.from({ length: 5 }, (_, at) => [`list${at}`, http(upstream, `/legacy/${many.tools / 5}`)])
      return {
        small: configOf(tenantOf(stage, one)),
        grown: configOf(
          tenantOf(stage, {
            ...one,
            ...(has('tools') && { upstreams: Object.fromEntries(lists) }),
            ...(has('rules') && { policy: policyOf(many.rules) })
          }),
          has('tenants') ? Object.fromEntries(tenants) : {}
        )
      }
    }
  }
}

/** Rules about single names, about patterns and about people, of whom the caller is one. */
function policyOf(rules: number): Json {
  const whats = [{ names: ['echo'] }, { names: ['other*'] }, { upstreams: ['json'], kinds: ['tool'] }]
  const ruleOf = (_: unknown, at: number): Json => ({
    name: `rule-${at}`,
    effect: 'allow',
    ...(at % 4 === 3 && { who: { groups: [`group-${at}`] } }),
    what: at < 3 ? whats[at] : at % 10 === 0 ? { names: [`pattern-${at}-*`] } : { names: [`name-${at}`] }
  })
  return { default: 'deny', rules: Array.from({ length: rules }, ruleOf) }
}

function limited(): Workload {
  const way: Way = { via: 'limited', path: endpoint(), client: call }
  const number = 1_000_000
  const limits = {
    all: { perSecond: number, perMonth: number * 100 },
    person: { per: ['principal'], perMinute: number * 10, perDay: number * 100 },
    tool: { per: ['principal', 'tool'], perSecond: number, concurrent: 10_000 }
  }
  return {
    name: 'limits',
    what: 'W1 within three limits of calls, with five numbers over time',
    connections: 32,
    of: 'W1',
    ways: [{ ...way, via: 'plain' }, way],
    aim: 1.05,
    least: 1.1,
    gateways: (stage, upstream) => {
      const one = { upstreams: { json: http(upstream, legacyPath) } }
      return { plain: configOf(tenantOf(stage, one)), limited: configOf(tenantOf(stage, { ...one, limits })) }
    }
  }
}

/** Once the issuer has said what the token means. */
function introspected(): Workload {
  const way: Way = { via: 'gateway', path: endpoint(), client: call }
  return {
    name: 'opaque',
    what: 'W1 with an opaque token, introspected once in 30 s',
    connections: 32,
    of: 'W1',
    ways: [way, { ...way, token: 'opaque' }],
    aim: 1.02,
    least: 1.05,
    gateways: (stage, upstream) => {
      const { url } = stage.issuer
      const introspection = { url: `${url}/introspect`, clientId: 'bench', clientSecret: 'of-the-bench' }
      const auth = { ...tenantAuth(stage.issuer), issuers: [{ issuer: url, jwksUri: `${url}/jwks`, introspection }] }
      return { gateway: configOf({ auth, upstreams: { json: http(upstream, legacyPath) } }) }
    }
  }
}

/** Against a gateway that tells nothing; what the log and metrics cost alone `observe.ts` says. */
function traced(): Workload {
  const way: Way = { via: 'told', path: endpoint(), client: call }
  return {
    name: 'traces',
    what: 'W1 with a collector that gets the trace of one call in ten, all lines and metrics',
    connections: 32,
    of: 'W1 without a log',
    ways: [{ ...way, via: 'quiet' }, way],
    aim: 1.05,
    least: 1.2,
    gateways: (stage, upstream) => {
      const config = configOf(tenantOf(stage, { upstreams: { json: http(upstream, legacyPath) } }))
      const telemetry = { otlp: { endpoint: stage.collector }, samplePercent: 10 }
      return { quiet: { logLevel: 'error', ...config }, told: { telemetry, ...config } }
    }
  }
}

function audited(name: string, what: string, required: boolean): Workload {
  const way: Way = { via: 'audited', path: endpoint(), client: call }
  return {
    name,
    what,
    connections: 32,
    of: 'W1',
    ways: [{ ...way, via: 'plain' }, way],
    aim: 1.2,
    least: 1.5,
    gateways: (stage, upstream) => {
      const one = { upstreams: { json: http(upstream, legacyPath) } }
      return {
        plain: configOf(tenantOf(stage, one)),
        audited: { audit: {}, ...configOf(tenantOf(stage, { ...one, audit: { required } })) }
      }
    }
  }
}

const http = (upstream: string, path: string): Json => ({ type: 'http', url: upstream + path })
const tenantOf = ({ issuer }: Stage, rest: Json): Json => ({ auth: tenantAuth(issuer), ...rest })
const configOf = (bench: Json, others: Json = {}): Json => ({
  tenants: { ...others, bench }
})

/** Everything that one tenant needs for all workloads but those of growth. */
export function usual(stage: Stage, upstream: string): Json {
  const stdio = (era: string): Json => {
    const script = join(import.meta.dirname, 'peers', 'stdio-upstream.ts')
    const [command, ...args] = pinned(findCores(), 'ends', [process.execPath, script, era, '4'])
    return { type: 'stdio', command, args, era, isolation: 'shared' }
  }
  const lists = Array.from({ length: 5 }, (_, at) => `list${at}`)
  return configOf(
    tenantOf(stage, {
      upstreams: {
        json: http(upstream, legacyPath),
        modern: http(upstream, modernPath),
        process: stdio('legacy'),
        processes: stdio('modern'),
        ...Object.fromEntries(lists.map((name) => [name, http(upstream, '/legacy/20')]))
      },
      endpoints: {
        default: { upstreams: ['json'] },
        modern: { upstreams: ['modern'] },
        stdio: { upstreams: ['process'] },
        'stdio-modern': { upstreams: ['processes'] },
        lists: { upstreams: lists }
      }
    })
  )
}
