// The frame around every page: the list of pages, the choice of a tenant, the name of the administrator, and messages
// about finished actions. After a change of the page, its heading gets the focus, so that screen readers begin there;
// after a change of the tenant, the choice keeps it.

import { useEffect, useErrorBoundary, useRef } from 'preact/hooks'
import { administrator, list, received, signOut } from './core/api.js'
import { html } from './core/html.js'
import { useLoaded } from './core/load.js'
import { go, linkTo, route, setParams, tenant } from './core/route.js'
import { isDark, switchTheme } from './core/theme.js'
import { dismiss, told } from './core/told.js'
import { pages } from './pages.js'
import { Empty, Loading, ProblemNote } from './parts/notice.js'
import { applied } from './parts/plan.js'
import { text } from './text.js'

/** @typedef {import('./pages.js').PageEntry} PageEntry */

export function Shell() {
  const { name = '', role = '' } = administrator.value ?? {}
  const tenants = useLoaded((signal) => list('/v1/tenants', signal), [])
  useEffect(() => applied.subscribe((count) => count > 0 && void tenants.again()), [])
  const ids = (tenants.value?.items ?? []).map((/** @type {{ id: string }} */ { id }) => id)
  const seen = pages.filter(({ roles }) => roles === undefined || roles.includes(role))
  const current = pages.find((page) => page.name === route.value.page)
  return html`<a class="skip" href="#content" onClick=${skip}>${text.skip}</a>
    <header class="side">
      <a class="brand" href=${linkTo('overview')}
        ><img src="icon.svg" alt="" width="26" height="26" />${text.product}</a
      >
      <${TenantChoice} ids=${ids} isOfTenant=${current?.isOfTenant ?? false} />
      <nav aria-label=${text.navigation}>
        <ul>
          ${seen.map(
            (page) =>
              html`<li>
                <a href=${linkTo(page.name)} aria-current=${page === current ? 'page' : undefined}>${page.title}</a>
              </li>`
          )}
        </ul>
      </nav>
      <div class="who">
        <span class="muted">${text.signIn.as(name, role)}</span>
        <button type="button" class="quiet" aria-pressed=${isDark.value} onClick=${switchTheme}>${text.theme}</button>
        <button type="button" class="quiet" onClick=${signOut}>${text.signIn.out}</button>
      </div>
    </header>
    <main id="content">
      <${Content} key=${`${route.value.page} ${tenant.value}`} page=${current} role=${role} tenants=${tenants} />
    </main>
    <${ToldRegion} />`
}

/** @param {Event} event */
function skip(event) {
  event.preventDefault()
  document.querySelector('h1')?.focus()
}

/** @param {{ ids: string[], isOfTenant: boolean }} props */
function TenantChoice({ ids, isOfTenant }) {
  // The chosen tenant may exist although the list, which is cut off after some pages, does not contain it.
  const all = ids.includes(tenant.value) || tenant.value === '' ? ids : [tenant.value, ...ids]
  return html`<label class="tenant-choice"
    ><span class="muted">${text.tenant}</span>
    <select
      onChange=${(/** @type {{ currentTarget: HTMLSelectElement }} */ { currentTarget }) =>
        go(linkTo(route.value.page, { tenant: currentTarget.value || undefined }))}
    >
      <option value="" selected=${tenant.value === ''}>${isOfTenant ? text.chooseTenant : text.allTenants}</option>
      ${all.map((id) => html`<option value=${id} selected=${id === tenant.value}>${id}</option>`)}
    </select></label
  >`
}

/** @param {{ page: PageEntry | undefined, role: string, tenants: import('./core/load.js').Loaded<any> }} props */
function Content({ page, role, tenants }) {
  const [fault] = useErrorBoundary((error) => console.error(error))
  const heading = useRef(/** @type {HTMLHeadingElement | null} */ (null))
  const title = page?.title ?? text.noPage
  useEffect(() => {
    document.title = `${title} · ${text.product}`
    if (!document.activeElement?.closest('.tenant-choice')) heading.current?.focus({ preventScroll: true })
    scrollTo(0, 0)
    // On a narrow screen the pages stand in one line that scrolls.
    document.querySelector('nav [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [])
  return html`<h1 ref=${heading} tabindex="-1">${title}</h1>
    ${
      fault
        ? html`<${ProblemNote} problem=${{ status: 0, title: '', detail: text.fault, remedy: text.faultWhy }} />`
        : html`<${Body} page=${page} role=${role} tenants=${tenants} />`
    }`
}

/** @param {{ page: PageEntry | undefined, role: string, tenants: import('./core/load.js').Loaded<any> }} props */
function Body({ page, role, tenants }) {
  const { items = [] } = tenants.value ?? {}
  const needsTenant = page?.isOfTenant === true && tenant.value === ''
  useEffect(() => {
    if (needsTenant && items.length === 1) setParams({ tenant: items[0].id })
  }, [needsTenant, items])
  if (page === undefined) return html`<${Empty} title=${text.noPage} why=${text.noPageWhy} />`
  if (page.roles !== undefined && !page.roles.includes(role)) return html`<${Empty} title=${text.notForRole(role)} />`
  if (needsTenant)
    return html`<${Loading} loaded=${tenants}>
      ${() =>
        html`<${Empty} title=${items.length > 0 ? text.chooseTenant : text.noTenants} why=${text.chooseTenantWhy}>
          <ul class="choices">
            ${items.map((/** @type {{ id: string }} */ { id }) => html`<li><a class="button" href=${linkTo(page.name, { tenant: id })}>${id}</a></li>`)}
          </ul>
        <//>`}
    <//>`
  return html`<${LazyPage} page=${page} />`
}

/** @param {{ page: PageEntry }} props */
function LazyPage({ page }) {
  const loaded = useLoaded((signal) => received(page.load, signal), [])
  return html`<${Loading} loaded=${loaded}>${(/** @type {any} */ { Page }) => html`<${Page} />`}<//>`
}

function ToldRegion() {
  return html`<div class="told" role="status" aria-live="polite">
    ${told.value.map(
      ({ id, kind, text: said, remedy }) =>
        html`<div key=${id} class=${`note ${kind === 'failed' ? 'bad' : 'good'}`}>
          <p><strong>${said}</strong>${remedy && ` ${remedy}`}</p>
          <button type="button" class="quiet" onClick=${() => dismiss(id)}>${text.close}</button>
        </div>`
    )}
  </div>`
}
