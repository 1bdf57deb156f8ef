// The line of a call as text, for the log and for a collector. Who calls and what is called are the same in many calls:
// their parts are written once and kept with the objects that stand for them, because writing each line field by field
// cost as much as everything else that is told of a call.

import { isObject } from '../protocol/messages.ts'
import { firstOf } from '../protocol/own-text.ts'
import type { CallOutcome, CallRecord, ObservedCall, ObservedPrincipal, RecordedRoute } from './calls.ts'

type Fields = Readonly<Record<string, string | number | undefined>>

/** How a field is written, with what separates it from the one before. */
export interface FieldForm {
  readonly name: 'json' | 'otlp'
  field(name: string, value: string | number): string
}

type Texts = Partial<Record<FieldForm['name'], string>>

interface CallerPart {
  readonly tenant: string
  readonly endpoint: string
  readonly software: CallRecord['software']
  readonly revision: CallRecord['revision']
  readonly texts: Texts
}

/** The part of the caller's last call: nearly all callers use one client at one endpoint. */
const callerParts = new WeakMap<ObservedPrincipal, CallerPart>()
/** By the route in the catalog. */
const targetParts = new WeakMap<object, { readonly method: string; readonly texts: Texts }>()

/** As members of a JSON object. The fewer pieces a line is made of, the less it costs to put it together. */
export const jsonForm: FieldForm = {
  name: 'json',
  field: (name, value) => (nameTexts[name] ??= `,"${name}":`) + jsonOf(value)
}
/** Of fields, whose names are our own. */
const nameTexts: Record<string, string> = {}

/** Of a name that its caller made up. */
const maxMadeUpChars = 200
/** Of the URI or template of a resource. */
const maxUriChars = 200

/** Enough to tell the sessions of a caller apart. */
export const loggedSessionChars = 8

/** Who called, in a line of the log. */
export const callerFieldsOf = ({ kind, subject, clientId }: ObservedPrincipal): Record<string, string> => ({
  [kind === 'key' ? 'apiKey' : 'user']: subject,
  client: clientId
})

/** What is told of a call that has ended. */
export const callLine = (call: ObservedCall, ended: CallOutcome): Fields => ({
  requestId: call.record?.requestId,
  traceId: call.record?.trace?.traceId,
  ...callerFields(call),
  session: sessionOf(call),
  ...targetFields(call),
  ...Object.fromEntries(endParts.map(([name, valueOf]) => [name, valueOf(call.record ?? noRecord, ended, call)]))
})

/** The same fields in the same order, each as the form writes it. */
export const callText = (call: ObservedCall, ended: CallOutcome, form: FieldForm): string =>
  fieldText('requestId', call.record?.requestId, form) +
  fieldText('traceId', call.record?.trace?.traceId, form) +
  callerText(call, form) +
  fieldText('session', sessionOf(call), form) +
  targetText(call, form) +
  endText(call, ended, form)

/** @returns the value in JSON */
export function jsonOf(value: string | number): string {
  if (typeof value === 'number') return numberText(value)
  return isPlain(value) ? `"${value}"` : JSON.stringify(value)
}

/** Durations have one digit behind the point: as two whole numbers they are written three times as fast. */
function numberText(value: number): string {
  const whole = Math.trunc(value)
  if (whole === value) return `${whole}`
  const tenths = Math.round((value - whole) * 10)
  if (value > 0 && tenths < 10 && (whole * 10 + tenths) / 10 === value) return `${whole}.${tenths}`
  return Number.isFinite(value) ? `${value}` : 'null'
}

const fieldText = (name: string, value: string | number | undefined, form: FieldForm): string =>
  value === undefined ? '' : form.field(name, value)

export function fieldsText(fields: Fields, form: FieldForm): string {
  let text = ''
  for (const name in fields) text += fieldText(name, fields[name], form)
  return text
}

function endText(call: ObservedCall, ended: CallOutcome, form: FieldForm): string {
  const { record = noRecord } = call
  let text = ''
  for (const [name, valueOf] of endParts) text += fieldText(name, valueOf(record, ended, call), form)
  return text
}

function callerText(call: ObservedCall, form: FieldForm): string {
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
    part = { tenant: tenant.id, endpoint: endpoint.name, software, revision, texts: {} }
    callerParts.set(caller, part)
  }
  return (part.texts[form.name] ??= fieldsText(callerFields(call), form))
}

function targetText(call: ObservedCall, form: FieldForm): string {
  const { request, record = noRecord } = call
  if (record.route === undefined) return fieldsText(targetFields(call), form)
  let part = targetParts.get(record.route)
  if (part?.method !== request.method) {
    part = { method: request.method, texts: {} }
    targetParts.set(record.route, part)
  }
  return (part.texts[form.name] ??= fieldsText(targetFields(call), form))
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

const sessionOf = ({ record }: ObservedCall): string | undefined => record?.session?.slice(-loggedSessionChars)

/** What the text of a route is kept under: it says no more than the method and the route do. */
function targetFields({ request: { method, params }, record = noRecord }: ObservedCall): Fields {
  const { route } = record
  const fields = { method: method.slice(0, 64), upstream: route?.upstream }
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

type EndPart = readonly [
  name: string,
  valueOf: (record: CallRecord, ended: CallOutcome, call: ObservedCall) => string | number | undefined
]

/** How it ended, in the order of the line: most calls have few of these, and an object of all would be garbage. */
const endParts: readonly EndPart[] = [
  ['outcome', (_, ended) => ended.outcome],
  ['code', (_, ended) => ended.code],
  ['rule', (_, ended) => ended.rule],
  ['error', (_, ended) => ended.error],
  ['ms', (_, ended) => ended.ms],
  ['waitMs', ({ waitMs }) => waitMs && rounded(waitMs)],
  ['upstreamMs', ({ upstreamMs }) => upstreamMs && rounded(upstreamMs)],
  ['bytesIn', ({ bodyBytes }) => bodyBytes],
  ['bytesOut', ({ answerBytes }) => answerBytes],
  ['notifications', ({ notifications }) => notifications],
  ['serverRequests', ({ serverRequests }) => serverRequests],
  ['resultType', ({ resultType }) => resultType],
  ['attempts', ({ attempts }) => attempts],
  ['again', ({ sentAgain }) => sentAgain && [...sentAgain].join(',')],
  ['resumed', ({ resumed }) => resumed],
  ['rounds', ({ rounds }) => rounds],
  ['retry', (_, __, { request }) => (isRetry(request) ? 'input' : undefined)],
  ['address', ({ address }) => address]
]

/** 2026-07-28 basic/patterns/mrtr: the request comes once more, with input or with the state that it was given. */
const isRetry = ({ params }: ObservedCall['request']): boolean =>
  params !== undefined && (params['requestState'] !== undefined || params['inputResponses'] !== undefined)

const noRecord: CallRecord = {}

export const rounded = (ms: number): number => Math.round(ms * 10) / 10

/** Needs nothing of JSON. Longer texts are left to the engine, whose own search is faster then. */
function isPlain(text: string): boolean {
  if (text.length > 64) return false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code < 0x20 || code > 0x7e || code === 0x22 || code === 0x5c) return false
  }
  return true
}
