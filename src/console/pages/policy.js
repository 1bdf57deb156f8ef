// Who may use what at an endpoint: the rules in their order, each with the tools that it covers now; and why a caller may
// or may not use something, rule by rule. Who may not read rules may ask all the same.

import { useSignal } from '@preact/signals'
import { administrator, get, list, path, post, ProblemError } from '../core/api.js'
import { html } from '../core/html.js'
import { useLoaded } from '../core/load.js'
import { tenant } from '../core/route.js'
import { CallerFields, WithEndpoint } from '../parts/choice.js'
import { Dialog } from '../parts/dialog.js'
import { Field, JsonField } from '../parts/form.js'
import { Empty, Loading, ProblemNote } from '../parts/notice.js'
import { JsonText } from '../parts/schema.js'
import { Table } from '../parts/table.js'
import { text } from '../text.js'

const said = text.policy
const levels = ['tenant', 'endpoint']
const kinds = ['tool', 'prompt', 'resource', 'template']
const effectMarks = { allow: 'good', deny: 'bad', requires: 'warn' }

const mayReadRules = () => administrator.value?.role !== 'viewer'

export function Page() {
  return html`<${WithEndpoint}
    >${(endpoint, choice) =>
      html`<div class="row">${choice}</div>
        ${
          mayReadRules()
            ? html`<${Rules} key=${`rules ${endpoint.name}`} ...${{ endpoint }} />`
            : html`<p class="muted">${said.notForRole(administrator.value?.role ?? '')}</p>`
        }
        <${Explain} key=${`explain ${endpoint.name}`} ...${{ endpoint }} />`}<//
  >`
}

function Rules({ endpoint }) {
  const opened = useSignal(/** @type {any} */ (undefined))
  const target = path`/v1/tenants/${tenant.value}/endpoints/${endpoint.name}/rules`
  const rules = useLoaded((signal) => list(target, signal), [target])
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
    ${opened.value && html`<${RuleDialog} rule=${opened.value} onClose=${() => (opened.value = undefined)} />`}`
}

/** Of `who` or `what`, as a sentence would list them. */
const wordsOf = (parts, names, otherwise) =>
  Object.entries(parts)
    .map(([name, values]) => `${names[name] ?? name} ${values.join(', ')}`)
    .join('; ') || otherwise

const EffectMark = ({ effect }) => html`<span class=${`mark ${effectMarks[effect]}`}>${said.effects[effect]}</span>`

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
      }
    ]}
  />`
}

function RuleDialog({ rule: { of, place, tools, ...rule }, onClose }) {
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
    <section class="part">
      <h3>${said.covers(tools.count)}</h3>
      <ul class="names">
        ${tools.names.map((each) => html`<li key=${each}><code>${each}</code></li>`)}
      </ul>
      ${tools.count > tools.names.length && html`<p class="muted">${said.andMore(tools.count - tools.names.length)}</p>`}
    </section>
    <${JsonText} summary=${said.whole} value=${rule} />
  <//>`
}

const asked = () => ({ caller: {}, kind: 'tool', name: '', args: undefined, at: '' })

function Explain({ endpoint }) {
  const question = useSignal(/** @type {any} */ (asked()))
  const answer = useSignal(/** @type {{ value?: any, problem?: any }} */ ({}))
  const details = useLoaded((signal) => get(path`/v1/tenants/${tenant.value}`, signal), [])
  const { kind } = question.value
  const base = path`/v1/tenants/${tenant.value}/endpoints/${endpoint.name}`
  const offered = useLoaded((signal) => post(`${base}/catalog`, { kind, limit: 200 }, signal), [base, kind])
  const change = (changed) => (question.value = { ...question.value, ...changed })
  async function ask(event) {
    event.preventDefault()
    const { caller, name, args, at } = question.value
    const body = { caller, kind, name, ...(args !== undefined && { arguments: args }) }
    try {
      answer.value = {
        value: await post(`${base}/explain`, { ...body, ...(at && { at: new Date(at).toISOString() }) })
      }
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error
      answer.value = { problem: error.problem }
    }
  }
  const { value, problem } = answer.value
  return html`<section class="part" aria-labelledby="explain">
    <h2 id="explain">${said.explain}</h2>
    <p class="muted">${said.explainHow}</p>
    <form class="fields" onSubmit=${ask}>
      <${CallerFields}
        title=${said.whoCalls}
        keys=${(details.value?.keys ?? []).map(({ name }) => name)}
        hasRevision=${false}
        onChange=${({ caller }) => change({ caller })}
      />
      <div class="pair">
        <${Field} label=${said.kind}>
          ${(attributes) =>
            html`<select
              ...${attributes}
              onChange=${({ currentTarget }) => change({ kind: kinds[currentTarget.selectedIndex] })}
            >
              ${kinds.map((each) => html`<option key=${each} selected=${each === kind}>${said.kinds[each]}</option>`)}
            </select>`}
        <//>
        <${Field} label=${said.name} hint=${said.nameHint}>
          ${(attributes) =>
            html`<input
                ...${attributes}
                required
                list="offered"
                autocomplete="off"
                spellcheck=${false}
                value=${question.value.name}
                onInput=${({ currentTarget }) => change({ name: currentTarget.value.trim() })}
              />
              <datalist id="offered">
                ${(offered.value?.items ?? []).map(
                  ({ upstream, upstreamName }) =>
                    html`<option key=${upstream} value=${`${upstream}/${upstreamName}`} />`
                )}
              </datalist>`}
        <//>
      </div>
      <details>
        <summary>${said.more}</summary>
        <div class="pair">
          <${JsonField}
            label=${said.arguments}
            hint=${said.argumentsHint}
            value=${undefined}
            onChange=${(args) => change({ args })}
          />
          <${Field} label=${said.at} hint=${said.atHint}>
            ${(attributes) =>
              html`<input
                ...${attributes}
                type="datetime-local"
                onInput=${({ currentTarget }) => change({ at: currentTarget.value })}
              />`}
          <//>
        </div>
      </details>
      <div class="row"><button type="submit" class="main">${said.ask}</button></div>
    </form>
    <div role="status" class="part">${value && html`<${Answer} answer=${value} />`}</div>
    ${problem && html`<${ProblemNote} problem=${problem} />`}
  </section>`
}

const outcomeNotes = { allowed: 'good', denied: 'bad', refused: 'bad', 'not-offered': 'bad' }

const AppliesMark = ({ applies }) =>
  html`<span class=${`mark ${applies === true ? 'good' : applies === null ? 'warn' : ''}`}
    >${applies === null ? said.dependsOnArguments : applies ? text.yes : text.no}</span
  >`

function Answer({ answer: { outcome, sentence, rules } }) {
  return html`<p class=${`note ${outcomeNotes[outcome] ?? 'warn'}`}>${sentence}</p>
    ${
      rules.length > 0 &&
      html`<${Table}
        caption=${said.judged}
        rows=${rules}
        keyOf=${({ of, name }) => `${of} ${name}`}
        textOf=${({ name, of, because }) => `${name} ${of} ${because}`}
        columns=${[
          { title: said.rule, isHead: true, cell: ({ name }) => name },
          { title: said.ofWhom, cell: ({ of }) => said.levels[of] },
          { title: said.effect, cell: EffectMark },
          { title: said.applies, cell: AppliesMark },
          { title: said.because, cell: ({ because }) => because }
        ]}
      />`
    }`
}
