// Our metrics against the semantic conventions of OpenTelemetry, as these stand in open-telemetry/semantic-conventions
// (runtime, process, database) and semantic-conventions-genai (docs/gen-ai/mcp.md): what has a name of theirs has their
// kind, unit, boundaries and attributes, and what is ours has a name of ours.

import t from 'tap'
import { bucketsOf, instruments, type MetricName } from '../../src/observe/metrics/instruments.ts'

interface Convention {
  readonly kind: string
  readonly unit: string
  readonly attributes: readonly string[]
  readonly required?: readonly string[]
  readonly buckets?: readonly number[]
}

const durations = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300]
const ofOperation = [
  ...['mcp.method.name', 'error.type', 'gen_ai.tool.name', 'gen_ai.prompt.name', 'gen_ai.operation.name'],
  ...['rpc.response.status_code', 'mcp.protocol.version', 'mcp.resource.uri', 'jsonrpc.protocol.version'],
  ...['network.transport', 'network.protocol.name', 'network.protocol.version']
]
const ofSession = [
  ...['error.type', 'mcp.protocol.version', 'jsonrpc.protocol.version'],
  ...['network.transport', 'network.protocol.name', 'network.protocol.version']
]
/** Required, required under a condition that calls of the gateway meet, or told of every one. */
const ofAny = [
  ...['mcp.method.name', 'error.type', 'gen_ai.tool.name', 'gen_ai.prompt.name', 'gen_ai.operation.name'],
  ...['rpc.response.status_code', 'mcp.protocol.version']
]
const seconds = { kind: 'histogram', unit: 's' }
const mcp = { ...seconds, buckets: durations }
const ofMethod = { ...mcp, attributes: ofOperation, required: ofAny }
const bytes = { kind: 'upDownCounter', unit: 'By', attributes: [] }
const delay = { kind: 'gauge', unit: 's', attributes: [] }

const conventions: Readonly<Record<string, Convention>> = {
  'mcp.server.operation.duration': ofMethod,
  'mcp.client.operation.duration': { ...ofMethod, attributes: [...ofOperation, 'server.address', 'server.port'] },
  'mcp.server.session.duration': { ...mcp, attributes: ofSession },
  'mcp.client.session.duration': { ...mcp, attributes: [...ofSession, 'server.address', 'server.port'] },
  'db.client.operation.duration': {
    ...seconds,
    attributes: ['db.system.name', 'db.operation.name', 'error.type'],
    required: ['db.system.name'],
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10]
  },
  'process.cpu.time': { kind: 'observableCounter', unit: 's', attributes: ['cpu.mode'] },
  'process.memory.usage': bytes,
  'process.uptime': delay,
  'v8js.gc.duration': {
    ...seconds,
    attributes: ['v8js.gc.type'],
    required: ['v8js.gc.type'],
    buckets: [0.01, 0.1, 1, 10]
  },
  'v8js.memory.heap.used': bytes,
  'v8js.memory.heap.limit': bytes,
  'nodejs.eventloop.delay.p50': delay,
  'nodejs.eventloop.delay.p99': delay,
  'nodejs.eventloop.delay.max': delay,
  'nodejs.eventloop.utilization': { ...delay, unit: '1' }
}

t.test('what has a name of the conventions is what they say', async (t) => {
  for (const name of Object.keys(instruments) as MetricName[]) {
    const { kind, unit, attributes } = instruments[name]
    const wanted = conventions[name]
    if (wanted === undefined) {
      t.match(name, /^gatehouse\.[a-z]+(?:\.[a-z]+)*$/, 'ours')
      continue
    }
    t.same({ kind, unit }, { kind: wanted.kind, unit: wanted.unit }, name)
    const foreign = attributes.filter((each) => !each.startsWith('gatehouse.') && !wanted.attributes.includes(each))
    t.same(foreign, [], `${name}: no attribute but theirs and gatehouse.*`)
    for (const each of wanted.required ?? []) t.ok((attributes as readonly string[]).includes(each), `${name}: ${each}`)
    t.same(bucketsOf[name], wanted.buckets, `${name}: boundaries`)
  }
  t.same(
    Object.keys(conventions).filter((name) => !Object.hasOwn(instruments, name)),
    [],
    'each of these is told'
  )
})
