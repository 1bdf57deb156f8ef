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

/** As members of a JSON object. */
export const jsonForm: FieldForm = {
  name: 'json',
  field: (name, value) => `,"${name}":${jsonOf(value)}`
}

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
  ...idFields(call),
  ...callerFields(call),
  ...sessionFields(call),
  ...targetFields(call),
  ...endFields(call, ended)
})

/** The same fields in the same order, each as the form writes it. */
export const callText = (call: ObservedCall, ended: CallOutcome, form: FieldForm): string =>
  fieldsText(idFields(call), form) +
  callerText(call, form) +
  fieldsText(sessionFields(call), form) +
  targetText(call, form) +
  fieldsText(endFields(call, ended), form)

/** @returns the value in JSON */
export function jsonOf(value: string | number): string {
  if (typeof value === 'number') return Number.isFinite(value) ? `${value}` : 'null'
  return isPlain(value) ? `"${value}"` : JSON.stringify(value)
}

export function fieldsText(fields: Fields, form: FieldForm): string {
  let text = ''
  for (const name in fields) {
    const value = fields[name]
    if (value !== undefined) text += form.field(name, value)
  }
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

const idFields = ({ record }: ObservedCall) => ({ requestId: record?.requestId, traceId: record?.trace?.traceId })

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

const sessionFields = ({ record }: ObservedCall) => ({ session: record?.session?.slice(-loggedSessionChars) })

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

function endFields({ request, record = noRecord }: ObservedCall, ended: CallOutcome) {
  const { waitMs, upstreamMs } = record
  return {
    outcome: ended.outcome,
    code: ended.code,
    rule: ended.rule,
    error: ended.error,
    ms: ended.ms,
    waitMs: waitMs === undefined ? undefined : rounded(waitMs),
    upstreamMs: upstreamMs === undefined ? undefined : rounded(upstreamMs),
    bytesIn: record.bodyBytes,
    bytesOut: record.answerBytes,
    notifications: record.notifications,
    serverRequests: record.serverRequests,
    resultType: record.resultType,
    attempts: record.attempts,
    again: record.sentAgain && [...record.sentAgain].join(','),
    resumed: record.resumed,
    rounds: record.rounds,
    retry: isRetry(request) ? 'input' : undefined,
    address: record.address
  }
}

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
