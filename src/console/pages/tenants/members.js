// Edits the upstreams behind an endpoint: which, in which order, and the prefix of the names of their tools.

import { useSignal } from '@preact/signals'
import { html } from '../../core/html.js'
import { Choice } from '../../parts/choice.js'
import { text } from '../../text.js'

const said = text.endpoint

/** @typedef {string | { upstream: string, prefix?: string }} Member */

/** @param {Member} member */
export const memberName = (member) => (typeof member === 'string' ? member : member.upstream)

/** The own prefix of a member; undefined: that of the endpoint, or the upstream's name. @param {Member} member */
export const memberPrefix = (member) => (typeof member === 'string' ? undefined : member.prefix)

/** @param {{ members: Member[], upstreams: string[], isEditable: boolean, onChange: (members: Member[]) => void }} props */
export function Members({ members, upstreams, isEditable, onChange }) {
  const chosen = members.map(memberName)
  const all = [...chosen, ...upstreams.filter((each) => !chosen.includes(each))]
  function move(at, by) {
    const next = members.slice()
    next.splice(at + by, 0, ...next.splice(at, 1))
    onChange(next)
  }
  return html`<fieldset class="members" disabled=${!isEditable}>
    <legend>${said.members}</legend>
    <p class="muted">${said.membersWhy}</p>
    <ol>
      ${all.map((each) => {
        const at = chosen.indexOf(each)
        const tick = ({ currentTarget }) =>
          onChange(currentTarget.checked ? [...members, each] : members.filter((member) => memberName(member) !== each))
        return html`<li key=${each}>
          <label class="check"><input type="checkbox" checked=${at >= 0} onChange=${tick} /><span>${each}</span></label>
          ${
            at >= 0 &&
            html`<span class="row push">
              <${Prefix} member=${members[at]} onChange=${(member) => onChange(members.with(at, member))} />
              <button
                type="button"
                aria-disabled=${at === 0}
                aria-label=${said.up(each)}
                onClick=${() => at > 0 && move(at, -1)}
              >
                ↑
              </button>
              <button
                type="button"
                aria-disabled=${at === members.length - 1}
                aria-label=${said.down(each)}
                onClick=${() => at < members.length - 1 && move(at, 1)}
              >
                ↓
              </button>
            </span>`
          }
        </li>`
      })}
    </ol>
  </fieldset>`
}

function Prefix({ member, onChange }) {
  const upstream = memberName(member)
  const prefix = memberPrefix(member)
  // The kind is kept apart from the prefix: an own prefix that is empty while the user types does not mean `none`.
  const kind = useSignal(prefix === undefined ? 'usual' : prefix === '' ? 'none' : 'own')
  const own = useSignal(prefix || upstream)
  function choose(value) {
    kind.value = value
    onChange(value === 'usual' ? upstream : { upstream, prefix: value === 'none' ? '' : own.value || upstream })
  }
  function write({ currentTarget }) {
    own.value = currentTarget.value
    onChange({ upstream, prefix: own.value || upstream })
  }
  return html`<${Choice}
      label=${said.prefix}
      name=${said.prefixOf(upstream)}
      value=${kind.value}
      choices=${Object.entries(said.prefixes)}
      onChange=${choose}
    />
    ${
      kind.value === 'own' &&
      html`<input
        class="prefix"
        aria-label=${said.ownPrefixOf(upstream)}
        value=${own.value}
        placeholder=${upstream}
        maxlength="32"
        pattern="[A-Za-z0-9_.\\-]*"
        onInput=${write}
      />`
    }`
}
