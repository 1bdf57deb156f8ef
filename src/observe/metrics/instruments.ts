// Every metric of the gateway: its name, kind, unit and attributes. docs/metrics.md and its test follow from this
// table.
// Names and attributes are those of the OpenTelemetry semantic conventions where these have them:
// https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/, …/runtime/nodejs-metrics/, …/runtime/v8js-metrics/ and
// …/system/process-metrics/; `gatehouse.*` is ours.

interface Instrument {
  /** `gauge` and `upDownCounter` are read when somebody asks for them. */
  readonly kind: 'histogram' | 'counter' | 'observableCounter' | 'gauge' | 'upDownCounter'
  /** UCUM, as OpenTelemetry writes units. */
  readonly unit: string
  readonly description: string
  readonly attributes: readonly string[]
}

const ofCall = [
  ...(['mcp.method.name', 'gen_ai.tool.name', 'gen_ai.prompt.name', 'gen_ai.operation.name'] as const),
  ...(['error.type', 'rpc.response.status_code', 'mcp.protocol.version'] as const)
] as const
const ofUpstream = ['gatehouse.tenant', 'gatehouse.upstream'] as const

export const instruments = {
  'mcp.server.operation.duration': {
    kind: 'histogram',
    unit: 's',
    description: 'From the end of the body of a request to its answer.',
    attributes: [...ofCall, 'gatehouse.endpoint', ...ofUpstream, 'gatehouse.outcome']
  },
  'mcp.client.operation.duration': {
    kind: 'histogram',
    unit: 's',
    description: 'From when a request is sent to an upstream until that has answered.',
    attributes: [...ofCall, 'network.transport', ...ofUpstream]
  },
  'mcp.server.session.duration': {
    kind: 'histogram',
    unit: 's',
    description: 'From the initialize of a session until its client ended it, or used it last and left it to expire.',
    attributes: ['mcp.protocol.version', 'gatehouse.tenant', 'gatehouse.endpoint']
  },
  'mcp.client.session.duration': {
    kind: 'histogram',
    unit: 's',
    description: 'From when a connection to an upstream was open until it ended.',
    attributes: ['network.transport', 'error.type', ...ofUpstream]
  },
  'db.client.operation.duration': {
    kind: 'histogram',
    unit: 's',
    description: 'How long the store took to answer.',
    attributes: ['db.system.name', 'db.operation.name', 'error.type']
  },
  'gatehouse.requests.refused': {
    kind: 'counter',
    unit: '{request}',
    description: 'Requests that were refused before they became a call.',
    attributes: ['gatehouse.reason', 'gatehouse.tenant']
  },
  'gatehouse.limits.hit': {
    kind: 'counter',
    unit: '{request}',
    description: 'Requests and calls that a limit has refused.',
    attributes: ['gatehouse.reason', 'gatehouse.tenant']
  },
  'gatehouse.cache.requests': {
    kind: 'observableCounter',
    unit: '{request}',
    description:
      'How often something remembered was asked for, and whether it was there: `credentials`, and `catalogs`, which ' +
      'are merged lists.',
    attributes: ['gatehouse.cache', 'gatehouse.result']
  },
  'gatehouse.snapshot.version': {
    kind: 'gauge',
    unit: '{version}',
    description: 'Version of what the admin API has made, as this process has it: replicas have the same one soon.',
    attributes: []
  },
  'gatehouse.telemetry.dropped': {
    kind: 'counter',
    unit: '{item}',
    description: 'Spans, points of metrics and lines of the log that a collector did not get.',
    attributes: ['gatehouse.signal']
  },
  'gatehouse.calls.running': {
    kind: 'upDownCounter',
    unit: '{call}',
    description: 'Calls that run now.',
    attributes: ['gatehouse.tenant']
  },
  'gatehouse.calls.parked': {
    kind: 'upDownCounter',
    unit: '{call}',
    description: 'Calls at upstreams that wait for a client to come back with what it was asked for.',
    attributes: []
  },
  'gatehouse.sessions': {
    kind: 'upDownCounter',
    unit: '{session}',
    description: 'Sessions that this process holds something of.',
    attributes: []
  },
  'gatehouse.streams': {
    kind: 'upDownCounter',
    unit: '{stream}',
    description: 'Streams to clients in every revision, those that are held for a client to resume included.',
    attributes: []
  },
  'gatehouse.connections': {
    kind: 'upDownCounter',
    unit: '{connection}',
    description: 'Connections of clients.',
    attributes: []
  },
  'gatehouse.memory.held': {
    kind: 'upDownCounter',
    unit: 'By',
    description: 'Memory that callers and upstreams make the process hold, as the limits count it.',
    attributes: []
  },
  'gatehouse.connections.limit': {
    kind: 'upDownCounter',
    unit: '{connection}',
    description: 'How many there may be.',
    attributes: []
  },
  'gatehouse.memory.budget': {
    kind: 'upDownCounter',
    unit: 'By',
    description: 'How much that may be.',
    attributes: []
  },
  'gatehouse.tenants': {
    kind: 'upDownCounter',
    unit: '{tenant}',
    description: 'Tenants of the configuration in use.',
    attributes: []
  },
  'gatehouse.processes': {
    kind: 'upDownCounter',
    unit: '{process}',
    description: 'Child processes of stdio upstreams.',
    attributes: []
  },
  'gatehouse.processes.memory': {
    kind: 'upDownCounter',
    unit: 'By',
    description: 'Memory of these, with all that they have started, as it was within the last second or so.',
    attributes: ['gatehouse.tenant']
  },
  'gatehouse.upstream.available': {
    kind: 'gauge',
    unit: '1',
    description: '0 where the upstream could not be reached the last time, else 1.',
    attributes: [...ofUpstream]
  },
  'gatehouse.upstream.silent': {
    kind: 'gauge',
    unit: '1',
    description:
      '1 where the upstream answers nothing, so that its calls are refused at once (circuit breaker), else 0.',
    attributes: [...ofUpstream]
  },
  'gatehouse.upstream.connections': {
    kind: 'upDownCounter',
    unit: '{connection}',
    description: 'Open connections to the upstream; of a stdio upstream, its processes that have started.',
    attributes: [...ofUpstream]
  },
  'gatehouse.upstream.calls': {
    kind: 'upDownCounter',
    unit: '{call}',
    description: 'Requests that the upstream has not answered yet.',
    attributes: [...ofUpstream]
  },
  'process.cpu.time': {
    kind: 'observableCounter',
    unit: 's',
    description: 'CPU time of the gateway process.',
    attributes: ['cpu.mode']
  },
  'process.memory.usage': {
    kind: 'upDownCounter',
    unit: 'By',
    description: 'Resident set of the gateway process, without its children.',
    attributes: []
  },
  'process.uptime': {
    kind: 'gauge',
    unit: 's',
    description: 'Since the process started.',
    attributes: []
  },
  'v8js.memory.heap.used': {
    kind: 'upDownCounter',
    unit: 'By',
    description: 'Heap in use.',
    attributes: []
  },
  'v8js.memory.heap.limit': {
    kind: 'upDownCounter',
    unit: 'By',
    description: 'What the heap may grow to.',
    attributes: []
  },
  'v8js.gc.duration': {
    kind: 'histogram',
    unit: 's',
    description: 'Pauses for garbage collection.',
    attributes: ['v8js.gc.type']
  },
  'nodejs.eventloop.delay.p50': {
    kind: 'gauge',
    unit: 's',
    description: 'How late the event loop was, median since it was asked for last.',
    attributes: []
  },
  'nodejs.eventloop.delay.p99': {
    kind: 'gauge',
    unit: 's',
    description: 'The same, 99th percentile.',
    attributes: []
  },
  'nodejs.eventloop.delay.max': {
    kind: 'gauge',
    unit: 's',
    description: 'The same, maximum.',
    attributes: []
  },
  'nodejs.eventloop.utilization': {
    kind: 'gauge',
    unit: '1',
    description: 'Part of the time in which the event loop was busy, since the process started.',
    attributes: []
  }
} as const satisfies Readonly<Record<string, Instrument>>

export type MetricName = keyof typeof instruments

/** Of `mcp.*` and `db.*`, as the conventions advise, and of pauses; in seconds. */
export const bucketsOf: Readonly<Partial<Record<MetricName, number[]>>> = {
  'mcp.server.operation.duration': [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300],
  'mcp.client.operation.duration': [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300],
  'mcp.server.session.duration': [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300],
  'mcp.client.session.duration': [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300],
  'db.client.operation.duration': [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10],
  'v8js.gc.duration': [0.01, 0.1, 1, 10]
}
