// An endpoint as a virtual server: which upstreams are behind it, in which order and under which prefix; which of their
// tools it offers, and under which names.

import { useSignal } from '@preact/signals'
import { administrator, path, post } from '../../core/api.js'
import { html } from '../../core/html.js'
import { useLoaded } from '../../core/load.js'
import { Loading } from '../../parts/notice.js'
import { FilterField } from '../../parts/table.js'
import { text } from '../../text.js'

const said = text.endpoint

/** Of one endpoint, on this page. */
const maxTools = 200

const memberName = (member) => (typeof member === 'string' ? member : member.upstream)

/** Without members that say nothing. */
const compact = (object) =>
  Object.fromEntries(
    Object.entries(object).filter(
      ([, value]) => value !== undefined && (typeof value !== 'object' || Object.keys(value).length > 0)
    )
  )

/**
 * @param {{
 *   tenant: string, name: string, endpoint: any, upstreams: string[], isEditable: boolean,
 *   onPlan: (endpoint: object | undefined) => void
 * }} props endpoint: as it is configured
 */
export function EndpointEditor({ tenant, name, endpoint, upstreams, isEditable, onPlan }) {
  const draft = useSignal(endpoint)
  const change = (changed) => (draft.value = { ...draft.value, ...changed })
  return html`<section class="card" aria-labelledby="editor">
    <div class="row">
      <h2 id="editor">${said.title(name)}</h2>
      ${
        isEditable &&
        html`<span class="row push">
          ${name !== 'default' && html`<button type="button" class="danger" onClick=${() => onPlan(undefined)}>${said.remove}</button>`}
          <button type="button" class="main" onClick=${() => onPlan(draft.value)}>${said.plan}</button>
        </span>`
      }
    </div>
    <${Members}
      members=${draft.value.upstreams}
      upstreams=${upstreams}
      isEditable=${isEditable}
      onChange=${(members) => change({ upstreams: members })}
    />
    <${Tools} tenant=${tenant} name=${name} draft=${draft} isEditable=${isEditable} change=${change} />
  </section>`
}

function Members({ members, upstreams, isEditable, onChange }) {
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
              <button type="button" disabled=${at === 0} aria-label=${said.up(each)} onClick=${() => move(at, -1)}>
                ↑
              </button>
              <button
                type="button"
                disabled=${at === members.length - 1}
                aria-label=${said.down(each)}
                onClick=${() => move(at, 1)}
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
  const { prefix = '' } = typeof member === 'string' ? {} : member
  return html`<input
    class="prefix"
    aria-label=${said.prefix(upstream)}
    placeholder=${said.prefixPlaceholder}
    value=${prefix}
    pattern="[A-Za-z0-9_\\-]*"
    onInput=${({ currentTarget }) => onChange(currentTarget.value === '' ? upstream : { upstream, prefix: currentTarget.value })}
  />`
}

function Tools({ tenant, name, draft, isEditable, change }) {
  const filter = useSignal('')
  const target = path`/v1/tenants/${tenant}/endpoints/${name}/catalog`
  const catalog = useLoaded(
    (signal) =>
      post(target, { kind: 'tool', limit: maxTools, withoutRules: administrator.value?.role !== 'viewer' }, signal),
    [target]
  )
  const { deny = {}, tools = {} } = draft.value
  const denied = deny.tools ?? []

  function offer(id, isOffered) {
    const left = denied.filter((each) => each !== id)
    const next = isOffered ? left : [...left, id]
    change({ deny: compact({ ...deny, tools: next.length > 0 ? next : undefined }) })
  }
  function rename(id, value) {
    const next = compact({ ...tools[id], rename: value === '' ? undefined : value })
    change({ tools: compact({ ...tools, [id]: Object.keys(next).length > 0 ? next : undefined }) })
  }
  return html`<fieldset class="members" disabled=${!isEditable}>
    <legend>${said.tools}</legend>
    <${Loading} loaded=${catalog}>
      ${({ items, unknown, nextCursor }) => {
        const ids = new Map(items.map(({ name, upstream, upstreamName }) => [`${upstream}/${upstreamName}`, name]))
        // What is ticked off is in no catalog any more.
        for (const each of denied) if (!each.includes('*') && !ids.has(each)) ids.set(each, undefined)
        const wanted = filter.value.toLowerCase()
        const shown = [...ids].filter(([id]) => id.toLowerCase().includes(wanted))
        return html`<p class="muted">${said.toolsWhy}</p>
          ${unknown.length > 0 && html`<p class="note warn">${said.unknown(unknown.join(', '))}</p>`}
          ${nextCursor !== null && html`<p class="muted">${text.more}</p>`}
          <${FilterField} label=${said.filter} value=${filter} shown=${shown.length} all=${ids.size} />
          <ul>
            ${shown.map(
              ([id, publicName]) =>
                html`<li key=${id}>
                  <label class="check"
                    ><input
                      type="checkbox"
                      checked=${!denied.includes(id)}
                      onChange=${({ currentTarget }) => offer(id, currentTarget.checked)}
                    />
                    <span><code>${id}</code></span></label
                  >
                  <input
                    class="push rename"
                    aria-label=${said.rename(id)}
                    placeholder=${publicName ?? said.notOffered}
                    value=${tools[id]?.rename ?? ''}
                    disabled=${denied.includes(id)}
                    pattern="[A-Za-z0-9_.\\-]{1,128}"
                    onInput=${({ currentTarget }) => rename(id, currentTarget.value)}
                  />
                </li>`
            )}
          </ul>`
      }}
    <//>
  </fieldset>`
}
