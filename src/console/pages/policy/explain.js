// Explains, rule by rule, why a caller may or may not use something. Roles that may not read rules may ask too.

import { useSignal } from '@preact/signals'
import { get, path, post, problemOf } from '../../core/api.js'
import { html } from '../../core/html.js'
import { useLoaded } from '../../core/load.js'
import { tenant } from '../../core/route.js'
import { CallerFields } from '../../parts/choice.js'
import { Field, JsonField } from '../../parts/form.js'
import { ProblemNote } from '../../parts/notice.js'
import { Table } from '../../parts/table.js'
import { text } from '../../text.js'
import { EffectMark } from './rules.js'

const said = text.policy
const kinds = ['tool', 'prompt', 'resource', 'template']

const noQuestion = () => ({ caller: {}, kind: 'tool', name: '', args: undefined, at: '' })

/**
 * @param {{ endpoint: { name: string }, onKeep: ((test: object) => void) | undefined }} props onKeep: keeps an answer as
 * a test; undefined if the user may not
 */
export function Explain({ endpoint, onKeep }) {
  const question = useSignal(/** @type {any} */ (noQuestion()))
  const answer = useSignal(/** @type {{ asked?: object, value?: any, problem?: any }} */ ({}))
  const details = useLoaded((signal) => get(path`/v1/tenants/${tenant.value}`, signal), [])
  const { kind } = question.value
  const base = path`/v1/tenants/${tenant.value}/endpoints/${endpoint.name}`
  const offered = useLoaded((signal) => post(`${base}/catalog`, { kind, limit: 200 }, signal), [base, kind])
  const change = (changed) => (question.value = { ...question.value, ...changed })
  async function ask(event) {
    event.preventDefault()
    const { caller, name, args, at } = question.value
    const body = { caller, kind, name, ...(args !== undefined && { arguments: args }) }
    const asked = { ...body, ...(at && { at: new Date(at).toISOString() }) }
    try {
      answer.value = { asked, value: await post(`${base}/explain`, asked) }
    } catch (error) {
      answer.value = { problem: problemOf(error) }
    }
  }
  const { asked: answered, value, problem } = answer.value
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
    ${
      value &&
      onKeep &&
      html`<div class="row">
        <button type="button" onClick=${() => onKeep({ ...answered, endpoint: endpoint.name, expect: value.outcome })}>
          ${said.keep}
        </button>
      </div>`
    }
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
          { title: said.because, isLong: true, cell: ({ because }) => because }
        ]}
      />`
    }`
}
