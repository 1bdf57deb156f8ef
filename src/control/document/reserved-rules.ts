// What reserved rules look at, a tenant-admin gives nobody: a scope that they ask for, the name of a key that they
// allow, an issuer whose tokens say anything, a tag. Else whoever may not change a rule could still decide its outcome.

import { ConditionError } from '../../config/policy/condition-syntax.ts'
import { compileCondition, type Condition } from '../../config/policy/condition.ts'
import { hintTags, isReserved } from '../../config/policy/policy-config.ts'
import { isTree, listOf, stringOrNone, treeOf, type Tree } from '../../config/shape.ts'
import { anyMatcher } from '../../protocol/glob.ts'
import { canonicalJsonOf } from '../../protocol/json-text.ts'
import { ControlError } from '../control-error.ts'
import { hasReference } from './tenant-document.ts'

interface ReservedRule {
  readonly name: string
  readonly effect: unknown
  readonly who: Readonly<Record<string, readonly string[]>>
  /** The scopes that the rule requires. */
  readonly scopes: readonly string[]
  readonly tags: readonly string[]
  /** Members of the principal that its condition looks at; undefined: what it says stands elsewhere. */
  readonly looksAt: ReadonlySet<string> | undefined
  /** Whether its condition holds where an argument is absent. */
  readonly holdsByAbsence: boolean
  readonly neverHolds: Condition['neverHolds']
}

const textsIn = (value: unknown): string[] => listOf(value).map(String)

function reservedRule(rule: Tree): ReservedRule {
  const { name, effect, who, what, scopes, when } = rule
  const condition = hasReference(rule) ? undefined : conditionIn(when)
  return {
    name: stringOrNone(name) ?? '',
    effect,
    who: Object.fromEntries(Object.entries(treeOf(who)).map(([member, values]) => [member, textsIn(values)])),
    scopes: textsIn(scopes),
    tags: textsIn(treeOf(what)['tags']),
    looksAt: condition?.principal,
    holdsByAbsence: condition?.holdsByAbsence ?? false,
    neverHolds: condition?.neverHolds ?? (() => false)
  }
}

function conditionIn(when: unknown): Omit<Condition, 'holds'> | undefined {
  if (typeof when !== 'string') return { principal: new Set(), holdsByAbsence: false, neverHolds: () => false }
  try {
    return compileCondition(when)
  } catch (error) {
    // Written by another version: what it looks at is not known.
    if (error instanceof ConditionError) return undefined
    throw error
  }
}

/** Returns the rules of reserved parts: of the tenant, of endpoints, of upstreams. */
function reservedRules({ reserved, policy, endpoints, upstreams, limits }: Tree): ReservedRule[] {
  const places = textsIn(reserved)
  const reservedIn = (part: string, members: unknown): Array<[name: string, member: Tree]> =>
    Object.entries(treeOf(members)).flatMap(([name, member]) =>
      isReserved(places, `${part}/${name}`) ? [[name, treeOf(member)]] : []
    )
  const rulesIn = (value: unknown): Tree[] => listOf(treeOf(value)['rules']).map(treeOf)
  const requiredBy = ([name, { requires }]: readonly [string, Tree]): Tree[] =>
    requires === undefined
      ? []
      : [{ name: `requires of ${name}`, effect: 'requires', scopes: treeOf(requires)['scopes'] }]
  return [
    ...(isReserved(places, 'policy/rules') ? rulesIn(policy) : []),
    ...reservedIn('endpoints', endpoints).flatMap(([name, endpoint]) => [
      ...rulesIn(endpoint['policy']),
      ...requiredBy([name, endpoint]),
      ...Object.entries(treeOf(endpoint['tools'])).flatMap(([tool, change]) => requiredBy([tool, treeOf(change)]))
    ]),
    ...reservedIn('upstreams', upstreams).flatMap(requiredBy),
    // What a limit counts by a tag is counted no more where the tag goes.
    ...reservedIn('limits', limits).map(([name, { what }]): Tree => ({ name: `limit ${name}`, effect: 'deny', what }))
  ].map(reservedRule)
}

/** @throws ControlError forbidden */
export function checkReservedRules(before: Tree, next: Tree): void {
  const rules = reservedRules(before)
  if (rules.length === 0) return
  checkKeys(before, next, rules)
  checkIssuers(before, next, rules)
  checkTags(before, next, rules)
  checkHints(before, next, rules)
}

function checkKeys(before: Tree, next: Tree, rules: readonly ReservedRule[]): void {
  const keysOf = ({ auth }: Tree): readonly unknown[] => listOf(treeOf(auth)['keys'])
  const known = new Set(keysOf(before).map(canonicalJsonOf))
  const grantable = new Set(textsIn(before['grantableScopes']))
  const given = rules.map((rule) => [rule, keyGiver(rule)] as const)
  for (const key of keysOf(next).filter(isTree)) {
    if (known.has(canonicalJsonOf(key))) continue
    const name = stringOrNone(key['name']) ?? ''
    const scopes = textsIn(key['scopes']).filter((scope) => !grantable.has(scope))
    for (const [rule, gives] of given) {
      const what = gives(name, scopes)
      if (what !== undefined) throw refusedBy(rule, `gives the key ${JSON.stringify(name)} ${what}`, forKeys)
    }
  }
}

/** Members of `who` that only tokens have: a rule with one of them is about no key. */
const tokenMembers: ReadonlySet<string> = new Set(['issuers', 'subjects', 'clients', 'groups', 'roles'])
const isEverything = (patterns: readonly string[] | undefined): boolean => patterns?.includes('*') ?? true

/** @returns what of a key with this name, and these scopes that not everybody may give, the rule looks at */
function keyGiver({
  effect,
  who,
  scopes: required,
  looksAt,
  holdsByAbsence,
  neverHolds
}: ReservedRule): (name: string, scopes: readonly string[]) => string | undefined {
  if (looksAt === undefined) return () => 'what a rule looks at that refers to variables or files'
  if (Object.keys(who).some((member) => tokenMembers.has(member))) return () => undefined
  const { keys, scopes: allowed } = who
  const [isKey, isScope] = [anyMatcher(keys), anyMatcher(allowed)]
  const isOfEveryKey = isEverything(keys) && isEverything(allowed)
  const givesAccess = effect === 'allow' && !isOfEveryKey
  // `!("contractors" in principal.groups)`: a key has no groups, and is no contractor. Nor has it a subject, an issuer
  // or a client: `!has(principal.client)`.
  const allowsByAbsence = effect === 'allow' && isOfEveryKey && holdsByAbsence
  return (name, scopes) => {
    const asked = effect === 'requires' ? scopes.find((scope) => required.includes(scope)) : undefined
    if (asked !== undefined) return `the scope ${JSON.stringify(asked)}`
    if (looksAt.has('key')) return 'a name'
    if (looksAt.has('scopes') && scopes.length > 0) return 'scopes'
    if (allowsByAbsence && !neverHolds({ kind: 'key', key: name, scopes, groups: [], roles: [] }))
      return 'what it is: a key, with no issuer, subject, client, groups, roles or scopes of its own'
    if (!givesAccess || !isKey(name)) return undefined
    if (isEverything(allowed)) return 'its name'
    const scope = scopes.find(isScope)
    return scope === undefined ? undefined : `the scope ${JSON.stringify(scope)}`
  }
}

/** Whoever chooses an issuer, or what the login front says, chooses what tokens say; without any, nobody is anybody. */
function checkIssuers(before: Tree, next: Tree, rules: readonly ReservedRule[]): void {
  const rule = rules.find(
    ({ effect, who, looksAt }) =>
      effect === 'requires' ||
      looksAt === undefined ||
      looksAt.size > 0 ||
      Object.keys(who).some((member) => member !== 'keys' || effect === 'deny')
  )
  if (rule === undefined) return
  const old = treeOf(before['auth'])
  const { auth } = next
  if (!isTree(auth) && isTree(before['auth'])) throw refusedBy(rule, 'lets everybody in without saying who they are')
  const { issuers, login } = treeOf(auth)
  const known = new Set(listOf(old['issuers']).map(canonicalJsonOf))
  if (listOf(issuers).some((each) => !known.has(canonicalJsonOf(each))))
    throw refusedBy(rule, 'changes an issuer, and so what tokens may say')
  const saidBy = (front: unknown): string => {
    const { provider, scopes } = treeOf(front)
    return canonicalJsonOf([provider ?? null, scopes ?? null])
  }
  if (login !== undefined && saidBy(login) !== saidBy(old['login']))
    throw refusedBy(rule, 'changes what tokens of the login front may say')
}

const hints: ReadonlySet<string> = new Set(hintTags.map(([, tag]) => tag))

/**
 * Tags that rules look at stay where they are; an upstream that is new has none of those that rules allow, and one that
 * goes has none of the others: it could come back without, and connected accounts belong to its name.
 */
function checkTags(before: Tree, next: Tree, rules: readonly ReservedRule[]): void {
  const [old, wanted] = [treeOf(before['upstreams']), treeOf(next['upstreams'])]
  for (const rule of rules)
    for (const tag of rule.tags) {
      const tagged = (upstream: unknown): string => {
        const { tags, trustAnnotations } = treeOf(upstream)
        return canonicalJsonOf([treeOf(tags)[tag] ?? null, hints.has(tag) && trustAnnotations === true])
      }
      for (const name of new Set([...Object.keys(old), ...Object.keys(wanted)])) {
        const [isOld, isWanted] = [Object.hasOwn(old, name), Object.hasOwn(wanted, name)]
        if (!(isOld && isWanted) && isOld === (rule.effect === 'allow')) continue
        if (tagged(isOld ? old[name] : {}) === tagged(isWanted ? wanted[name] : {})) continue
        const does = isWanted ? 'changes' : 'takes away'
        throw refusedBy(rule, `${does} the tag ${JSON.stringify(tag)} of the upstream ${JSON.stringify(name)}`)
      }
    }
}

/** Hints that endpoints give tools are tags there: those of before stay, and a new endpoint has none that helps. */
function checkHints(before: Tree, next: Tree, rules: readonly ReservedRule[]): void {
  const [old, wanted] = [treeOf(before['endpoints']), treeOf(next['endpoints'])]
  for (const { rule, hint, tag } of rules.flatMap((rule) =>
    hintTags.flatMap(([hint, tag]) => (rule.tags.includes(tag) ? [{ rule, hint, tag }] : []))
  ))
    for (const [name, endpoint] of Object.entries(wanted)) {
      const hintsOf = (tools: unknown, tool: string): unknown =>
        treeOf(treeOf(treeOf(tools)[tool])['annotations'])[hint]
      const [was, is] = [treeOf(old[name])['tools'], treeOf(endpoint)['tools']]
      const helps = rule.effect === 'allow'
      const isNew = !Object.hasOwn(old, name)
      for (const tool of new Set([...Object.keys(treeOf(was)), ...Object.keys(treeOf(is))])) {
        const [had, has] = [hintsOf(was, tool), hintsOf(is, tool)]
        if (isNew ? has !== helps : had === has) continue
        const of = `of ${JSON.stringify(tool)} at the endpoint ${JSON.stringify(name)}`
        throw refusedBy(rule, `changes ${hint} ${of}, and so the tag ${JSON.stringify(tag)}`)
      }
    }
}

const forKeys = 'Ask a platform-admin to make the key, or to list its scopes under grantableScopes of the tenant.'

const refusedBy = ({ name }: ReservedRule, what: string, remedy = 'Ask a platform-admin.'): ControlError =>
  new ControlError(
    'forbidden',
    `This ${what}: the rule ${JSON.stringify(name)} looks at that, and is reserved for platform-admins.`,
    remedy
  )
