// Kill switches of tenants, of the file and of documents: kept beside the documents, so that a rollback takes none
// back, and put into the snapshot of every process.

import { frozenMap } from '../config/compile.ts'
import { isTree, listOf, treeOf } from '../config/shape.ts'
import type { AuthConfig } from '../config/auth/auth-config.ts'
import type { Kill, KillInForce } from '../config/policy/kill.ts'
import type { Tenant } from '../config/snapshot.ts'
import type { PolicyConfig } from '../config/policy/policy-config.ts'
import { endpointName, upstreamName } from '../protocol/messages.ts'
import { canonicalJsonOf } from '../protocol/json-text.ts'
import { ControlError } from './control-error.ts'
import { alsoStoppedIn, issuerOfKeys, type SameTarget } from './same-targets.ts'
import type { KeptText } from './version-records.ts'

/** Of the names of lists of kills in the journal. */
export const killsPrefix = 'kills/'
/** Of the names of what is known besides of what these stop. */
export const targetsPrefix = 'kill-targets/'
/** Of a tenant, by its own administrators; and as many by those of the platform, to whom they leave room. */
const maxKills = 1_000
/** Of these as JSON. */
const maxKillChars = 128 * 1024

/** When it was stopped, and by which admin key. Lists of before roles were kept have none. */
export type DatedKill = Kill & {
  readonly at: string
  readonly by: string
  readonly role?: string
  readonly same?: SameTarget
}

/** And the version that changed them last. */
export type KillsByTenant = ReadonlyMap<string, { readonly version: number; readonly kills: readonly DatedKill[] }>

/** @param known those of before, which stay the same objects where they have not changed */
export function killsIn(texts: ReadonlyMap<string, KeptText>, known: KillsByTenant): KillsByTenant {
  const found = [...texts].flatMap(([name, { version: own, text }]) => {
    if (text === undefined || !name.startsWith(killsPrefix)) return []
    const id = name.slice(killsPrefix.length)
    const targets = texts.get(targetsPrefix + id)
    const version = Math.max(own, targets?.version ?? 0)
    const before = known.get(id)
    if (before?.version === version) return [[id, before] as const]
    const sameOf = treeOf(targets?.text === undefined ? undefined : JSON.parse(targets.text))
    const kills = listOf(JSON.parse(text)).filter(isTree) as unknown as DatedKill[]
    const whole = kills.map(({ same: _same, ...kill }): DatedKill => {
      const same = Object.hasOwn(sameOf, keyOfKill(kill)) ? sameOf[keyOfKill(kill)] : undefined
      return { ...kill, ...(isTree(same) && { same }) }
    })
    return [[id, { version, kills: whole }] as const]
  })
  return new Map(found)
}

/**
 * By what targets are known is kept beside the list: earlier versions compare kills by all that they hold.
 * @returns new texts by name; undefined: removed
 */
export function killTexts(
  tenant: string,
  before: readonly DatedKill[],
  after: readonly DatedKill[]
): ReadonlyMap<string, string | undefined> {
  const targets = after.flatMap((kill) => (kill.same === undefined ? [] : [[keyOfKill(kill), kill.same] as const]))
  const hasTargets = [...before, ...after].some(({ same }) => same !== undefined)
  const list = after.map(({ same: _same, ...kill }) => kill)
  const texts: Array<[name: string, text: string | undefined]> = [
    [killsPrefix + tenant, list.length === 0 ? undefined : JSON.stringify(list)]
  ]
  if (hasTargets)
    texts.push([targetsPrefix + tenant, targets.length === 0 ? undefined : JSON.stringify(Object.fromEntries(targets))])
  return new Map(texts)
}

/** Without what a later version adds. */
export function stoppedThing(kill: Kill): Kill {
  switch (kill.kind) {
    case 'tool':
      return { kind: 'tool', upstream: kill.upstream, tool: kill.tool }
    case 'upstream':
      return { kind: 'upstream', upstream: kill.upstream }
    case 'principal':
      return { kind: 'principal', issuer: kill.issuer, subject: kill.subject }
    case 'key':
      return { kind: 'key', key: kill.key }
    case 'tenant':
      return { kind: 'tenant' }
  }
}

const keyOfKill = (kill: Kill): string => canonicalJsonOf(stoppedThing(kill))

/** Of those whose author is not known, too: a tenant-admin must not start what may be a platform-admin's to start. */
export const isOfPlatform = ({ role }: DatedKill): boolean => role !== 'tenant-admin'

export const isSameKill = (one: Kill, other: Kill): boolean => keyOfKill(one) === keyOfKill(other)

/** @returns undefined where it is among them already. @throws ControlError limit_reached */
export function withKill(kills: readonly DatedKill[], kill: DatedKill): readonly DatedKill[] | undefined {
  if (kills.some((each) => isSameKill(each, kill))) return undefined
  const ofSameSide = kills.filter((each) => isOfPlatform(each) === isOfPlatform(kill))
  if (ofSameSide.length < maxKills && JSON.stringify([...ofSameSide, kill]).length <= maxKillChars)
    return [...kills, kill]
  throw new ControlError(
    'limit_reached',
    `The tenant has ${ofSameSide.length} kill switches, and no room for more.`,
    'Stop the whole tenant, or remove some.'
  )
}

/** The tenant without what is stopped. */
export function stoppedTenant(tenant: Tenant, dated: readonly DatedKill[]): Tenant {
  if (dated.length === 0) return tenant
  const alsoStopped = alsoStoppedIn(tenant)
  const kills = dated.map((each): KillInForce => {
    const kill = stoppedThing(each)
    return { kill, also: alsoStopped(kill, each.same) }
  })
  const names = new Set<string>(
    kills.flatMap(({ kill, also }) => (kill.kind === 'upstream' ? [kill.upstream, ...also] : []))
  )
  const isWhole = kills.some(({ kill }) => kill.kind === 'tenant')
  const left = [...tenant.upstreams].filter(([name]) => !isWhole && !names.has(name))
  return {
    ...tenant,
    kills,
    unstopped: tenant,
    // New ones: what was decided and listed for an endpoint is remembered by it.
    endpoints: frozenMap(Object.fromEntries(tenant.endpoints), endpointName, ({ members, ...rest }) => ({
      ...rest,
      members: members.filter(({ upstream }) => !isWhole && !names.has(upstream))
    })),
    upstreams: frozenMap(Object.fromEntries(left), upstreamName, (definition) => definition),
    auth: stoppedAuth(tenant.auth, kills, isWhole),
    policy: stoppedPolicy(tenant.policy, kills)
  }
}

/** Keys stay known: whoever uses a stopped one is told so, and named in the log and the audit log. */
function stoppedAuth(auth: AuthConfig, kills: readonly KillInForce[], isWhole: boolean): AuthConfig {
  const callers = kills.flatMap(({ kill, also }) => {
    if (kill.kind !== 'key' && kill.kind !== 'principal') return []
    const named =
      kill.kind === 'key' ? { issuer: issuerOfKeys, subject: kill.key } : { issuer: kill.issuer, subject: kill.subject }
    return [named, ...[...also].map((subject) => ({ issuer: issuerOfKeys, subject }))]
  })
  return { ...auth, stopped: isWhole ? 'everybody' : callers }
}

/**
 * Lists and calls ask the same evaluator: what is stopped is as unknown as what nobody has. One rule for all tools that
 * are stopped at the same upstreams: a tool of a server with many names must not become as many rules.
 */
function stoppedPolicy(policy: PolicyConfig | undefined, kills: readonly KillInForce[]): PolicyConfig | undefined {
  const tools = new Map<string, Map<ReadonlySet<string>, string[]>>()
  for (const { kill, also } of kills) {
    if (kill.kind !== 'tool') continue
    const ofUpstream = tools.get(kill.upstream) ?? new Map<ReadonlySet<string>, string[]>()
    const names = ofUpstream.get(also) ?? []
    names.push(kill.tool)
    tools.set(kill.upstream, ofUpstream.set(also, names))
  }
  const rules = [...tools].flatMap(([upstream, groups]) =>
    [...groups].map(([also, names]) => ({
      name: 'kill switch',
      effect: 'deny' as const,
      who: {},
      what: { upstreams: [upstream, ...also], names, kinds: ['tool' as const] },
      scopes: []
    }))
  )
  if (rules.length === 0) return policy
  return { ...policy, default: policy?.default ?? 'allow', rules: [...rules, ...(policy?.rules ?? [])] }
}
