// Adding upstreams to a tenant of the admin API: from the text of an mcp.json, or by a URL. What comes out is the whole
// configuration of the tenant, for a plan.

import { useSignal } from '@preact/signals'
import { html } from '../../core/html.js'
import { Dialog } from '../../parts/dialog.js'
import { Field } from '../../parts/form.js'
import { text } from '../../text.js'

const said = text.addUpstream

/** Hosts call the object of servers by these names. */
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

/** @param {{ owner: any, onPlan: (configuration: object) => void, onClose: () => void }} props */
export function AddDialog({ owner, onPlan, onClose }) {
  const way = useSignal('url')
  const name = useSignal('')
  const url = useSignal('https://')
  const given = useSignal('')
  const error = useSignal(/** @type {string | undefined} */ (undefined))
  const isOffered = useSignal(true)
  const { configuration } = owner

  /** @param {SubmitEvent} event */
  function submit(event) {
    event.preventDefault()
    error.value = undefined
    try {
      const added = way.value === 'url' ? { [name.value]: { type: 'http', url: url.value } } : serversIn(given.value)
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
          ? html`<${TextField} label=${said.name} hint=${said.nameHint} value=${name} pattern="[a-z0-9][a-z0-9_\\-]*" />
              <${TextField} label=${said.url} hint=${said.urlHint} value=${url} type="url" error=${error.value} />`
          : html`<${Field} label=${said.json} hint=${said.jsonHint} error=${error.value}>
              ${(attributes) =>
                html`<textarea
                  ...${attributes}
                  class="code"
                  rows="10"
                  required
                  spellcheck=${false}
                  onInput=${({ currentTarget }) => (given.value = currentTarget.value)}
                >
${given.value}</textarea>`}
            <//>`
      }
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

/** One line of text. */
export function TextField({ label, hint, value, type = 'text', pattern, error, isRequired = true }) {
  return html`<${Field} label=${label} hint=${hint} error=${error}>
    ${(attributes) =>
      html`<input
        ...${attributes}
        type=${type}
        pattern=${pattern}
        required=${isRequired}
        spellcheck=${false}
        autocomplete="off"
        value=${value.value}
        onInput=${({ currentTarget }) => (value.value = currentTarget.value)}
      />`}
  <//>`
}

/** Where endpoints are named, a new upstream is in none of them by itself. */
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
