// Secrets of a definition in what its server says: servers print their environment when they fail, and proxies echo
// headers. What a result says goes to a model and to whoever reads its transcript.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { jsonSizeOf } from '../../limits/limits.ts'
import { namesOf } from '../../protocol/json-text.ts'
import { isObject } from '../../protocol/messages.ts'
import type { WorkOwner } from '../../time/fair-queue.ts'
import { runSteps, type Steps } from '../../time/turns.ts'

/** A shorter value is no secret, and masking it would spoil ordinary words. */
const minLength = 8

const masked = '***'

/** Of a text, characters; of other values, bytes as `jsonSizeOf` counts them: what is searched in one step. */
const stepSize = 65_536

/**
 * The values that are long enough, longest first, since one may hold another. A secret of several lines, such as a PEM
 * key, is read back line by line.
 */
export function secretParts(values: readonly string[]): string[] {
  const parts = values.flatMap((value) => [value, ...value.split(/[\r\n]+/)]).map((part) => part.trim())
  return [...new Set(parts)].filter((part) => part.length >= minLength).sort((a, b) => b.length - a.length)
}

export function maskParts(text: string, parts: readonly string[]): string {
  let safe = text
  for (const part of parts) safe = safe.replaceAll(part, masked)
  // A text that was cut may end within a secret.
  for (const part of parts) {
    for (let length = part.length - 1; length >= minLength; length--) {
      if (safe.endsWith(part.slice(0, length))) return `${safe.slice(0, -length)}${masked}`
    }
  }
  return safe
}

const secretName = /key|token|secret|pass|pwd|phrase|auth|cred|cookie|private|sign|dsn|webhook|session/i
// Results are full of addresses, paths, regions and names: masking these would break every link to the server's own
// site.
const plainValues: readonly RegExp[] = [
  // An absolute URL without user, query and fragment.
  /^[a-z][a-z0-9+.-]*:\/\/[^@?#\s]+$/i,
  // A path.
  /^(?:~|\.{1,2}|[a-z]:)?(?:[\\/][\w. -]+)+[\\/]?$/i,
  // A mail address.
  /^[\w.+-]+@[\w-]+(?:\.[\w-]+)+$/,
  // Words and short numbers: `production`, `eu-central-1`, `db.example.com:5432`; not with more than eight digits.
  /^(?!(?:\D*\d){9})(?:\p{L}+|\d{1,4})(?:[ ._:,/-](?:\p{L}+|\d{1,4}))*$/u
]

const isSecret = (name: string, value: string): boolean =>
  secretName.test(name) || !plainValues.some((plain) => plain.test(value))

/** What of a header or variable may come back: the whole, the token after its scheme, the password of a URL. */
function formsOf(value: string): string[] {
  const password = URL.canParse(value) ? new URL(value).password : ''
  const forms = [value, ...value.split(/\s+/), password]
  // Within JSON in a text, and within a URL.
  return forms.flatMap((form) => [form, JSON.stringify(form).slice(1, -1), encodeURIComponent(form.toWellFormed())])
}

export type Mask = NonNullable<ReturnType<typeof createResultMask>>

/** @returns undefined where the headers and variables of the definition hold no secret */
export function createResultMask(definition: UpstreamDefinition) {
  const given = definition.type === 'stdio' ? definition.env : definition.headers
  const secrets = secretParts(
    Object.entries(given).flatMap(([name, value]) => (isSecret(name, value) ? formsOf(value) : []))
  )
  if (secrets.length === 0) return undefined

  function text(given: string): string {
    let safe = given
    for (const secret of secrets) if (safe.includes(secret)) safe = safe.replaceAll(secret, masked)
    return safe
  }

  /** @param kept members that clients send back, and that mean nothing once they are changed */
  function value(given: unknown, kept: ReadonlySet<string>): unknown {
    if (typeof given === 'string') return text(given)
    if (Array.isArray(given)) {
      let copy: unknown[] | undefined
      for (const [at, each] of given.entries()) {
        const safe = value(each, kept)
        if (safe !== each) (copy ??= [...(given as unknown[])])[at] = safe
      }
      return copy ?? given
    }
    if (!isObject(given)) return given
    let copy: Record<string, unknown> | undefined
    for (const [name, each] of Object.entries(given)) {
      const safe = typeof each === 'string' && kept.has(name) ? each : value(each, kept)
      if (safe !== each) (copy ??= { ...given })[name] = safe
    }
    return copy ?? given
  }

  function* textSteps(given: string): Steps<string> {
    let safe = given
    for (const secret of secrets) safe = yield* replaceSteps(safe, secret)
    return safe
  }

  /** `value` for one that is long, in steps. */
  function* valueSteps(given: unknown, kept: ReadonlySet<string>): Steps<unknown> {
    let size = 0

    function* safeOf(each: unknown): Steps<unknown> {
      if (typeof each === 'string' && each.length > stepSize) return yield* textSteps(each)
      const own = jsonSizeOf(each, stepSize)
      if (own > stepSize && Array.isArray(each)) return yield* safeArray(each)
      if (own > stepSize && isObject(each)) return yield* safeObject(each)
      size += own
      if (size > stepSize) {
        size = 0
        yield
      }
      return value(each, kept)
    }

    function* safeArray(array: readonly unknown[]): Steps<unknown> {
      let copy: unknown[] | undefined
      for (const [at, each] of array.entries()) {
        const safe = yield* safeOf(each)
        if (safe !== each) (copy ??= [...array])[at] = safe
      }
      return copy ?? array
    }

    function* safeObject(object: Readonly<Record<string, unknown>>): Steps<unknown> {
      let copy: Record<string, unknown> | undefined
      for (const name of namesOf(object)) {
        const each = object[name]
        const safe = typeof each === 'string' && kept.has(name) ? each : yield* safeOf(each)
        if (safe !== each) (copy ??= { ...object })[name] = safe
      }
      return copy ?? object
    }

    return yield* safeOf(given)
  }

  return {
    text,
    /** The same object where it holds no secret. */
    value: <T>(given: T, kept: ReadonlySet<string>): T => value(given, kept) as T,
    /** The same; a long one in steps. @returns a promise where that takes more than this turn of the event loop */
    valueInSteps: <T>(given: T, kept: ReadonlySet<string>, owner: WorkOwner): T | Promise<T> =>
      jsonSizeOf(given, stepSize) > stepSize
        ? (runSteps(valueSteps(given, kept), owner) as T | Promise<T>)
        : (value(given, kept) as T)
  }
}

/** As `text.replaceAll(secret, masked)`. A secret that lies across two pieces belongs to the first. */
function* replaceSteps(text: string, secret: string): Steps<string> {
  let safe = ''
  let copied = 0
  for (let at = 0; at < text.length;) {
    const piece = text.slice(at, at + stepSize + secret.length - 1)
    const parts: string[] = []
    let from = 0
    for (let found = piece.indexOf(secret); found !== -1; found = piece.indexOf(secret, from)) {
      parts.push(text.slice(copied, at + found), masked)
      from = found + secret.length
      copied = at + from
    }
    safe += parts.join('')
    at += Math.max(stepSize, from)
    yield
  }
  return copied === 0 ? text : safe + text.slice(copied)
}
