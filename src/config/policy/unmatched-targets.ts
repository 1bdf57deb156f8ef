// Warnings about rules and limits of a valid configuration that hold for less than they seem to: the upstreams and tags
// that they name are none that the tenant has.

import { anyMatcher } from '../../protocol/glob.ts'
import type { Steps } from '../../time/turns.ts'
import { countOf, didYouMean, quoted } from '../problems.ts'
import type { Endpoint, Tenant } from '../snapshot.ts'
import { hintTags, type PolicyConfig, type PolicyWhat } from './policy-config.ts'

/** The most of one tenant that are told one by one. */
const maxTold = 20

/** Without its kill switches: what is stopped is there. */
type Ruled = Pick<Tenant, 'id' | 'policy' | 'limits' | 'tags' | 'upstreams'> & {
  readonly endpoints: ReadonlyMap<string, Pick<Endpoint, 'name' | 'policy' | 'tools'>>
}

const rulesOf = (policy: PolicyConfig | undefined, of: string): Array<readonly [where: string, what: PolicyWhat]> =>
  (policy?.rules ?? []).map(({ name, what }) => [`the rule ${quoted(name)} of ${of}`, what])

/** Hints of tools are tags where an operator gives them, or trusts those of a server. */
function tagsOf({ tags, endpoints }: Ruled): ReadonlySet<string> {
  const own = [...tags.values()]
  const given = [...endpoints.values()].flatMap(({ tools = {} }) => Object.values(tools))
  const isTrusted = own.some(({ trustAnnotations }) => trustAnnotations)
  const hints = hintTags.filter(([hint]) => isTrusted || given.some(({ annotations }) => annotations?.[hint] === true))
  return new Set([...own.flatMap((each) => Object.keys(each.tags)), ...hints.map(([, tag]) => tag)])
}

/**
 * A step for each rule and limit.
 * @returns a sentence for each such name, which does not repeat it: it may come from a reference
 */
export function* unmatchedTargets(tenant: Ruled): Steps<string[]> {
  const { id, policy, limits = {}, endpoints } = tenant
  const upstreams = [...tenant.upstreams.keys()].map(String)
  const tags = tagsOf(tenant)
  const all = [
    ...rulesOf(policy, id),
    ...[...endpoints.values()].flatMap((each) => rulesOf(each.policy, `the endpoint ${each.name} of ${id}`)),
    ...Object.entries(limits).map(([name, { what }]) => [`the limit ${quoted(name)} of ${id}`, what] as const)
  ]
  const known = new Map<string, boolean>([['*', true]])
  function isUpstream(pattern: string): boolean {
    const found = known.get(pattern) ?? upstreams.some(anyMatcher([pattern]))
    known.set(pattern, found)
    return found
  }
  const told: string[] = []
  let more = 0
  for (const [where, what] of all) {
    yield
    for (const [member, isThere, there, said] of [
      ['upstreams', isUpstream, upstreams, 'no upstream that it has'],
      ['tags', (tag: string) => tags.has(tag), tags, 'a tag that none of its upstreams and endpoints gives']
    ] as const)
      for (const [index, name] of (what[member] ?? []).entries()) {
        if (isThere(name)) continue
        if (told.length === maxTold) {
          more++
          continue
        }
        const suggestion = didYouMean(name, there)
        told.push(`${where}: what.${member}[${index}] is ${said}.${suggestion === undefined ? '' : ` ${suggestion}`}`)
      }
  }
  return more === 0
    ? told
    : [...told, `${countOf(more, 'more name')} in rules and limits of ${id} stand for nothing that it has.`]
}
