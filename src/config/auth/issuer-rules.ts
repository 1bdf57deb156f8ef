// Rules between values of the issuers of a tenant: the settings that their providers need, and the values of
// placeholders.

import { checkDoubles, type Path, type Report } from '../problems.ts'
import { listOf, stringOrNone, treeOf, type Tree } from '../shape.ts'
import { placeholderOf, withPlaceholder } from './auth-config.ts'
import { isProviderName, providerPresets, type ProviderName } from './providers/presets.ts'

/**
 * @param endpoints of the tenant
 * @param path of `issuers`
 */
export function checkIssuers(issuers: readonly Tree[], endpoints: Tree, path: Path, report: Report): void {
  const hasEndpointAudience = Object.values(endpoints).some(
    (endpoint) => listOf(treeOf(endpoint)['audiences']).length > 0
  )
  const asked = issuers.flatMap(({ introspection }, index) => (introspection === undefined ? [] : [index]))
  if (asked.length > 1 || (asked[0] !== undefined && placeholderOf(stringOrNone(issuers[asked[0]]?.['issuer']) ?? '')))
    report.add(
      [...path, asked.at(-1) ?? 0, 'introspection'],
      'would send the opaque tokens of one issuer to another: a token does not say whose it is',
      'Give one issuer of the tenant introspection, without a placeholder.'
    )
  const namedAt: number[] = []
  const names = issuers.flatMap(({ issuer, placeholderValues }, at) => {
    const text = stringOrNone(issuer)
    const values = listOf(placeholderValues).flatMap((value) => stringOrNone(value) ?? [])
    const all = text === undefined || placeholderOf(text) === undefined ? [text] : withPlaceholder(text, values)
    namedAt.push(...all.map(() => at))
    return all
  })
  checkDoubles(names, (index) => [...path, namedAt[index] ?? 0, 'issuer'], 'is the same issuer as', report)
  issuers.forEach((each, index) => {
    const place = [...path, index]
    checkPlaceholder(each, place, report)
    if (isProviderName(each['provider'])) checkProvider(each, each['provider'], hasEndpointAudience, place, report)
  })
}

function checkPlaceholder({ issuer, authorizationServer, placeholderValues }: Tree, place: Path, report: Report): void {
  const text = stringOrNone(issuer) ?? ''
  const values = listOf(placeholderValues)
  const placeholder = placeholderOf(text)
  const server = stringOrNone(authorizationServer) ?? ''
  if (/[{}]/.test(server.replace(placeholder ?? '', '')) || server.split('/', 3).join('/').includes('{'))
    report.add(
      [...place, 'authorizationServer'],
      'has a placeholder that its issuer does not have in the same words, or in the name of a host',
      'Write the one of the issuer, in the path: for each value there is one.'
    )
  if (/[{}]/.test(text.replace(placeholder ?? '', '')))
    report.add([...place, 'issuer'], 'has more than one placeholder, or half of one', 'Write one, such as {tenantid}.')
  else if (placeholder !== undefined && text.split('/', 3).join('/').includes(placeholder))
    report.add([...place, 'issuer'], 'has its placeholder in the name of a host', 'It may stand in the path only.')
  else if (placeholder !== undefined && values.length === 0)
    report.add(
      [...place, 'issuer'],
      'has a placeholder, and anybody can have an organisation there: all of them would be let in',
      'List those that may call under placeholderValues.'
    )
  else if (placeholder === undefined && values.length > 0)
    report.add(
      [...place, 'placeholderValues'],
      'has nothing to stand for: the issuer has no placeholder',
      'Remove it, or write {tenantid} in the issuer.'
    )
}

function checkProvider(
  { issuer, audiences, placeholderValues }: Tree,
  name: ProviderName,
  hasEndpointAudience: boolean,
  place: Path,
  report: Report
): void {
  const preset = providerPresets[name]
  const page = `docs/providers/${name}.md says how to set it up.`
  if ('unusable' in preset)
    return report.add([...place, 'provider'], `is ${name}, which cannot be an issuer here`, preset.unusable)
  const text = stringOrNone(issuer)
  if (text !== undefined && !new RegExp(preset.issuer.pattern).test(text))
    report.add([...place, 'issuer'], `is no issuer of ${preset.title}`, `It must be ${preset.issuer.form}.`)
  else if (text !== undefined && placeholderOf(text) !== undefined)
    listOf(placeholderValues).forEach((value, at) => {
      const [named = ''] = withPlaceholder(text, [String(value)])
      if (!new RegExp(preset.issuer.pattern).test(named))
        report.add(
          [...place, 'placeholderValues', at],
          `makes ${named}, which is no issuer of ${preset.title}`,
          `It must be ${preset.issuer.form}.`
        )
    })
  const hasAudience = hasEndpointAudience || listOf(audiences).length > 0
  if (preset.audience === 'audiences' && !hasAudience)
    report.add(
      place,
      `has no audiences, and tokens of ${preset.title} never name the URL of an endpoint`,
      `Give the value that they have in aud under audiences. ${page}`
    )
}
