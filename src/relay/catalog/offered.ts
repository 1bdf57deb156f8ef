// What an endpoint offers of what its upstreams have, by its `allow` and `deny`: patterns over upstream/name. Lists and
// look-ups ask the same functions, so that what is listed can be used and nothing else can.

import type { Endpoint } from '../../config/snapshot.ts'
import { anyMatcher } from '../../protocol/glob.ts'
import { isPlainUri } from '../../protocol/plain-uri.ts'
import type { UpstreamName } from '../../protocol/messages.ts'
import type { ListName, Route } from './catalog.ts'

const kinds = ['tools', 'prompts', 'resources', 'templates'] as const

export function offeredBy({ allow, deny }: Pick<Endpoint, 'allow' | 'deny'>) {
  const rules = Object.fromEntries(
    kinds.map((kind) => [kind, { allowed: anyMatcher(allow?.[kind]), denied: anyMatcher(deny?.[kind] ?? []) }])
  ) as Record<ListName, Record<'allowed' | 'denied', (text: string) => boolean>>

  function offers(kind: ListName, upstream: UpstreamName, name: string): boolean {
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
