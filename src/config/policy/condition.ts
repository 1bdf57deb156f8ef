// Conditions of policy rules in CEL, the Common Expression Language (https://github.com/google/cel-spec): checked when
// a configuration is read, judged on the arguments of a call.

import { createRequire } from 'node:module'
import { isIP } from 'node:net'
import type * as Cel from '@marcbachmann/cel-js'
import { anyMatcher } from '../../protocol/glob.ts'
import { isRawJson } from '../../protocol/messages.ts'
import { networksOf, type Networks } from './networks.ts'
import { ConditionError, readSyntax, type ArgumentPath, type ConditionSyntax } from './condition-syntax.ts'

/** The facts that a condition can use. */
export interface ConditionFacts {
  /** Arguments of the tool or prompt, as its upstream gets them. */
  readonly args: Readonly<Record<string, unknown>>
  /** The upstream's own name of the tool or prompt, or the URI; absent where it may be another than it seems. */
  readonly name?: string
  /** The address of the client; absent where it is not known. */
  readonly address?: string
  readonly principal: PrincipalFacts
  readonly now: Date
}

export interface PrincipalFacts {
  readonly kind: string
  /** These three are of tokens, the next of API keys: absent where there is none. */
  readonly issuer?: string
  readonly subject?: string
  readonly client?: string
  readonly key?: string
  readonly scopes: readonly string[]
  readonly groups: readonly string[]
  readonly roles: readonly string[]
}

/**
 * The cost that the conditions of one call may have together, in units of about 0.1 us. Each condition subtracts its
 * own.
 */
export interface ConditionBudget {
  left: number
}

export interface Condition {
  /** @returns undefined if it cannot be evaluated: an argument is missing, of another type, or too large */
  readonly holds: (facts: ConditionFacts, budget: ConditionBudget) => boolean | undefined
  /** Whether it is false for every call of the principal. False in doubt. */
  readonly neverHolds: (principal: PrincipalFacts) => boolean
  /** Members of the principal that it looks at. */
  readonly principal: ReadonlySet<string>
  /**
   * Whether it may be true because the principal lacks a member, group, role or scope. Reading a missing member is an
   * error in CEL, so it makes nothing true that would not be true for each value of the member.
   */
  readonly holdsByAbsence: boolean
}

/** The most nodes of the syntax tree of one expression. */
const maxNodes = 500
const maxDepth = 32
/** The largest cost of a call: at most 20 ms on a slow machine. */
const costPerCall = 100_000
/** Characters that are compared or searched at the cost of one value. */
const charactersPerCost = 16
const costOfZone = 100
/** Of each part of the expression, for an element: it may be of a type that makes an error. */
const costOfElement = 40

export const conditionBudget = (): ConditionBudget => ({ left: costPerCall })

let environment: Cel.Environment | undefined

/** The library is loaded by the first condition: most configurations have none. */
function celEnvironment(): Cel.Environment {
  if (environment !== undefined) return environment
  const cel = createRequire(import.meta.url)('@marcbachmann/cel-js') as typeof Cel
  const globs = new Map<string, (text: string) => boolean>()
  const networks = new Map<string, Networks>()
  return (environment = new cel.Environment({
    homogeneousAggregateLiterals: false,
    limits: { maxAstNodes: maxNodes, maxDepth, maxListElements: maxNodes, maxMapEntries: maxNodes }
  })
    .registerVariable('args', 'map')
    .registerVariable('name', 'string')
    .registerVariable('address', 'string')
    .registerVariable('principal', 'map')
    .registerVariable('now', 'google.protobuf.Timestamp')
    .registerFunction('string.glob(string): bool', (text: string, pattern: string) => {
      const matches = globs.get(pattern) ?? anyMatcher([pattern])
      globs.set(pattern, matches)
      return matches(text)
    })
    .registerFunction('string.inNetwork(string): bool', (address: string, network: string) => {
      const contains = networks.get(network) ?? networksOf([network])
      if (contains === undefined || isIP(address) === 0) throw new TypeError('no network, or no address')
      networks.set(network, contains)
      return contains(address)
    })
    .registerFunction('google.protobuf.Timestamp.at(string): google.protobuf.Timestamp', inZone))
}

const formats = new Map<string, Intl.DateTimeFormat>()

/** @throws RangeError where there is no such zone. @returns a time whose UTC fields are those of the clock there */
function inZone(time: Date, timeZone: string): Date {
  const format = formats.get(timeZone) ?? zoneFormat(timeZone)
  formats.set(timeZone, format)
  const parts = Object.fromEntries(format.formatToParts(time).map(({ type, value }) => [type, Number(value)]))
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts
  return new Date(Date.UTC(year, month - 1, day, hour, minute, second))
}

const zoneFormat = (timeZone: string): Intl.DateTimeFormat =>
  new Intl.DateTimeFormat('en-US', {
    timeZone,
    calendar: 'iso8601',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric'
  })

/** @throws ConditionError where it is no condition, or one whose cost callers could drive up */
export function compileCondition(expression: string): Condition {
  const cel = celEnvironment()
  const parsed = ((): ReturnType<Cel.Environment['parse']> => {
    try {
      return cel.parse(expression)
    } catch (error) {
      throw new ConditionError(`is no CEL expression: ${firstLine(error)}`, howTo)
    }
  })()
  const syntax = readSyntax(parsed.ast)
  const { valid, type, error } = parsed.check()
  if (!valid) throw new ConditionError(`is no condition: ${firstLine(error)}`, howTo)
  if (type !== 'bool' && type !== 'dyn')
    throw new ConditionError(`is a ${type}, and not true or false`, 'Compare it with something.')
  if (networksOf(syntax.networks) === undefined)
    throw new ConditionError('names a network that there is not', 'Write one such as "10.0.0.0/8" or "2001:db8::/32".')
  if (!syntax.zones.every(isTimeZone))
    throw new ConditionError('names a time zone that there is not', 'Write one such as "Europe/Berlin".')
  return {
    principal: syntax.principal,
    holdsByAbsence:
      syntax.asksForMember || ['groups', 'roles', 'scopes', 'kind'].some((each) => syntax.principal.has(each)),
    holds(facts, budget) {
      const cost = costOf(syntax, facts, budget.left)
      if (cost === undefined) return undefined
      budget.left -= cost
      try {
        const result: unknown = parsed(facts)
        return typeof result === 'boolean' ? result : undefined
      } catch {
        return undefined
      }
    },
    neverHolds(principal) {
      if (costOf(syntax, { args: {}, principal }, costPerCall) === undefined) return false
      let looksAtCall = false
      const unknown = (): undefined => {
        looksAtCall = true
      }
      // Unknown facts are errors; `false && error` is false (CEL: logical operators).
      const call = Object.fromEntries(['args', 'name', 'address', 'now'].map((each) => [each, { get: unknown }]))
      try {
        return parsed(Object.defineProperties({ principal }, call)) === false
      } catch {
        // A member that this principal has not is one of no call.
        return !looksAtCall
      }
    }
  }
}

const howTo = 'It may look at args, name, address, now, and at members of principal such as principal.subject.'

const firstLine = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).split('\n', 1)[0] ?? ''

function isTimeZone(zone: string): boolean {
  try {
    inZone(new Date(0), zone)
    return true
  } catch {
    return false
  }
}

/** @returns undefined where it is more than `max`, or an argument cannot be judged */
function costOf(
  { nodes, paths, typed, principal: members, zones, repeats }: ConditionSyntax,
  { args, principal }: Pick<ConditionFacts, 'args' | 'principal'>,
  max: number
): number | undefined {
  if (!typed.every(({ path, type }) => isOfType(valueAt(args, path), type))) return undefined
  const names = (['scopes', 'groups', 'roles'] as const)
    .filter((member) => members.has(member))
    .reduce((sum, member) => sum + principal[member].length, 0)
  let values = 0
  let characters = 0
  let isJudgeable = true
  const cost = (): number => {
    const once = 1 + values * (repeats.elements ? costOfElement : 1) + characters / charactersPerCost
    const ofArgs = once * (repeats.args ? 1 + values + names : 1)
    const ofNames = names * (repeats.elements ? costOfElement + values + names : 1)
    return nodes * (ofArgs + ofNames) + zones.length * costOfZone
  }
  function count(value: unknown): void {
    values++
    if (typeof value === 'string') characters += value.length
    // Servers parse such numbers differently.
    if (isRawJson(value) || (typeof value === 'number' && !Number.isFinite(value))) isJudgeable = false
    if (typeof value !== 'object' || value === null || !isJudgeable || cost() > max) return
    for (const key in value) {
      if (!Array.isArray(value)) characters += key.length
      count((value as Record<string, unknown>)[key])
      if (!isJudgeable || cost() > max) return
    }
  }
  for (const path of paths) count(valueAt(args, path))
  const total = cost()
  return isJudgeable && total <= max ? total : undefined
}

function valueAt(value: unknown, path: ArgumentPath): unknown {
  let at = value
  for (const name of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined
    at = (at as Record<string, unknown>)[name]
  }
  return at
}

/** What is not there is told by CEL. A server may read a list of one text, or a number, as that text. */
const isOfType = (value: unknown, type: string): boolean =>
  value === undefined || value === null || typeof value === type
