// The rules of an endpoint in their order, each with the tools that it covers now and the callers of today to whom it
// applies.

import { useSignal } from '@preact/signals'
import { list, path } from '../../core/api.js'
import { html } from '../../core/html.js'
import { useLoaded } from '../../core/load.js'
import { tenant } from '../../core/route.js'
import { Dialog } from '../../parts/dialog.js'
import { Empty, Loading } from '../../parts/notice.js'
import { JsonText } from '../../parts/schema.js'
import { Table } from '../../parts/table.js'
import { text } from '../../text.js'

const said = text.policy
const levels = ['tenant', 'endpoint']
/** The rules are loaded again at this interval, because the numbers of tools and callers change. */
const everyMs = 10_000
const isSame = (one, other) => one.of === other.of && one.place === other.place
const effectMarks = { allow: 'good', deny: 'bad', requires: 'warn' }

/** @param {{ endpoint: { name: string } }} props */
export function Rules({ endpoint }) {
  const opened = useSignal(/** @type {any} */ (undefined))
  const target = path`/v1/tenants/${tenant.value}/endpoints/${endpoint.name}/rules`
  const rules = useLoaded((signal) => list(target, signal), [target], { everyMs })
  const one = opened.value && rules.value?.items.find(({ of, place }) => isSame(opened.value, { of, place }))
  return html`<${Loading} loaded=${rules}>
      ${({ items, isWhole, defaults, tools, unknown }) =>
        defaults.tenant === null && defaults.endpoint === null
          ? html`<${Empty} title=${said.none} why=${said.noneWhy} />`
          : html`<p class="sum">${said.sum(tools)}</p>
              ${unknown.length > 0 && html`<p class="note warn">${said.unknown(unknown.join(', '))}</p>`}
              ${levels.map(
                (of) =>
                  html`<section class="part" key=${of}>
                    <h2>${said.of[of](of === 'tenant' ? tenant.value : endpoint.name)}</h2>
                    <p>${said.byDefault(defaults[of])}</p>
                    ${
                      items.some((rule) => rule.of === of) &&
                      html`<${RuleTable}
                        rules=${items.filter((rule) => rule.of === of)}
                        ...${{ isWhole, of }}
                        onOpen=${(rule) => (opened.value = rule)}
                      />`
                    }
                  </section>`
              )}`}
    <//>
    ${one && html`<${RuleDialog} rule=${one} onClose=${() => (opened.value = undefined)} />`}`
}

/** The parts of `who` or `what` of a rule, in words. */
const wordsOf = (parts, names, otherwise) =>
  Object.entries(parts)
    .map(([name, values]) => `${names[name] ?? name} ${values.join(', ')}`)
    .join('; ') || otherwise

export const EffectMark = ({ effect }) =>
  html`<span class=${`mark ${effectMarks[effect]}`}>${said.effects[effect]}</span>`

function RuleTable({ rules, isWhole, of, onOpen }) {
  return html`<${Table}
    caption=${said.caption[of]}
    rows=${rules}
    isWhole=${isWhole}
    keyOf=${({ place }) => String(place)}
    textOf=${(rule) => JSON.stringify(rule)}
    columns=${[
      { title: said.place, isNumber: true, cell: ({ place }) => place },
      {
        title: said.rule,
        isHead: true,
        cell: (rule) => html`<button type="button" class="link" onClick=${() => onOpen(rule)}>${rule.name}</button>`
      },
      { title: said.effect, cell: EffectMark },
      { title: said.who, cell: ({ who }) => wordsOf(who, said.whoParts, said.everybody) },
      { title: said.what, cell: ({ what }) => wordsOf(what, said.whatParts, said.everything) },
      { title: said.when, cell: ({ when }) => (when ? html`<code>${when}</code>` : said.always) },
      {
        title: said.tools,
        isNumber: true,
        cell: ({ tools }) => (tools.count === 0 ? html`<span class="mark warn">0</span>` : tools.count)
      },
      { title: said.callers, isNumber: true, cell: ({ callers }) => callers.count }
    ]}
  />`
}

function Names({ title, count, names }) {
  return html`<section class="part">
    <h3>${title}</h3>
    <ul class="names">
      ${names.map((each) => html`<li key=${each}><code>${each}</code></li>`)}
    </ul>
    ${count > names.length && html`<p class="muted">${said.andMore(count - names.length)}</p>`}
  </section>`
}

function RuleDialog({ rule: { of, place, tools, callers, ...rule }, onClose }) {
  const { name, effect, who, what, when, scopes } = rule
  return html`<${Dialog} title=${said.one(name)} onClose=${onClose} isWide>
    <dl class="facts">
      <dt>${said.effect}</dt>
      <dd><${EffectMark} effect=${effect} /></dd>
      <dt>${said.who}</dt>
      <dd>${wordsOf(who, said.whoParts, said.everybody)}</dd>
      <dt>${said.what}</dt>
      <dd>${wordsOf(what, said.whatParts, said.everything)}</dd>
      <dt>${said.when}</dt>
      <dd>${when ? html`<code>${when}</code>` : said.always}</dd>
      ${
        scopes.length > 0 &&
        html`<dt>${said.scopes}</dt>
          <dd>${scopes.join(' ')}</dd>`
      }
      <dt>${said.stands}</dt>
      <dd>${said.placeOf(place, of)}</dd>
    </dl>
    <${Names} title=${said.covers(tools.count)} ...${tools} />
    <${Names} title=${said.isAbout(callers.count)} ...${callers} />
    <${JsonText} summary=${said.whole} value=${rule} />
  <//>`
}
