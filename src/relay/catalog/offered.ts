// What an endpoint offers of what its upstreams have, by its `allow` and `deny`: patterns over upstream/name. Lists and
// look-ups ask the same functions, so that what is listed can be used and nothing else can.

import type { Endpoint, EndpointMember } from '../../config/snapshot.ts'
import { anyMatcher } from '../../protocol/glob.ts'
import { isPlainUri } from '../../protocol/plain-uri.ts'
import { isObject, type JsonObject, type UpstreamName } from '../../protocol/messages.ts'
import { hasCapability } from '../../protocol/methods.ts'
import { changedTool, changesResults } from '../../protocol/translate/change-tool.ts'
import { rewriteTool, type UriMap, withUri } from '../../protocol/translate/rewrite.ts'
import { withoutTaskSupport } from '../../protocol/translate/tasks.ts'
import type { Listing } from '../../upstream/listing/listing.ts'
import type { ListName, Route } from './catalog.ts'
import type { createPublicNames } from './public-names.ts'

export const listNames = ['tools', 'prompts', 'resources', 'templates'] as const

/** Entries of a list that are made, or judged, in one step: some 50 us. */
export const entriesOfStep = 64

/** @returns the entry of a list, made of that of an upstream */
export type MakeEntry = (item: JsonObject, offer: Pick<Offer, 'shown' | 'route'>) => JsonObject

/**
 * How a public name came about: the prefix and the own name; changed, because hosts would refuse the whole of these;
 * given by the endpoint; or it begins with the prefix of another member.
 */
type Naming = 'whole' | 'changed' | 'given' | 'elsewhere'

/** Its entry is made when somebody asks for it: the catalog of thousands is built in one turn of the event loop. */
export class Offer {
  /** The public name, or URI. */
  readonly shown: string
  readonly route: Route
  readonly naming: Naming
  /** As the upstream lists it; once it is made, the entry. */
  private item: JsonObject
  private make: MakeEntry | undefined

  constructor(shown: string, route: Route, item: JsonObject, make: MakeEntry, naming: Naming = 'whole') {
    this.shown = shown
    this.route = route
    this.item = item
    this.make = make
    this.naming = naming
  }

  get entry(): JsonObject {
    if (this.make !== undefined) this.item = this.make(this.item, this)
    this.make = undefined
    return this.item
  }
}

export function offeredBy({ allow, deny }: Pick<Endpoint, 'allow' | 'deny'>) {
  const rules = Object.fromEntries(
    listNames.map((kind) => [kind, { allowed: anyMatcher(allow?.[kind]), denied: anyMatcher(deny?.[kind] ?? []) }])
  ) as Record<ListName, Record<'allowed' | 'denied', (text: string) => boolean>>

  const hasRule = (kind: ListName): boolean => allow?.[kind] !== undefined || (deny?.[kind]?.length ?? 0) > 0
  const ruled = new Set(listNames.filter((kind) => hasRule(kind) || (kind === 'templates' && hasRule('resources'))))

  function offers(kind: ListName, upstream: UpstreamName, name: string): boolean {
    if (!ruled.has(kind)) return true
    const text = `${upstream}/${name}`
    const { allowed, denied } = rules[kind]
    // Who denies `secret://*` does not mean to offer `secret://{id}`.
    return allowed(text) && !denied(text) && !(kind === 'templates' && rules.resources.denied(text))
  }

  /** Could a rule take anything of this kind from the upstream? Known from the patterns alone, whatever it lists. */
  function restricts(kind: ListName, upstream: UpstreamName): boolean {
    const own = `${upstream}/`
    const all = new Set(['*', '*/*', `${own}*`])
    const concerns = (pattern: string): boolean => {
      const [start = ''] = pattern.split('*')
      return own.startsWith(start) || start.startsWith(own)
    }
    const isAllowedWhole = allow?.[kind]?.some((pattern) => all.has(pattern)) ?? true
    return !isAllowedWhole || (deny?.[kind]?.some(concerns) ?? false)
  }

  return {
    offers,
    /**
     * May a URI be read that no list shows? It has to be one that the patterns can be compared with; and where they
     * take templates away, one of a template that is left.
     */
    offersUnlisted({ upstream, name }: Route, isOfTemplate: (uri: string) => boolean): boolean {
      const [ofResources, ofTemplates] = [restricts('resources', upstream), restricts('templates', upstream)]
      if (!ofResources && !ofTemplates) return true
      return (
        isPlainUri(name) &&
        [name, name.replace(/[?#].*$/s, ''), name.replace(/\/*(?:[?#].*)?$/s, '')].every((each) =>
          offers('resources', upstream, each)
        ) &&
        (!ofTemplates || isOfTemplate(name))
      )
    },
    /** Whether the endpoint offers what `completion/complete` names: a template or a URI. */
    offersReference: ({ upstream, name }: Route): boolean =>
      name.includes('{') ? offers('templates', upstream, name) : offers('resources', upstream, name)
  }
}

/** What an endpoint offers of one upstream, whatever the others have; in the order of its lists. */
export interface MemberOffers {
  readonly tools: readonly Offer[]
  readonly prompts: readonly Offer[]
  readonly resources: readonly Offer[]
  readonly templates: readonly Offer[]
}

const known = new WeakMap<Endpoint, WeakMap<Listing, { readonly member: EndpointMember; readonly of: MemberOffers }>>()

/** @returns the offers of a member: where the listing of another has changed, they are not made again */
export function createMemberOffers(
  endpoint: Endpoint,
  { offers }: Pick<ReturnType<typeof offeredBy>, 'offers'>,
  { namesOf }: Pick<ReturnType<typeof createPublicNames>, 'namesOf'>,
  uriMap: (upstream: UpstreamName) => UriMap
) {
  const ofEndpoint = known.get(endpoint) ?? new WeakMap()
  known.set(endpoint, ofEndpoint)
  const isSingle = endpoint.members.length === 1
  const changes = new Map(Object.entries(endpoint.tools ?? {}))

  function make(member: EndpointMember, listing: Listing): MemberOffers {
    const { upstream } = member
    const map = uriMap(upstream)
    const named = namesOf(member)
    const hasTasks = isSingle || hasCapability(listing.capabilities, ['tasks', 'requests', 'tools', 'call'])
    const toolEntry: MakeEntry = (tool, { shown, route: { change } }) => {
      const own = change === undefined ? tool : changedTool(tool, change)
      return rewriteTool(hasTasks && !changesResults(change) ? own : withoutTaskSupport(own), shown, map)
    }
    const promptEntry: MakeEntry = (prompt, { shown, route }) =>
      route.name === shown ? prompt : { ...prompt, name: shown }
    const tools: Offer[] = []
    for (const tool of listing.tools) {
      const name = String(tool['name'])
      if (!offers('tools', upstream, name)) continue
      const { annotations } = tool
      const change = changes.size === 0 ? undefined : changes.get(`${upstream}/${name}`)
      const route = isObject(annotations) ? { upstream, name, annotations } : { upstream, name }
      tools.push(named(tool, change === undefined ? route : { ...route, change }, toolEntry))
    }
    const prompts: Offer[] = []
    for (const prompt of listing.prompts) {
      const name = String(prompt['name'])
      if (offers('prompts', upstream, name)) prompts.push(named(prompt, { upstream, name }, promptEntry))
    }
    function withUris(kind: 'resources' | 'templates', key: 'uri' | 'uriTemplate'): Offer[] {
      const entry: MakeEntry = (item, { shown }) => withUri(item, key, () => shown)
      const made: Offer[] = []
      for (const item of listing[kind]) {
        const name = String(item[key])
        if (offers(kind, upstream, name))
          made.push(new Offer(map(name), { upstream, name, listedAs: name }, item, entry))
      }
      return made
    }
    return { tools, prompts, resources: withUris('resources', 'uri'), templates: withUris('templates', 'uriTemplate') }
  }

  return (member: EndpointMember, listing: Listing): MemberOffers => {
    const before = ofEndpoint.get(listing)
    if (before?.member === member) return before.of
    const of = make(member, listing)
    ofEndpoint.set(listing, { member, of })
    return of
  }
}

/** Returns a value for each list, made when it is asked for first. */
export function lazily<T>(make: (name: ListName) => readonly T[]): Readonly<Record<ListName, readonly T[]>> {
  const made: Partial<Record<ListName, readonly T[]>> = {}
  const of = (name: ListName): readonly T[] => (made[name] ??= make(name))
  return {
    get tools() {
      return of('tools')
    },
    get prompts() {
      return of('prompts')
    },
    get resources() {
      return of('resources')
    },
    get templates() {
      return of('templates')
    }
  }
}
