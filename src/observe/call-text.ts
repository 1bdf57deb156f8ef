// The line of a call, for the log and for a collector. Who calls and what is called are the same in many calls: their
// parts are written once and kept with the objects that stand for them, because writing each line field by field cost
// as much as everything else that is told of a call.

import { isObject } from '../protocol/messages.ts'
import { firstOf } from '../protocol/own-text.ts'
import { LineBytes } from './lines/line-bytes.ts'
import type { CallOutcome, CallRecord, EndedCall, ObservedCall, ObservedPrincipal, RecordedRoute } from './calls.ts'
import { sampleFields } from './samples.ts'

/** How a line is written: each field with what separates it from the one before. */
export interface FieldForm {
  readonly name: 'json' | 'otlp'
  /** What stands before the value of a field. */
  readonly before: Readonly<Record<LineField, Uint8Array>>
  put(line: LineBytes, value: string | number): void
}

/** Of a call, in the order of its line. */
const lineFields = [
  ...(['requestId', 'traceId', 'tenant', 'endpoint', 'user', 'apiKey', 'client', 'software', 'revision'] as const),
  ...(['session', 'method', 'upstream', 'tool', 'prompt', 'resource', 'outcome', 'code', 'rule', 'error'] as const),
  ...(['ms', 'waitMs', 'upstreamMs', 'bytesIn', 'bytesOut', 'notifications', 'serverRequests'] as const),
  ...(['resultType', 'attempts', 'again', 'resumed', 'rounds', 'retry', 'address', 'arguments', 'result'] as const)
] as const
type LineField = (typeof lineFields)[number]
type Fields = Readonly<Partial<Record<LineField, string | number | undefined>>>

/** @param before what stands before the value of this field */
export const formOf = (
  name: FieldForm['name'],
  before: (field: LineField) => string,
  put: FieldForm['put']
): FieldForm => {
  const parts = Object.fromEntries(lineFields.map((field) => [field, Buffer.from(before(field))]))
  return { name, before: parts as unknown as FieldForm['before'], put }
}

type Parts = Partial<Record<FieldForm['name'], Uint8Array>>

interface CallerPart {
  readonly tenant: string
  readonly endpoint: string
  readonly software: CallRecord['software']
  readonly revision: CallRecord['revision']
  readonly parts: Parts
}

/** The part of the caller's last call: nearly all callers use one client at one endpoint. */
const callerParts = new WeakMap<ObservedPrincipal, CallerPart>()
/** By the route in the catalog. */
const targetParts = new WeakMap<object, { readonly method: string; readonly outcome: string; readonly parts: Parts }>()

/** As members of a JSON object. */
export const jsonForm = formOf(
  'json',
  (field) => `,"${field}":`,
  (line, value) => line.value(value)
)

/** Of a name that its caller made up. */
const maxMadeUpChars = 200
/** Of the URI or template of a resource. */
const maxUriChars = 200

/** Enough to tell the sessions of a caller apart. */
export const loggedSessionChars = 8

/** Who called, in a line of the log. */
export const callerFieldsOf = ({ kind, subject, clientId }: ObservedPrincipal) => ({
  [kind === 'key' ? 'apiKey' : 'user']: subject,
  client: clientId
})

/**
 * Adds what is told of a call that has ended. Field by field and not from a table of them, which costs three times as
 * much.
 */
export function putCall(line: LineBytes, call: ObservedCall, ended: CallOutcome, form: FieldForm): void {
  const { record = noRecord } = call
  const { requestId, session, waitMs, upstreamMs, sentAgain, trace } = record
  const { before } = form
  if (requestId !== undefined) putId(line, before.requestId, requestId, form)
  // A record of OTLP has a place of its own for it.
  if (trace !== undefined && form.name === 'json') putId(line, before.traceId, trace.traceId, form)
  line.part(callerPart(call, form))
  if (session !== undefined) put(line, before.session, session.slice(-loggedSessionChars), form)
  putTarget(line, call, ended, form)
  if (ended.code !== undefined) put(line, before.code, ended.code, form)
  if (ended.rule !== undefined) put(line, before.rule, ended.rule, form)
  if (ended.error !== undefined) put(line, before.error, ended.error, form)
  put(line, before.ms, ended.ms, form)
  if (waitMs !== undefined) put(line, before.waitMs, rounded(waitMs), form)
  if (upstreamMs !== undefined) put(line, before.upstreamMs, rounded(upstreamMs), form)
  if (record.bodyBytes !== undefined) put(line, before.bytesIn, record.bodyBytes, form)
  if (record.answerBytes !== undefined) put(line, before.bytesOut, record.answerBytes, form)
  if (record.notifications !== undefined) put(line, before.notifications, record.notifications, form)
  if (record.serverRequests !== undefined) put(line, before.serverRequests, record.serverRequests, form)
  if (record.resultType !== undefined) put(line, before.resultType, record.resultType, form)
  if (record.attempts !== undefined) put(line, before.attempts, record.attempts, form)
  if (sentAgain !== undefined) put(line, before.again, [...sentAgain].join(','), form)
  if (record.resumed !== undefined) put(line, before.resumed, record.resumed, form)
  if (record.rounds !== undefined) put(line, before.rounds, record.rounds, form)
  if (isRetry(call.request)) put(line, before.retry, 'input', form)
  if (record.address !== undefined) put(line, before.address, record.address, form)
}

/**
 * Reads what `putCall` will read. Other calls have displaced it from the caches of the processor since this one ended;
 * to load it for many calls in a row takes less time than in the middle of each line.
 */
export function fetchCall({ call: { request, record = noRecord }, ended: { ms } }: EndedCall): void {
  const { requestId = '', session = '', bodyBytes = 0, waitMs = 0, upstreamMs = 0, answerBytes = 0 } = record
  const read = ms + bodyBytes + waitMs + upstreamMs + answerBytes + requestId.charCodeAt(0) + session.length
  fetched[0] = isRetry(request) ? -read : read
}
/** The compiler would leave out reads whose values nobody keeps. */
const fetched = new Float64Array(1)

/** The same for the log, which has samples as well. */
export function putEnded(line: LineBytes, { call, ended }: EndedCall, form: FieldForm): void {
  putCall(line, call, ended, form)
  const sample = call.record?.sample
  if (sample !== undefined) putFields(line, sampleFields(sample), form)
}

function put(line: LineBytes, before: Uint8Array, value: string | number, form: FieldForm): void {
  line.part(before)
  form.put(line, value)
}

function putId(line: LineBytes, before: Uint8Array, id: string, form: FieldForm): void {
  if (form.name === 'otlp') return put(line, before, id, form)
  line.part(before)
  line.id(id)
}

function putFields(line: LineBytes, fields: Fields, form: FieldForm): void {
  for (const name of Object.keys(fields) as LineField[]) {
    const value = fields[name]
    if (value !== undefined) put(line, form.before[name], value, form)
  }
}

function partOf(fields: Fields, form: FieldForm): Uint8Array {
  const line = new LineBytes()
  putFields(line, fields, form)
  return line.take()
}

/** What is told of a call that has ended, as an object. */
export function callLine(call: ObservedCall, ended: CallOutcome): Fields {
  const line = new LineBytes()
  putCall(line, call, ended, jsonForm)
  return JSON.parse(`{${line.view().toString().slice(1)}}`) as Fields
}

function callerPart(call: ObservedCall, form: FieldForm): Uint8Array {
  const { tenant, endpoint, principal, record = noRecord } = call
  const { caller = principal, software, revision } = record
  let part = callerParts.get(caller)
  if (
    part === undefined ||
    part.tenant !== tenant.id ||
    part.endpoint !== endpoint.name ||
    part.revision !== revision ||
    part.software?.name !== software?.name ||
    part.software?.version !== software?.version
  ) {
    part = { tenant: tenant.id, endpoint: endpoint.name, software, revision, parts: {} }
    callerParts.set(caller, part)
  }
  return (part.parts[form.name] ??= partOf(callerFields(call), form))
}

/** With the outcome, which nearly always is that of the call before. */
function putTarget(line: LineBytes, call: ObservedCall, { outcome }: CallOutcome, form: FieldForm): void {
  const { request, record = noRecord } = call
  if (record.route === undefined) return putFields(line, { ...targetFields(call), outcome }, form)
  let part = targetParts.get(record.route)
  if (part?.method !== request.method || part.outcome !== outcome) {
    part = { method: request.method, outcome, parts: {} }
    targetParts.set(record.route, part)
  }
  line.part((part.parts[form.name] ??= partOf({ ...targetFields(call), outcome }, form)))
}

function callerFields({ tenant, endpoint, principal, record = noRecord }: ObservedCall): Fields {
  const { caller = principal, software, revision } = record
  return {
    tenant: tenant.id,
    endpoint: endpoint.name,
    ...callerFieldsOf(caller),
    software: software && `${software.name} ${software.version}`,
    revision
  }
}

/** What the text of a route is kept under: it says no more than the method and the route do. */
function targetFields({ request: { method, params }, record = noRecord }: ObservedCall): Fields {
  const { route } = record
  const fields = { method: firstOf(method, 64), upstream: route?.upstream }
  if (route === undefined) return fields
  if (method === 'tools/call') return { ...fields, tool: shownName(route) }
  const ref = params?.['ref']
  if (method === 'prompts/get' || (isObject(ref) && ref['type'] === 'ref/prompt'))
    return { ...fields, prompt: shownName(route) }
  return aboutResources.test(method) ? { ...fields, resource: shownUri(route) } : fields
}

const shownName = ({ name, isUnlisted }: RecordedRoute): string => (isUnlisted ? firstOf(name, maxMadeUpChars) : name)

const aboutResources = /^(?:resources\/(?:read|(?:un)?subscribe)|completion\/complete)$/

/**
 * A URI that its upstream lists, or the template that it was made from, is the name of something; any other is an
 * argument of its caller, of which only the scheme is told. Users, queries and fragments may hold secrets.
 */
function shownUri({ name, listedAs }: RecordedRoute): string {
  if (listedAs === undefined) return `${/^[a-z][a-z0-9+.-]{0,31}:/i.exec(name)?.[0] ?? ''}…`
  const [plain = ''] = /^(?:[^?#{]|\{[^}]*\})*/.exec(listedAs) ?? []
  return firstOf(plain.replace(/^([^/?#]*:\/\/)[^/]*@/, '$1'), maxUriChars)
}

/** 2026-07-28 basic/patterns/mrtr: the request comes once more, with input or with the state that it was given. */
const isRetry = ({ params }: ObservedCall['request']): boolean =>
  params !== undefined && (params['requestState'] !== undefined || params['inputResponses'] !== undefined)

const noRecord: CallRecord = {}

export const rounded = (ms: number): number => Math.round(ms * 10) / 10
