// The line of a call is put together from parts that are written once. It says what its fields say, whatever calls came
// before it and whatever strangers put into their names.

import t from 'tap'
import pino from 'pino'
import { callLine, jsonForm, putCall, putEnded } from '../../src/observe/call-text.ts'
import {
  type CallOutcome,
  type CallRecord,
  type CallTrace,
  observe,
  type ObservedCall
} from '../../src/observe/calls.ts'
import { escapedJson, LineBytes } from '../../src/observe/lines/line-bytes.ts'
import { alsoTo } from '../../src/observe/log.ts'
import { createCallAttributes } from '../../src/observe/metrics/call-attributes.ts'
import { createCallSeries } from '../../src/observe/metrics/call-series.ts'
import { createLabelNames } from '../../src/observe/metrics/label-names.ts'
import { createSentSeries, createServedSeries } from '../../src/observe/metrics/known-series.ts'

const audit = { required: false, arguments: false, redact: [] }
const principals = [
  { kind: 'token', issuer: 'https://idp.example.com', subject: 'ada', clientId: 'app' },
  { kind: 'key', issuer: 'urn:gatehouse:key', subject: 'ci "quoted"\n\u2028\ud800', clientId: 'ci' }
]
const routes = [
  { upstream: 'up', name: 'echo' },
  { upstream: 'up', name: 'm\u00fcnchen\\' },
  { upstream: 'other', name: 'x'.repeat(70) },
  undefined
]
const softwares = [{ name: 'host', version: '1' }, { name: 'host', version: '2' }, undefined]
const outcomes: CallOutcome[] = [
  { outcome: 'ok', code: undefined, ms: 1.5, rule: undefined },
  { outcome: 'tool_error', code: undefined, ms: 0, rule: undefined },
  { outcome: 'rpc_error', code: -32_000, ms: 20, rule: 'a "rule"', error: 'line\nbreak' }
]

const trace: CallTrace = {
  traceId: '0af7651916cd43dd8448eb211c80319c',
  spanId: 'b7ad6b7169203331',
  isSampled: true,
  sent: (request) => request,
  again() {},
  answered() {},
  ended() {}
}

/** One after the other, with everything that may differ between two calls. */
function* calls(): Generator<{ call: ObservedCall; ended: CallOutcome }> {
  for (const id of ['acme', 'other'])
    for (const name of ['default', 'second'])
      for (const principal of principals)
        for (const software of softwares)
          for (const revision of ['2025-11-25', '2026-07-28'] as const)
            for (const route of routes)
              for (const method of ['tools/call', 'prompts/get', 'made\u0000up'])
                for (const ended of outcomes) {
                  const many = { requestId: 'an-id', waitMs: 0.26, upstreamMs: 1e21, bodyBytes: 0, answerBytes: 7 }
                  const record: CallRecord = { ...many, software, revision, address: '::1' }
                  if (route !== undefined) record.route = route
                  if (ended.outcome === 'ok') record.trace = trace
                  const session = revision === '2025-11-25' ? { session: 'session:abcdefgh"jkl' } : {}
                  const request = { method, params: {} }
                  const where = { tenant: { id, audit }, endpoint: { name } }
                  yield { call: { ...where, request, principal, record: { ...record, ...session } }, ended }
                }
}

/** What a line has to say, as an object. */
function fieldsOf({ tenant, endpoint, principal, request: { method }, record = {} }: ObservedCall, ended: CallOutcome) {
  const { route, software } = record
  return {
    requestId: record.requestId,
    traceId: record.trace?.traceId,
    tenant: tenant.id,
    endpoint: endpoint.name,
    [principal.kind === 'key' ? 'apiKey' : 'user']: principal.subject,
    client: principal.clientId,
    software: software && `${software.name} ${software.version}`,
    revision: record.revision,
    session: record.session?.slice(-8),
    method,
    upstream: route?.upstream,
    tool: method === 'tools/call' ? route?.name : undefined,
    prompt: method === 'prompts/get' ? route?.name : undefined,
    outcome: ended.outcome,
    code: ended.code,
    rule: ended.rule,
    error: ended.error,
    ms: ended.ms,
    waitMs: Math.round((record.waitMs ?? 0) * 10) / 10,
    upstreamMs: record.upstreamMs,
    bytesIn: record.bodyBytes,
    bytesOut: record.answerBytes,
    address: record.address
  }
}

t.test('the text is what JSON says of the fields, whatever came before', async (t) => {
  let count = 0
  let wrong: string | undefined
  const line = new LineBytes()
  for (const { call, ended } of calls()) {
    putCall(line, call, ended, jsonForm)
    const [text, expected] = [String(line.take()), JSON.stringify(fieldsOf(call, ended))]
    if (`{${text.slice(1)}}` !== escapedJson(expected)) wrong ??= `${text} is not ${expected}`
    if (JSON.stringify(callLine(call, ended)) !== expected) wrong ??= `the object is not ${expected}`
    count++
  }
  t.equal(wrong, undefined)
  t.equal(count, 1_728)
})

t.test('a call counts where its attributes say, whatever came before', async (t) => {
  const [served, sent] = [
    createCallSeries('mcp.server.operation.duration', Date),
    createCallSeries('mcp.client.operation.duration', Date)
  ]
  const attributesOf = createCallAttributes(createLabelNames(), [served, sent])
  const servedSeries = createServedSeries(served, attributesOf)
  const sentSeries = createSentSeries(sent, attributesOf)
  const definitions = ['up', 'other'].map((name) => ({ tenant: 'acme', name, type: 'http' }))
  let wrong = 0
  for (const { call, ended } of calls()) {
    if (servedSeries(call, ended) !== served.find(call.tenant.id, attributesOf.ofServed(call, ended))) wrong++
    for (const definition of definitions)
      for (const error of [undefined, new Error('lost')]) {
        const isToolError = error === undefined && ended.outcome === 'tool_error'
        const name = call.record?.route?.name
        const revision = call.record?.revision ?? '2025-11-25'
        const request = { revision, method: call.request.method, name, error, isToolError, ms: 1 }
        if (sentSeries(definition)(request) !== sent.find('acme', attributesOf.ofSent(definition, request))) wrong++
      }
  }
  t.equal(wrong, 0)
  t.ok(served.data().dataPoints.length > 30 && sent.data().dataPoints.length > 10, 'there were many')
})

t.test('the line of a call is as pino writes it, and whoever takes lines gets the call instead', async (t) => {
  const lines: string[] = []
  const log = pino({ base: null }, { write: (line: string) => void lines.push(line) })
  const taken: string[] = []
  const untap = alsoTo(log, {
    take: (line) => void taken.push(line),
    takeCall(logged) {
      const line = new LineBytes()
      putEnded(line, logged, jsonForm)
      taken.push(String(line.take()))
    }
  })
  const [{ call } = { call: undefined }] = calls()
  if (call === undefined) throw new Error('there are no calls')
  const observers = { clock: { now: () => 0 }, log }
  await observe(call, observers, async () => {})
  log.info({ requestId: 'another' }, 'something else')
  untap()
  await observe(call, observers, async () => {})
  const [first = '', , last = ''] = lines
  const { level, time, msg, ...fields } = JSON.parse(first) as Record<string, unknown>
  t.same([level, msg], [30, 'call'])
  log.info(fields, 'call')
  const at = /"time":\d+/
  t.equal(lines.at(-1)?.replace(at, ''), first.replace(at, ''))
  t.equal(last.replace(at, ''), first.replace(at, ''))
  t.ok(Number(time) > 1e12)
  t.equal(taken.length, 2)
  t.equal(`{${taken[0]?.slice(1)}}`, JSON.stringify(fields))
  t.equal(taken[1], lines[1])
})
