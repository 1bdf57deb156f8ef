// Rules between values of a policy: of names, scopes and principals, and of conditions.

import { compileCondition } from './condition.ts'
import { ConditionError } from './condition-syntax.ts'
import { checkDoubles, type Path, type Report } from '../problems.ts'
import { listOf, stringOrNone, treeOf, type Tree } from '../shape.ts'

/** Checks the policy of a tenant, or of an endpoint of one. */
export function checkPolicy(
  { policy }: Tree,
  place: Path,
  report: Report,
  { auth }: Tree,
  isInserted: (path: Path) => boolean
): void {
  const path = [...place, 'policy', 'rules']
  const rules = listOf(treeOf(policy)['rules']).map(treeOf)
  const isAmbiguous = listOf(treeOf(auth)['issuers']).length > 1
  checkDoubles(
    rules.map(({ name }) => stringOrNone(name)),
    (index) => [...path, index, 'name'],
    'is the same name as that of',
    report
  )
  rules.forEach(({ effect, scopes, who, what, when }, index) => {
    if (effect === 'requires' && listOf(scopes).length === 0)
      report.add([...path, index], 'requires no scopes', 'List them under scopes, or remove the rule.')
    if (effect !== 'requires' && listOf(scopes).length > 0)
      report.add([...path, index, 'scopes'], 'belongs to rules with effect: requires', 'Remove it, or use who.scopes.')
    const { subjects, issuers } = treeOf(who)
    const namesIssuer = !isAmbiguous || issuers !== undefined
    if (!namesIssuer && subjects !== undefined)
      report.add(
        [...path, index, 'who'],
        'names subjects, and the tenant has several issuers: the same subject of two of them is two people',
        'Add the issuers that are meant.'
      )
    if (typeof when !== 'string') return
    const members = checkCondition(when, treeOf(what)['kinds'], [...path, index, 'when'], report, isInserted)
    if (!namesIssuer && (members.has('subject') || members.has('client')) && !members.has('issuer'))
      report.add(
        [...path, index, 'when'],
        'looks at a subject or client, and the tenant has several issuers: the same name of two of them is two people',
        'Add who.issuers, or principal.issuer to the condition.'
      )
  })
}

const numbers = ['perSecond', 'perMinute', 'perHour', 'perDay', 'perMonth', 'concurrent']

/** Limits of calls of a tenant. */
export function checkCallLimits({ limits }: Tree, place: Path, report: Report): void {
  for (const [name, limit] of Object.entries(treeOf(limits))) {
    const given = treeOf(limit)
    const path = [...place, 'limits', name]
    if (!numbers.some((each) => given[each] !== undefined))
      report.add(path, 'limits nothing', `Give one of ${numbers.join(', ')}.`)
    if (given['burst'] !== undefined && !numbers.slice(0, 3).some((each) => given[each] !== undefined))
      report.add([...path, 'burst'], 'belongs to perSecond, perMinute or perHour', 'Add one of these, or remove it.')
  }
}

/**
 * @param isInserted does the text at a path come from references? Then nothing of it is quoted
 * @returns the members of the principal that it looks at
 */
function checkCondition(
  when: string,
  kinds: unknown,
  path: Path,
  report: Report,
  isInserted: (path: Path) => boolean
): ReadonlySet<string> {
  // A template is listed, and nobody calls it: its resources are read.
  const judged = new Set(['tool', 'prompt', 'resource'])
  if (listOf(kinds).length === 0 || !listOf(kinds).every((kind) => judged.has(String(kind))))
    report.add(
      path,
      'is judged for calls of tools and prompts and for reads of resources only',
      'Add what.kinds: [tool], [prompt], [resource], or several of these.'
    )
  try {
    return compileCondition(when).principal
  } catch (error) {
    if (!(error instanceof ConditionError)) throw error
    if (isInserted(path)) report.add(path, 'refers to what is no condition', 'Write the condition itself here.')
    else report.add(path, error.message, error.remedy)
    return new Set()
  }
}
