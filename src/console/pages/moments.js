// Lets the user choose a moment at which the catalog of an endpoint may have changed, to see the catalog before it.

import { get, path } from '../core/api.js'
import { html } from '../core/html.js'
import { useLoaded } from '../core/load.js'
import { tenant } from '../core/route.js'
import { Choice } from '../parts/choice.js'
import { ProblemNote } from '../parts/notice.js'
import { dateTime } from '../parts/time.js'
import { text } from '../text.js'

const said = text.moments

const titleOf = ({ at, version, actor, upstream, came, gone, altered }) =>
  version === null
    ? said.listing(dateTime(at), upstream, { came, gone, altered })
    : said.configuration(dateTime(at), version, actor)

/** @param {string} at */
const before = (at) => new Date(Date.parse(at) - 1).toISOString()

/**
 * A choice of a moment for each label.
 * @param {{ endpoint: string, labels: string[], chosen: (string | undefined)[], onChange: (at: (string | undefined)[]) => void }} props
 * chosen: undefined means now
 */
export function Moments({ endpoint, labels, chosen, onChange }) {
  const target = path`/v1/tenants/${tenant.value}/endpoints/${endpoint}/catalog/moments`
  const { value, problem } = useLoaded((signal) => get(target, signal), [target])
  const choices = [['', said.now], ...(value?.items ?? []).map((each) => [before(each.at), titleOf(each)])]
  return html`<div class="row moments">
      ${labels.map(
        (label, index) =>
          html`<${Choice}
            key=${label}
            label=${label}
            value=${chosen[index] ?? ''}
            choices=${choices}
            onChange=${(at) => onChange(chosen.with(index, at || undefined))}
          />`
      )}
    </div>
    ${problem && html`<${ProblemNote} problem=${problem} />`}
    ${value?.since && html`<p class="muted">${said.since(dateTime(value.since))}</p>`}`
}
