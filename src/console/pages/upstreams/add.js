// Adds upstreams to a tenant of the admin API: by a URL, from the text of an mcp.json, or from an entry of a registry.
// The result is the whole configuration of the tenant, for a plan.

import { useSignal } from '@preact/signals'
import { html } from '../../core/html.js'
import { Choice } from '../../parts/choice.js'
import { Dialog } from '../../parts/dialog.js'
import { Field, TextField } from '../../parts/form.js'
import { text } from '../../text.js'
import { entryIn } from './registry.js'
import { UrlFields, useUrl } from './url.js'

const said = text.addUpstream

/** The names under which hosts keep their servers in an mcp.json. */
const members = ['mcpServers', 'servers', 'context_servers', 'mcp']

/** @param {string} given @returns {Record<string, unknown>} @throws {Error} that says what is wrong */
function serversIn(given) {
  const parsed = JSON.parse(given)
  const member = members.find((each) => typeof parsed?.[each] === 'object')
  const servers = member === undefined ? parsed : parsed[member]
  const isServer = (each) => typeof each?.command === 'string' || typeof each?.url === 'string'
  if (servers === null || typeof servers !== 'object' || !Object.values(servers).every(isServer))
    throw new Error(said.noServers)
  if (Object.keys(servers).length === 0) throw new Error(said.noServers)
  return servers
}

/** Parses the text while the user types; undefined while it is not valid. */
function entryOrNone(given) {
  try {
    return entryIn(given)
  } catch {
    return undefined // The error is shown when the form is sent.
  }
}

/** @param {{ owner: any, onPlan: (configuration: object) => void, onClose: () => void }} props */
export function AddDialog({ owner, onPlan, onClose }) {
  const way = useSignal('url')
  const name = useSignal('')
  const url = useUrl()
  const given = useSignal('')
  const error = useSignal(/** @type {string | undefined} */ (undefined))
  const isOffered = useSignal(true)
  const chosen = useSignal(0)
  const answers = useSignal(/** @type {Record<string, string>} */ ({}))
  const entry = way.value === 'registry' ? entryOrNone(given.value) : undefined
  const offer = entry?.offers[chosen.value] ?? entry?.offers[0]
  const { configuration } = owner

  function addedOf() {
    if (way.value === 'json') return serversIn(given.value)
    if (way.value === 'url') return { [name.value]: url.definition() }
    if (offer === undefined) entryIn(given.value)
    const usual = Object.fromEntries(offer?.inputs.map((each) => [each.key, each.usual]) ?? [])
    return { [name.value]: offer?.definition({ ...usual, ...answers.value }) }
  }

  /** @param {string} pasted */
  function take(pasted) {
    given.value = pasted
    if (way.value !== 'registry') return
    const found = entryOrNone(pasted)
    if (found === undefined) return
    chosen.value = 0
    answers.value = {}
    name.value = found.name
  }

  /** @param {SubmitEvent} event */
  function submit(event) {
    event.preventDefault()
    error.value = undefined
    try {
      const added = addedOf()
      const taken = Object.keys(added).find((each) => each in (configuration.upstreams ?? {}))
      if (taken !== undefined) throw new Error(said.taken(taken))
      onPlan(withUpstreams(configuration, added, isOffered.value))
    } catch (reason) {
      error.value = reason instanceof Error ? reason.message : String(reason)
    }
  }
  const ways = Object.entries(said.ways)
  return html`<${Dialog} title=${said.title} onClose=${onClose} isWide>
    <form class="fields" onSubmit=${submit}>
      <fieldset class="ways">
        <legend>${said.way}</legend>
        ${ways.map(
          ([each, title]) =>
            html`<label class="check"
              ><input type="radio" name="way" checked=${way.value === each} onChange=${() => (way.value = each)} /><span
                >${title}</span
              ></label
            >`
        )}
      </fieldset>
      ${
        way.value === 'url'
          ? html`<${NameField} value=${name} /> <${UrlFields} name=${name.value} given=${url} error=${error.value} />`
          : html`<${Field} label=${said[way.value]} hint=${said[`${way.value}Hint`]} error=${error.value}>
              ${(attributes) =>
                html`<textarea
                  ...${attributes}
                  class="code"
                  rows="10"
                  required
                  spellcheck=${false}
                  onInput=${({ currentTarget }) => take(currentTarget.value)}
                >
${given.value}</textarea>`}
            <//>`
      }
      ${offer && html`<${NameField} value=${name} /><${OfferFields} ...${{ entry, offer, chosen, answers }} />`}
      ${
        configuration.endpoints !== undefined &&
        html`<label class="check"
          ><input
            type="checkbox"
            checked=${isOffered.value}
            onChange=${({ currentTarget }) => (isOffered.value = currentTarget.checked)}
          /><span>${said.offer}</span></label
        >`
      }
      <button type="submit" class="main">${said.plan}</button>
    </form>
  <//>`
}

const NameField = ({ value }) =>
  html`<${TextField} label=${said.name} hint=${said.nameHint} value=${value} pattern="[a-z0-9][a-z0-9_\\-]*" />`

/** Lets the user choose which offer of a registry entry to use, and fill in what it needs. */
function OfferFields({ entry: { offers }, offer, chosen, answers }) {
  return html`${
    offers.length > 1 &&
    html`<${Choice}
      label=${said.offerOf}
      value=${String(offers.indexOf(offer))}
      choices=${offers.map(({ title }, at) => [String(at), title])}
      onChange=${(at) => {
        chosen.value = Number(at)
        answers.value = {}
      }}
    />`
  }
  ${offer.inputs.map(
    (input) =>
      html`<${AnswerField}
        key=${`${offer.title} ${input.key}`}
        input=${input}
        value=${answers.value[input.key] ?? input.usual}
        onChange=${(value) => (answers.value = { ...answers.value, [input.key]: value })}
      />`
  )}`
}

function AnswerField({ input: { label, hint, isRequired, isSecret, choices }, value, onChange }) {
  return html`<${Field} label=${`${label}${isRequired ? ' *' : ''}`} hint=${hint}>
    ${(attributes) =>
      choices
        ? html`<select
            ...${attributes}
            required=${isRequired}
            onChange=${({ currentTarget }) => onChange(currentTarget.value)}
          >
            ${['', ...choices].map((each) => html`<option value=${each} selected=${each === value}>${each}</option>`)}
          </select>`
        : html`<input
            ...${attributes}
            type=${isSecret ? 'password' : 'text'}
            required=${isRequired}
            spellcheck=${false}
            autocomplete="off"
            value=${value}
            onInput=${({ currentTarget }) => onChange(currentTarget.value)}
          />`}
  <//>`
}

/** Adds upstreams, and puts them behind the endpoint `default`, since new upstreams are behind no configured endpoint. */
function withUpstreams(configuration, added, isOffered) {
  const { upstreams = {}, endpoints } = configuration
  const next = { ...configuration, upstreams: { ...upstreams, ...added } }
  if (endpoints?.default === undefined || !isOffered) return next
  const { default: usual } = endpoints
  return {
    ...next,
    endpoints: { ...endpoints, default: { ...usual, upstreams: [...usual.upstreams, ...Object.keys(added)] } }
  }
}
