// Edits an endpoint: which upstreams are behind it, in which order and under which prefix; which of their tools it
// offers, and under which names.

import { useSignal } from '@preact/signals'
import { administrator, list, path, post } from '../../core/api.js'
import { html } from '../../core/html.js'
import { useLoaded } from '../../core/load.js'
import { ProblemNote } from '../../parts/notice.js'
import { FilterField } from '../../parts/table.js'
import { text } from '../../text.js'
import { memberName, memberPrefix, Members } from './members.js'

const said = text.endpoint

/** The most pages of tools that are read of one upstream or endpoint, with 200 tools each. */
const maxPages = 50
/** How many tools are drawn at first, and more with each click on "Show more". */
const toolsPerPage = 200

/** Removes members that are undefined or empty objects. */
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
 * }} props endpoint: its configuration; undefined for a new endpoint
 */
export function EndpointEditor({ tenant, name, endpoint, upstreams, isEditable, onPlan }) {
  const draft = useSignal(endpoint ?? { upstreams: [] })
  const isNew = endpoint === undefined
  const change = (changed) => (draft.value = { ...draft.value, ...changed })
  return html`<section class="card" aria-labelledby="editor">
    <div class="row">
      <h2 id="editor">${said.title(name)}</h2>
      ${
        isEditable &&
        html`<span class="row push">
          ${name !== 'default' && !isNew && html`<button type="button" class="danger" onClick=${() => onPlan(undefined)}>${said.remove}</button>`}
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
    <${Tools} ...${{ tenant, name, isNew, draft, isEditable, change }} />
  </section>`
}

/** The tools that the endpoint offers now, with the names that callers see; before rules, if the user may see these. */
async function offeredNow(target, signal) {
  const withoutRules = administrator.value?.role !== 'viewer'
  const items = []
  let told = /** @type {any} */ ({ unknown: [], nextCursor: undefined })
  for (let pages = 0; pages < maxPages && told.nextCursor !== null; pages++) {
    const { nextCursor: cursor } = told
    told = await post(target, { kind: 'tool', limit: 200, withoutRules, ...(cursor && { cursor }) }, signal)
    items.push(...told.items)
  }
  return { items, unknown: told.unknown }
}

/** The tools of the chosen upstreams, new ones included, by id, with the names that callers see now. */
function useTools({ tenant, name, isNew, draft, isEditable }) {
  const members = draft.value.upstreams.map(memberName)
  const target = path`/v1/tenants/${tenant}/endpoints/${name}/catalog`
  const now = useLoaded(
    async (signal) => (isNew ? { items: [], unknown: [] } : await offeredNow(target, signal)),
    [target, isNew]
  )
  const listed = useLoaded(
    (signal) =>
      Promise.all(
        (isEditable ? members : []).map(async (each) => ({
          upstream: each,
          ...(await list(path`/v1/tenants/${tenant}/upstreams/${each}/tools`, signal, { maxPages }))
        }))
      ),
    [isEditable && members.toSorted().join(' ')]
  )
  const names = new Map()
  for (const { upstream, items } of listed.value ?? [])
    for (const { name } of items) names.set(`${upstream}/${name}`, '')
  for (const { name, upstream, upstreamName } of now.value?.items ?? [])
    if (members.includes(upstream)) names.set(`${upstream}/${upstreamName}`, name)
  const unlisted = (listed.value ?? []).filter(({ isKnown }) => !isKnown).map(({ upstream }) => upstream)
  const unknown = isEditable ? unlisted : (now.value?.unknown ?? [])
  const problem = now.problem ?? listed.problem
  const again = () => Promise.all([now.again(), listed.again()]).then(() => undefined)
  return { names, unknown, problem, again, isLoading: now.isLoading || listed.isLoading }
}

/** The name that callers will see of a tool that is not offered yet, unless names clash. */
function expectedName({ upstreams, prefix, separator = '__' }, id) {
  const slash = id.indexOf('/')
  const [upstream, name] = [id.slice(0, slash), id.slice(slash + 1)]
  const member = upstreams.find((each) => memberName(each) === upstream) ?? upstream
  const own = memberPrefix(member) ?? prefix ?? upstream
  return own === '' ? name : `${own}${separator}${name}`
}

function Tools({ tenant, name, isNew, draft, isEditable, change }) {
  const filter = useSignal('')
  const drawn = useSignal(toolsPerPage)
  const { names, unknown, problem, again, isLoading } = useTools({ tenant, name, isNew, draft, isEditable })
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
  // Denied tools are in no catalog, so their names are added.
  for (const each of denied) if (!each.includes('*') && !names.has(each)) names.set(each, '')
  const wanted = filter.value.toLowerCase()
  const found = [...names].filter(([id]) => id.toLowerCase().includes(wanted))
  const shown = found.slice(0, drawn.value)
  return html`<fieldset class="members" disabled=${!isEditable}>
    <legend>${said.tools}</legend>
    <p class="muted">${said.toolsWhy}</p>
    ${problem && html`<${ProblemNote} problem=${problem} again=${again} />`}
    ${unknown.length > 0 && html`<p class="note warn">${said.unknown(unknown.join(', '))}</p>`}
    ${isLoading && html`<p class="muted" role="status">${text.loading}</p>`}
    ${names.size > 0 && html`<${FilterField} label=${said.filter} value=${filter} shown=${found.length} all=${names.size} />`}
    ${names.size === 0 && !isLoading && html`<p class="muted">${said.noTools}</p>`}
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
              placeholder=${denied.includes(id) ? said.notOffered : publicName || expectedName(draft.value, id)}
              value=${tools[id]?.rename ?? ''}
              disabled=${denied.includes(id)}
              pattern="[A-Za-z0-9_.\\-]{1,128}"
              onInput=${({ currentTarget }) => rename(id, currentTarget.value)}
            />
          </li>`
      )}
    </ul>
    ${
      shown.length < found.length &&
      html`<div><button type="button" onClick=${() => (drawn.value += toolsPerPage)}>${text.showMore}</button></div>`
    }
  </fieldset>`
}
