// The syntax of conditions in policy rules: the subset of CEL whose cost follows from the expression and the size of
// its operands. Callers choose the arguments of calls, so everything else is refused when a configuration is read.

import type { ASTNode } from '@marcbachmann/cel-js'
import { isObject } from '../../protocol/messages.ts'

/** What is wrong with an expression, without a full stop, and what to do. */
export class ConditionError extends Error {
  override readonly name = 'ConditionError'
  readonly remedy: string

  constructor(message: string, remedy: string) {
    super(message)
    this.remedy = remedy
  }
}

/** Members of `args`, from the outside in; empty: all of them. */
export type ArgumentPath = readonly string[]

export interface ConditionSyntax {
  /** Parts of the expression. */
  readonly nodes: number
  /** The paths of arguments whose values are read, not only tested by `has`. */
  readonly paths: readonly ArgumentPath[]
  /** The paths of arguments that are compared with a string, a number or a boolean. */
  readonly typed: ReadonlyArray<{ readonly path: ArgumentPath; readonly type: string }>
  readonly principal: ReadonlySet<string>
  /** Whether it tests for a member of the principal, as `has(principal.subject)` does. */
  readonly asksForMember: boolean
  /** Time zones. */
  readonly zones: readonly string[]
  readonly networks: readonly string[]
  /** Whether a macro (`all`, `exists`, `exists_one`) iterates, and whether it reads arguments in each iteration. */
  readonly repeats: { readonly elements: boolean; readonly args: boolean }
}

/** They look at the elements of a list, or the names of a map, one by one. */
const macros = new Set(['all', 'exists', 'exists_one'])
const timeParts = ['FullYear', 'Month', 'Date', 'DayOfMonth', 'DayOfWeek', 'DayOfYear', 'Hours', 'Minutes']
const known = new Set([
  ...macros,
  ...['has', 'size', 'type', 'startsWith', 'endsWith', 'contains', 'glob', 'at', 'inNetwork'],
  ...timeParts.map((part) => `get${part}`)
])
const principalMembers = ['kind', 'issuer', 'subject', 'client', 'key', 'scopes', 'groups', 'roles']

/** @throws ConditionError */
export function readSyntax(expression: ASTNode): ConditionSyntax {
  const paths: ArgumentPath[] = []
  const typed: Array<{ path: ArgumentPath; type: string }> = []
  const principal = new Set<string>()
  const zones: string[] = []
  const networks: string[] = []
  const repeats = { args: false, elements: false }
  let nodes = 0
  let asksForMember = false

  function read(node: ASTNode, isInMacro: boolean): void {
    nodes++
    const path = pathOf(node, 'args')
    if (path !== undefined) {
      paths.push(path)
      if (isInMacro) repeats.args = true
      // `args[principal.subject]`: the key is read, too.
      if (node.op === '[]') read(node.args[1], isInMacro)
      return
    }
    const [member, ...deeper] = pathOf(node, 'principal') ?? []
    if (member !== undefined || (node.op === 'id' && node.args === 'principal')) {
      if (member === undefined || deeper.length > 0 || !principalMembers.includes(member))
        throw new ConditionError(
          `looks at ${member === undefined ? 'the whole principal' : `principal.${[member, ...deeper].join('.')}`}`,
          `Known: ${principalMembers.map((each) => `principal.${each}`).join(', ')}.`
        )
      principal.add(member)
      return
    }
    compare(node)
    const isMacro = call(node, isInMacro)
    if (isMacro) repeats.elements = true
    const named = node.op !== 'rcall' ? undefined : { at: zones, inNetwork: networks }[node.args[0]]
    if (node.op === 'rcall' && named !== undefined) {
      const [text] = node.args[2]
      if (typeof text?.args === 'string') named.push(text.args)
    }
    if (node.op === 'call' && node.args[0] === 'has') return hasMember(node, isInMacro)
    // The range of a macro is looked at once.
    if (isMacro && node.op === 'rcall') {
      read(node.args[1], isInMacro)
      for (const child of node.args[2]) read(child, true)
    } else for (const child of childrenOf(node)) read(child, isInMacro)
  }

  /** `has(args.x)` does not look at `x`. */
  function hasMember(node: ASTNode, isInMacro: boolean): void {
    const [inner] = childrenOf(node)
    if (inner !== undefined && pathOf(inner, 'principal') !== undefined) asksForMember = true
    if (inner !== undefined && pathOf(inner, 'args') === undefined) read(inner, isInMacro)
  }

  function compare(node: ASTNode): void {
    if (node.op === '==' || node.op === '!=') {
      const [left, right] = node.args
      for (const [one, other] of [
        [left, right],
        [right, left]
      ] as const) {
        const path = pathOf(one, 'args')
        const type = typeOf(other)
        if (path !== undefined && type !== undefined) typed.push({ path, type })
      }
    }
    if (node.op === 'in' && node.args[1].op === 'list') {
      const path = pathOf(node.args[0], 'args')
      const types = new Set(node.args[1].args.map(typeOf))
      const [type] = types
      if (path !== undefined && types.size === 1 && type !== undefined) typed.push({ path, type })
    }
  }

  read(expression, false)
  return { nodes, paths, typed, principal, asksForMember, zones, networks, repeats }
}

/** @returns is it a macro? @throws ConditionError for what conditions may not call */
function call(node: ASTNode, isInMacro: boolean): boolean {
  if (node.op !== 'call' && node.op !== 'rcall') return false
  const [name] = node.args
  if (!known.has(name))
    throw new ConditionError(
      `calls ${name}, which conditions may not`,
      name === 'matches' ? 'Use glob("..."), in which * stands for any characters.' : `Known: ${[...known].join(', ')}.`
    )
  const [first] = node.op === 'rcall' ? node.args[2] : node.args[1]
  if ((name === 'contains' || name === 'glob') && typeOf(first) !== 'string')
    throw new ConditionError(
      `calls ${name} with a text that is not in the expression`,
      'Write the text in quotes: to look for what a caller gives could take very long.'
    )
  if (name === 'inNetwork' && typeOf(first) !== 'string')
    throw new ConditionError('calls inNetwork without a network in quotes', 'Write address.inNetwork("10.0.0.0/8").')
  if (name === 'at' && (typeOf(first) !== 'string' || isInMacro))
    throw new ConditionError(
      'calls at without a time zone in quotes, or for each element',
      'Write now.at("Europe/Berlin"), outside of all, exists and exists_one.'
    )
  if (name.startsWith('get') && first !== undefined)
    throw new ConditionError(`calls ${name} with a time zone`, `Write now.at("Europe/Berlin").${name}().`)
  if (macros.has(name) && isInMacro)
    throw new ConditionError(
      `has ${name} within another one: its cost would grow with the square of the arguments`,
      'Write two rules, or compare with a list in the expression by "in".'
    )
  return macros.has(name)
}

/** @returns the members that are selected of the variable; undefined where it is another expression */
function pathOf(node: ASTNode, variable: string): ArgumentPath | undefined {
  if (node.op === 'id') return node.args === variable ? [] : undefined
  if (node.op === '.') {
    const inner = pathOf(node.args[0], variable)
    return inner === undefined ? undefined : [...inner, node.args[1]]
  }
  if (node.op !== '[]') return undefined
  const [of, key] = node.args
  const inner = pathOf(of, variable)
  // Of an element that only the call names, all of the list or map is looked at.
  return inner !== undefined && key.op === 'value' && typeof key.args === 'string' ? [...inner, key.args] : inner
}

/** The `typeof` of a literal; undefined for other expressions. CEL writes whole numbers as bigint. */
function typeOf(node: ASTNode | undefined): string | undefined {
  if (node?.op !== 'value' || node.args === null || typeof node.args === 'object') return undefined
  return typeof node.args === 'bigint' ? 'number' : typeof node.args
}

function childrenOf({ args }: ASTNode): ASTNode[] {
  const found: ASTNode[] = []
  const collect = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(collect)
    else if (isObject(value) && 'op' in value) found.push(value as unknown as ASTNode)
  }
  collect(args)
  return found
}
