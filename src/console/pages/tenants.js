// The list of tenants, and the endpoints of one tenant, which can be edited. The user sees a plan of each change first.

import { useSignal } from '@preact/signals'
import { administrator, get, list, path } from '../core/api.js'
import { html } from '../core/html.js'
import { useLoaded } from '../core/load.js'
import { linkTo, route, tenant } from '../core/route.js'
import { Dialog } from '../parts/dialog.js'
import { TextField } from '../parts/form.js'
import { ListPart } from '../parts/list.js'
import { usePlan } from '../parts/plan.js'
import { text } from '../text.js'
import { EndpointEditor } from './tenants/endpoint-editor.js'
import { History, useVersions } from './tenants/history.js'
import { mayChange } from './upstreams.js'

const said = text.tenants

export const Page = () => (tenant.value === '' ? html`<${AllTenants} />` : html`<${OneTenant} id=${tenant.value} />`)

function AllTenants() {
  const tenants = useLoaded((signal) => list('/v1/tenants', signal), [])
  const isMaking = useSignal(false)
  const { plan, dialog } = usePlan(tenants.again)
  const mayMake = administrator.value?.role === 'platform-admin'
  return html`<${ListPart}
    title=${said.title}
    loaded=${tenants}
    empty=${{ title: said.none, why: mayMake ? said.noneWhy : undefined }}
    beside=${mayMake && html`<button type="button" class="main" onClick=${() => (isMaking.value = true)}>${said.make}</button>`}
    keyOf=${({ id }) => id}
    textOf=${({ id }) => id}
    columns=${[
      {
        title: text.tenant,
        isHead: true,
        cell: ({ id }) => html`<a href=${linkTo('tenants', { tenant: id })}>${id}</a>`
      },
      { title: said.endpoints, isNumber: true, cell: ({ endpoints }) => endpoints },
      { title: said.upstreams, isNumber: true, cell: ({ upstreams }) => upstreams },
      { title: said.keys, isNumber: true, cell: ({ keys }) => keys.length },
      { title: said.managedBy, cell: ({ managedBy }) => text.managers[managedBy] },
      { title: said.version, isNumber: true, cell: ({ version }) => version ?? text.none }
    ]}
  >
    ${
      isMaking.value &&
      html`<${NameDialog}
        title=${said.make}
        label=${said.name}
        hint=${said.nameHint}
        onClose=${() => (isMaking.value = false)}
        onName=${(name) => {
          isMaking.value = false
          plan({ [name]: { auth: {}, upstreams: {} } })
        }}
      />`
    }
    ${dialog}
  <//>`
}

function NameDialog({ title, label, hint, onName, onClose }) {
  const name = useSignal('')
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <form
      class="fields"
      onSubmit=${(event) => {
        event.preventDefault()
        onName(name.value)
      }}
    >
      <${TextField} label=${label} hint=${hint} value=${name} pattern="[a-z0-9][a-z0-9_\\-]*" />
      <button type="submit" class="main">${said.plan}</button>
    </form>
  <//>`
}

/** The endpoints of a tenant; if none is configured, there is one for all upstreams. */
const endpointsOf = ({ configuration }) =>
  configuration.endpoints ?? { default: { upstreams: Object.keys(configuration.upstreams ?? {}) } }

function OneTenant({ id }) {
  const owner = useLoaded((signal) => get(path`/v1/tenants/${id}`, signal), [])
  const endpoints = useLoaded((signal) => list(path`/v1/tenants/${id}/endpoints`, signal), [])
  const versions = useVersions(id)
  const isMaking = useSignal(false)
  const chosen = route.value.params.get('endpoint')
  const again = () => Promise.all([owner.again(), endpoints.again(), versions.again()])
  const { plan, dialog } = usePlan(again)

  /** @param {string} name @param {object | undefined} endpoint undefined: the endpoint is removed */
  function planEndpoint(name, endpoint) {
    const { configuration, version } = owner.value
    const { [name]: _before, ...others } = endpointsOf(owner.value)
    const endpoints = endpoint === undefined ? others : { ...others, [name]: endpoint }
    plan({ [id]: { ...configuration, endpoints } }, { [id]: version })
  }
  const isEditable = mayChange() && owner.value?.configuration !== null
  return html`<p><a href=${linkTo('tenants', { tenant: undefined })}>${said.title}</a></p>
    ${owner.value?.managedBy === 'file' && html`<p class="note">${said.ofFile}</p>`}
    ${owner.value?.problems.map(({ path: where, message }) => html`<p class="note bad"><code>${where}</code> ${message}</p>`)}
    <${ListPart}
      title=${said.endpointsOf(id)}
      loaded=${endpoints}
      empty=${{ title: text.choice.noEndpoints, why: text.choice.noEndpointsWhy }}
      beside=${isEditable && html`<button type="button" onClick=${() => (isMaking.value = true)}>${said.makeEndpoint}</button>`}
      keyOf=${({ name }) => name}
      columns=${[
        {
          title: said.endpoint,
          isHead: true,
          cell: ({ name }) => html`<a href=${linkTo('tenants', { endpoint: name })}>${name}</a>`
        },
        { title: said.path, cell: ({ path }) => html`<code>${path}</code>` },
        { title: said.upstreams, cell: ({ upstreams }) => upstreams.map(({ name }) => name).join(', ') },
        { title: said.changedTools, isNumber: true, cell: ({ changedTools }) => changedTools }
      ]}
    />
    ${
      chosen !== null &&
      owner.value?.configuration &&
      html`<${EndpointEditor}
        key=${`${chosen} ${owner.value.version}`}
        tenant=${id}
        name=${chosen}
        endpoint=${endpointsOf(owner.value)[chosen]}
        upstreams=${Object.keys(owner.value.configuration.upstreams ?? {})}
        isEditable=${isEditable}
        onPlan=${(endpoint) => planEndpoint(chosen, endpoint)}
      />`
    }
    <${History} ...${{ id, versions }} version=${owner.value?.version} onChange=${again} />
    ${
      isMaking.value &&
      html`<${NameDialog}
        title=${said.makeEndpoint}
        label=${said.endpoint}
        hint=${said.endpointHint}
        onClose=${() => (isMaking.value = false)}
        onName=${(name) => {
          isMaking.value = false
          location.hash = linkTo('tenants', { endpoint: name })
        }}
      />`
    }
    ${dialog}`
}
