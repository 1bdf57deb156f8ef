// How calls end, in all the places that say so: the table of the documents, the type of the code, the labels of the
// metrics, the alerts and dashboards, the console. None has a value that the others do not know.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import pino from 'pino'
import t from 'tap'
import { observe, type CallRecord } from '../../src/observe/calls.ts'
import { noteFailure } from '../../src/observe/call-notes.ts'
import { createMetrics } from '../../src/observe/metrics/metrics.ts'
import { outcomesOfPersons, ownOutcomes } from '../../src/observe/outcomes.ts'
import { errorTable, type ErrorCode } from '../../src/protocol/error-table.ts'
import { GatewayError, RpcError, rpcCodeOf } from '../../src/protocol/messages.ts'
import { wallClock } from '../../src/time/clock.ts'

const read = (path: string): string => readFileSync(join(import.meta.dirname, '../..', path), 'utf8')
const reasons = Object.keys(errorTable) as ErrorCode[]
const outcomes: readonly string[] = [...ownOutcomes, ...reasons]

/** What stands in the first column of the table whose head begins so. */
function namesIn(page: string, head: string): string[] {
  const [, table = ''] = read(page).split(`\n| ${head} |`)
  const [rows = ''] = table.split('\n\n')
  return [...rows.matchAll(/^\| `([a-z_]+)` \|/gm)].map(([, name = '']) => name)
}

t.test('the documents have the outcomes of the code, each once', async (t) => {
  t.same(namesIn('docs/errors.md', 'reason').toSorted(), reasons.toSorted())
  const [told, own] = [namesIn('docs/logging.md', 'outcome'), [...ownOutcomes, 'cancelled']]
  t.same(told.toSorted(), own.toSorted(), 'and "any other" is one of errors.md')
  t.match(read('docs/logging.md'), /^\| any other \|.*\[errors\.md\]/m)
  const [, row = ''] = /^\| `outcome`, `code` \| (.*) \|$/m.exec(read('docs/audit.md')) ?? []
  const named = [...row.matchAll(/`([a-z_]+)`(?!\))/g)].map(([, name]) => name)
  t.same(new Set(named), new Set<string | undefined>(ownOutcomes))
})

t.test(
  'alerts, dashboards and the console name outcomes that there are, and the same ones as no failure',
  async (t) => {
    const files = ['prometheus/alerts.yml', ...['overview', 'tenant', 'upstream'].map((name) => `grafana/${name}.json`)]
    const named = files.flatMap((file) =>
      [...read(`deploy/${file}`).matchAll(/gatehouse_(?:outcome|reason)[!=]=?~?\\?"([^"\\]+)/g)].map(
        ([, text = '']) => text
      )
    )
    t.ok(named.length > 3, 'there are some')
    const unknown = named
      .flatMap((text) => text.split('|'))
      .filter((each) => !outcomes.some((outcome) => new RegExp(`^(?:${each})$`).test(outcome)))
    t.same(unknown, [])
    const noFailure = named.filter((text) => text.split('|').includes('cancelled'))
    t.ok(noFailure.length > 0)
    for (const each of noFailure) t.same(new Set(each.split('|')), outcomesOfPersons, each)
    const [, marked = ''] = /const ofPersons = new Set\(\[(.*?)\]\)/.exec(read('src/console/parts/notice.js')) ?? []
    t.same(new Set(['ok', ...[...marked.matchAll(/'(\w+)'/g)].map(([, name]) => name)]), outcomesOfPersons)
  }
)

t.test('metrics count each outcome under its name, and by an error.type of the documents', async (t) => {
  const options = { resource: {}, version: '0', database: 'memory', clock: wallClock, wall: wallClock }
  const metrics = createMetrics(options)
  t.teardown(() => metrics.close())
  const observers = { clock: wallClock, log: pino({ level: 'silent' }), metrics }
  const call = (run: (record: CallRecord) => unknown): Promise<unknown> => {
    const record: CallRecord = { id: 1, requestId: 'r', bodyBytes: 2 }
    const [request, principal] = [{ method: 'ping' }, { kind: 'key', issuer: '', subject: 'a', clientId: 'a' }]
    const whose = {
      tenant: { id: 'acme', audit: { required: false, arguments: false, redact: [] }, logSample: undefined },
      endpoint: { name: 'default' }
    }
    const running = observe({ ...whose, request, principal, record }, observers, async () => run(record))
    return running.catch(() => undefined)
  }
  const thrown = (error: Error) => () => {
    throw error
  }
  await call(() => 'ok')
  await call((record) => (record.failure = { code: 'tool_error' }))
  await call((record) => noteFailure(record, 'result_too_large', 'too long'))
  await call(thrown(new RpcError({ code: -32_050, message: 'no' })))
  await call((record) => {
    record.denied = 'default'
    throw new GatewayError('invalid_params', 'Unknown tool')
  })
  for (const reason of reasons) await call(thrown(new GatewayError(reason, reason)))
  await call(thrown(new TypeError('a fault')))

  const nothing = { counts: {}, processMemory: new Map(), caches: {}, running: new Map([['acme', 0]]), upstreams: [] }
  const { scopeMetrics } = await metrics.collect(nothing)
  const found = scopeMetrics
    .flatMap((scope) => scope.metrics)
    .find(({ descriptor }) => descriptor.name === 'mcp.server.operation.duration')
  const points = (found?.dataPoints ?? []).map(({ attributes }) => attributes)
  t.same(new Set(points.map((each) => each['gatehouse.outcome'])), new Set(outcomes), 'all, and no other')
  const types = new Set(points.map((each) => each['error.type']))
  const codes = [-32_050, ...reasons.filter((each) => each !== 'cancelled').map(rpcCodeOf)].map(String)
  t.same(types, new Set([undefined, 'tool_error', 'cancelled', 'internal', ...codes]))
  for (const each of points) t.equal(each['error.type'] === undefined, each['gatehouse.outcome'] === 'ok')
  const [, sentence = ''] = /- `error\.type` is there (.*?)`gatehouse\.outcome`/s.exec(read('docs/metrics.md')) ?? []
  for (const each of ['tool_error', 'cancelled', 'internal', '_OTHER']) t.ok(sentence.includes(`\`${each}\``), each)
})
