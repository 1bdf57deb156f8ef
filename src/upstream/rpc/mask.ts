// Masks the secrets of a definition in messages of its server: servers print their environment when they fail, and
// proxies echo headers. A result is read by a model and by everybody who can read its transcript.

import { secretForms, urlCredentials, writtenForms } from '../../config/secret-values.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { UpstreamCredential } from './credential.ts'
import { jsonSizeOf } from '../../limits/limits.ts'
import { namesOf } from '../../protocol/json-text.ts'
import { isObject, type JsonObject } from '../../protocol/messages.ts'
import type { WorkOwner } from '../../time/fair-queue.ts'
import { runSteps, type Steps } from '../../time/turns.ts'

/** Shorter values are not masked, in characters: they are no secrets, and masking them would spoil ordinary words. */
const minLength = 8

export const masked = '***'

/** What is searched in one step: characters of a text, or bytes of other values as `jsonSizeOf` counts them. */
const stepSize = 65_536

/**
 * Returns the values that are long enough, longest first, because one may contain another. A secret of several lines,
 * such as a PEM key, is also masked line by line.
 */
export function secretParts(values: readonly string[]): string[] {
  const parts = values.flatMap((value) => [value, ...value.split(/[\r\n]+/)]).map((part) => part.trim())
  return [...new Set(parts)].filter((part) => part.length >= minLength).sort((a, b) => b.length - a.length)
}

export function maskParts(text: string, parts: readonly string[]): string {
  let safe = text
  for (const part of parts) safe = safe.replaceAll(part, masked)
  // A text that was cut may end within a secret: its beginning is masked as well.
  for (const part of parts) {
    for (let length = part.length - 1; length >= minLength; length--) {
      if (safe.endsWith(part.slice(0, length))) return `${safe.slice(0, -length)}${masked}`
    }
  }
  return safe
}

/** The values and names that are not masked, because clients send them back to the server. */
export interface Kept {
  /** Members whose strings are not masked. */
  readonly values: ReadonlySet<string>
  /** Members below which property names are not masked. */
  readonly namesBelow: ReadonlySet<string>
  /** Set below one of `namesBelow`. */
  readonly allNames?: true
}

const below = (name: string, kept: Kept): Kept => (kept.namesBelow.has(name) ? { ...kept, allNames: true } : kept)

export type Mask = NonNullable<ReturnType<typeof createResultMask>>

/**
 * @param given the headers that the server is sent, or the environment variables of its process
 * @param credential the caller's credential: its secrets may change while the connection is open
 * @returns undefined if the definition has no secret and there is no credential
 */
export function createResultMask(
  { argumentSecrets: ofArguments = [] }: Pick<UpstreamDefinition, 'argumentSecrets'>,
  given: Readonly<Record<string, string>>,
  credential?: Pick<UpstreamCredential, 'secrets'>
) {
  const forms = [
    ...Object.entries(given).flatMap(([name, value]) => secretForms(name, value)),
    // References within a text are known apart.
    ...ofArguments,
    ...ofArguments.flatMap((each) => urlCredentials(each))
  ]
  const own = secretParts(forms.flatMap(writtenForms))
  if (own.length === 0 && credential === undefined) return undefined
  let shown: readonly string[] = []
  let all = own

  /** The present secrets, longest first. */
  function secretsNow(): readonly string[] {
    const now = credential?.secrets() ?? []
    if (now !== shown) all = secretParts([...own, ...(shown = now).flatMap(writtenForms)])
    return all
  }

  function text(given: string): string {
    let safe = given
    for (const secret of secretsNow()) if (safe.includes(secret)) safe = safe.replaceAll(secret, masked)
    return safe
  }

  function value(given: unknown, kept: Kept): unknown {
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
    const copy = copyOnChange(given)
    for (const [name, each] of Object.entries(given)) {
      const isKept = typeof each === 'string' && kept.values.has(name)
      copy.add(name, nameOf(name, kept), isKept ? each : value(each, below(name, kept)))
    }
    return copy.result()
  }

  const nameOf = (name: string, kept: Kept): string => (kept.allNames === true ? name : text(name))

  function* textSteps(given: string): Steps<string> {
    let safe = given
    for (const secret of secretsNow()) safe = yield* replaceSteps(safe, secret)
    return safe
  }

  /** Like `value`, in steps, for a long value. */
  function* valueSteps(given: unknown, kept: Kept): Steps<unknown> {
    let size = 0

    function* safeOf(each: unknown, kept: Kept): Steps<unknown> {
      if (typeof each === 'string' && each.length > stepSize) return yield* textSteps(each)
      const own = jsonSizeOf(each, stepSize)
      if (own > stepSize && Array.isArray(each)) return yield* safeArray(each, kept)
      if (own > stepSize && isObject(each)) return yield* safeObject(each, kept)
      size += own
      if (size > stepSize) {
        size = 0
        yield
      }
      return value(each, kept)
    }

    function* safeArray(array: readonly unknown[], kept: Kept): Steps<unknown> {
      let copy: unknown[] | undefined
      for (const [at, each] of array.entries()) {
        const safe = yield* safeOf(each, kept)
        if (safe !== each) (copy ??= [...array])[at] = safe
      }
      return copy ?? array
    }

    function* safeObject(object: JsonObject, kept: Kept): Steps<unknown> {
      const copy = copyOnChange(object)
      for (const name of namesOf(object)) {
        const each = object[name]
        const isKept = typeof each === 'string' && kept.values.has(name)
        const safe = isKept ? each : yield* safeOf(each, below(name, kept))
        const shown = name.length > stepSize && kept.allNames !== true ? yield* textSteps(name) : nameOf(name, kept)
        copy.add(name, shown, safe)
      }
      return copy.result()
    }

    return yield* safeOf(given, kept)
  }

  return {
    text,
    /** Masks a text that `printable` may have cut within a secret. */
    shortened: (given: string): string =>
      given
        .split('…')
        .map((part) => maskParts(part, secretsNow()))
        .join('…'),
    /** Masks all strings of a value. Returns the same object if it holds no secret. */
    value: <T>(given: T, kept: Kept): T => value(given, kept) as T,
    /** The same; a long value in steps. @returns a promise if that takes more than this turn of the event loop */
    valueInSteps: <T>(given: T, kept: Kept, owner: WorkOwner): T | Promise<T> =>
      jsonSizeOf(given, stepSize) > stepSize
        ? (runSteps(valueSteps(given, kept), owner) as T | Promise<T>)
        : (value(given, kept) as T)
  }
}

/** Copies an object once one of its members differs. */
function copyOnChange(object: JsonObject) {
  let copy: Map<string, unknown> | undefined
  /** How often each name is used: names that become equal by masking get a number. */
  let taken: Map<string, number> | undefined

  function freeName(name: string): string {
    if (copy?.has(name) !== true && !Object.hasOwn(object, name)) return name
    taken ??= new Map()
    for (let number = (taken.get(name) ?? 1) + 1; ; number++) {
      const free = `${name} ${number}`
      if (copy?.has(free) === true || Object.hasOwn(object, free)) continue
      taken.set(name, number)
      return free
    }
  }

  return {
    /** Adds the next member; the members must be added in their order. */
    add(name: string, shown: string, value: unknown): void {
      if (copy === undefined && name === shown && value === object[name]) return
      copy ??= membersBefore(object, name)
      copy.set(name === shown ? name : freeName(shown), value)
    },
    result: (): JsonObject => (copy === undefined ? object : Object.fromEntries(copy))
  }
}

function membersBefore(object: JsonObject, name: string): Map<string, unknown> {
  const members = new Map<string, unknown>()
  for (const each of namesOf(object)) {
    if (each === name) break
    members.set(each, object[each])
  }
  return members
}

/** `text.replaceAll(secret, masked)` in steps. A secret across two pieces is replaced with the first of them. */
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
