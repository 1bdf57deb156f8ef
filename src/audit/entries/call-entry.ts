// What the audit log says of a call: who, from where, what, the decision, how it ended. Arguments as a keyed hash; as
// they are only where the tenant wants so.

import { createHmac, type KeyObject } from 'node:crypto'
import type { TenantAudit } from '../../config/snapshot.ts'
import type { CallOutcome, ObservedCall } from '../../observe/calls.ts'
import { redactedJson } from '../../observe/redact.ts'
import { isLongText } from '../../protocol/json-text.ts'
import { longTextSteps } from '../../protocol/json-writer.ts'
import { isObject, type JsonObject } from '../../protocol/messages.ts'
import { firstOf } from '../../protocol/own-text.ts'
import { runSteps } from '../../time/turns.ts'

/** Characters of what a caller chose. */
const maxNameChars = 500
/** The longest arguments that are recorded as they are, in characters. */
const maxArgumentChars = 16_384

export interface AuditedPrincipal {
  readonly kind: string
  readonly issuer: string
  readonly subject: string
  readonly clientId: string
}

export const callerFields = ({ kind, issuer, subject, clientId }: AuditedPrincipal): JsonObject => ({
  by: kind === 'token' ? { kind, issuer, subject, client: clientId } : { kind, name: subject }
})

export interface CallEntry {
  /** The arguments are being read until it resolves; undefined: they are read. */
  readonly ready: Promise<void> | undefined
  /** The members of the record, once the call is over. */
  fields(outcome: CallOutcome): JsonObject
}

/** Reads the arguments before the call, because they are let go of once they are sent. */
export function callEntry(
  { request, endpoint, principal, record, tenant }: ObservedCall,
  key: KeyObject,
  { arguments: keepsArguments, redact }: TenantAudit
): CallEntry {
  const { name, uri, arguments: args } = request.params ?? {}
  const asked = typeof name === 'string' ? name : typeof uri === 'string' ? uri : undefined
  const shown = keepsArguments && isObject(args) ? redacted(args, redact) : undefined
  const hash = isObject(args) ? hashOfArguments(args, key, tenant.id, principal.subject) : undefined
  let argumentsHash = hash instanceof Promise ? undefined : hash
  const ready =
    hash instanceof Promise
      ? hash.then((value) => {
          argumentsHash = value
        })
      : undefined
  return {
    ready,
    fields({ outcome, code, ms, rule, limit, scopes }) {
      const route = record?.route
      const isDenied = rule !== undefined || deniedOutcomes.has(outcome)
      return {
        endpoint: endpoint.name,
        ...callerFields(principal),
        from: record?.address,
        request: record?.requestId,
        method: firstOf(request.method, 64),
        name: asked === undefined ? undefined : firstOf(asked, maxNameChars),
        ...(route === undefined ? {} : { upstream: route.upstream, original: route.name.slice(0, maxNameChars) }),
        decision: isDenied ? 'denied' : 'allowed',
        rule,
        limit: isDenied ? limit : undefined,
        scopes: isDenied ? scopes : undefined,
        allowedBy: isDenied ? undefined : record?.allowedBy,
        outcome,
        code,
        ms,
        bytes: record?.bodyBytes,
        bytesOut: record?.answerBytes,
        arguments: shown,
        argumentsHash
      }
    }
  }
}

const deniedOutcomes: ReadonlySet<string> = new Set([
  'refused_by_policy',
  'insufficient_scope',
  'rate_limited',
  'quota_exceeded',
  'too_many'
])

/** HMAC-SHA-256 (RFC 2104) of the JSON as the caller wrote it, base64url. */
function hashOfArguments(args: JsonObject, key: KeyObject, tenant: string, caller: string): string | Promise<string> {
  const digest = (parts: readonly (string | Buffer)[]): string => {
    const hmac = createHmac('sha256', key)
    for (const part of parts) hmac.update(part)
    return hmac.digest('base64url')
  }
  if (!isLongText(args)) return digest([JSON.stringify(args)])
  const text = runSteps(longTextSteps(args), { tenant, caller })
  return text instanceof Promise ? text.then(({ parts }) => digest(parts)) : digest(text.parts)
}

/** @returns a copy in which values of members with these names are replaced; undefined where it is too long */
function redacted(args: JsonObject, names: readonly string[]): unknown {
  const text = redactedJson(args, names)
  return text === undefined || text.length > maxArgumentChars ? undefined : (JSON.parse(text) as unknown)
}
