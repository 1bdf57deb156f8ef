// Conditions of policy rules in CEL, the Common Expression Language (https://github.com/google/cel-spec): checked when
// a configuration is read, judged on the arguments of a call. Callers choose these, so that a condition may do nothing
// whose cost grows faster than they do.

import { createRequire } from 'node:module'
import type * as Cel from '@marcbachmann/cel-js'
import type { ASTNode, Environment } from '@marcbachmann/cel-js'
import { anyMatcher } from '../protocol/glob.ts'
import { isObject, isRawJson } from '../protocol/messages.ts'

/** What a condition may look at. */
export interface ConditionFacts {
  /** Arguments of the tool or prompt, as its upstream gets them. */
  readonly args: Readonly<Record<string, unknown>>
  /** The upstream's own name of the tool or prompt. */
  readonly name: string
  readonly principal: {
    readonly kind: string
    /** The first three are of tokens, the fourth of API keys; empty where there is none. */
    readonly issuer: string
    readonly subject: string
    readonly client: string
    readonly key: string
    readonly scopes: readonly string[]
    readonly groups: readonly string[]
    readonly roles: readonly string[]
  }
  readonly now: Date
}

/** @returns undefined where it cannot be told: an argument is missing, or of another type */
export type Condition = (facts: ConditionFacts) => boolean | undefined

/** What is wrong with an expression, without a full stop, and what to do. */
export class ConditionError extends Error {
  override readonly name = 'ConditionError'
  readonly remedy: string

  constructor(message: string, remedy: string) {
    super(message)
    this.remedy = remedy
  }
}

/** Of one expression: parts of its syntax tree, and how deep these are nested. */
const maxNodes = 500
const maxDepth = 32
/** Of the arguments of a call, where a condition looks at elements one by one: values, and characters of text. */
const maxValues = 1_000
const maxCharacters = 65_536

/** They look at the elements of a list or map one by one. */
const macros = new Set(['all', 'exists', 'exists_one', 'map', 'filter'])
/** They could take a time, or make a text, that grows with the square of what they are given. */
const refused: ReadonlyMap<string, string> = new Map([
  ['matches', 'Use glob("..."), in which * stands for any characters.'],
  ['split', 'Use contains, startsWith or glob.'],
  ['join', 'Compare the elements one by one, with exists or all.']
])
/** The text that they look for has to stand in the expression. */
const searches = new Set(['contains', 'indexOf', 'lastIndexOf', 'glob'])

let environment: Environment | undefined

/** The library is loaded by the first condition: most configurations have none. */
function celEnvironment(): Environment {
  if (environment !== undefined) return environment
  const cel = createRequire(import.meta.url)('@marcbachmann/cel-js') as typeof Cel
  const compiled = new Map<string, (text: string) => boolean>()
  return (environment = new cel.Environment({
    homogeneousAggregateLiterals: false,
    limits: { maxAstNodes: maxNodes, maxDepth, maxListElements: maxNodes, maxMapEntries: maxNodes }
  })
    .registerVariable('args', 'map')
    .registerVariable('name', 'string')
    .registerVariable('principal', {
      schema: {
        kind: 'string',
        issuer: 'string',
        subject: 'string',
        client: 'string',
        key: 'string',
        scopes: 'list<string>',
        groups: 'list<string>',
        roles: 'list<string>'
      }
    })
    .registerVariable('now', 'google.protobuf.Timestamp')
    .registerFunction('string.glob(string): bool', (text: string, pattern: string) => {
      const matches = compiled.get(pattern) ?? anyMatcher([pattern])
      compiled.set(pattern, matches)
      return matches(text)
    }))
}

/** @throws ConditionError where it is no condition, or one whose cost callers could drive up */
export function compileCondition(expression: string): Condition {
  const cel = celEnvironment()
  const parsed = ((): ReturnType<Environment['parse']> => {
    try {
      return cel.parse(expression)
    } catch (error) {
      throw new ConditionError(`is no CEL expression: ${firstLine(error)}`, howTo)
    }
  })()
  // Of what a caller sends: groups and scopes are few.
  const looksAtElements = checkCost(parsed.ast, false) && mentionsArguments(parsed.ast)
  const { valid, type, error } = parsed.check()
  if (!valid) throw new ConditionError(`is no condition: ${firstLine(error)}`, howTo)
  if (type !== 'bool' && type !== 'dyn')
    throw new ConditionError(`is a ${type}, and not true or false`, 'Compare it with something.')
  return (facts) => {
    const args = judgedArguments(facts.args, looksAtElements)
    if (args === undefined) return undefined
    try {
      const result: unknown = parsed({ ...facts, args })
      return typeof result === 'boolean' ? result : undefined
    } catch {
      return undefined
    }
  }
}

const howTo =
  'It may look at args, name, principal.kind, .issuer, .subject, .client, .key, .scopes, .groups, .roles, and now.'

const firstLine = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).split('\n', 1)[0] ?? ''

/** @returns does it look at elements one by one? @throws ConditionError */
function checkCost(node: ASTNode, isInMacro: boolean): boolean {
  const called = node.op === 'call' || node.op === 'rcall' ? node.args[0] : undefined
  const isMacro = called !== undefined && macros.has(called)
  if (isMacro && isInMacro)
    throw new ConditionError(
      `has ${called} within another one: its cost would grow with the square of the arguments`,
      'Write two rules, or compare with a list in the expression by "in".'
    )
  const remedy = called === undefined ? undefined : refused.get(called)
  if (remedy !== undefined) throw new ConditionError(`calls ${called}, which conditions may not`, remedy)
  if (node.op === 'rcall' && searches.has(node.args[0]) && node.args[2][0]?.op !== 'value')
    throw new ConditionError(
      `calls ${called} with a text that is not in the expression`,
      'Write the text in quotes: to look for what a caller gives could take very long.'
    )
  const inside = childrenOf(node).map((child) => checkCost(child, isInMacro || isMacro))
  return isMacro || inside.includes(true)
}

const mentionsArguments = (node: ASTNode): boolean =>
  (node.op === 'id' && node.args === 'args') || childrenOf(node).some(mentionsArguments)

const childrenOf = ({ args }: ASTNode): ASTNode[] => {
  const found: ASTNode[] = []
  const collect = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(collect)
    else if (isObject(value) && 'op' in value) found.push(value as unknown as ASTNode)
  }
  collect(args)
  return found
}

/** A number that is kept as it was written: servers read such numbers in several ways, and CEL would see a map. */
class InexactNumber {
  readonly isInexact = true
}
const inexactNumber = new InexactNumber()

/** @returns the arguments as CEL can judge them; undefined where they are more than elements are looked at of */
function judgedArguments(args: ConditionFacts['args'], looksAtElements: boolean): ConditionFacts['args'] | undefined {
  let values = 0
  let characters = 0
  function judged(value: unknown): unknown {
    values++
    if (typeof value === 'string') characters += value.length
    if (looksAtElements && (values > maxValues || characters > maxCharacters)) return undefined
    if (typeof value !== 'object' || value === null) return value
    if (isRawJson(value)) return inexactNumber
    if (Array.isArray(value)) {
      const items = value.map(judged)
      return items.some((item, at) => item !== value[at]) ? items : value
    }
    const entries = Object.entries(value)
    const changed = entries.map(([key, item]) => {
      characters += key.length
      return [key, judged(item)] as const
    })
    return changed.some(([, item], at) => item !== entries[at]?.[1]) ? Object.fromEntries(changed) : value
  }
  const result = judged(args)
  return looksAtElements && (values > maxValues || characters > maxCharacters)
    ? undefined
    : (result as ConditionFacts['args'])
}
