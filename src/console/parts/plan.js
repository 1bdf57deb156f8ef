// A change, first as what it would do, then applied: refused where somebody else was first.

import { useSignal } from '@preact/signals'
import { post, request } from '../core/api.js'
import { html } from '../core/html.js'
import { useLoaded } from '../core/load.js'
import { attempt } from '../core/told.js'
import { text } from '../text.js'
import { Dialog } from './dialog.js'
import { Loading } from './notice.js'

const said = text.plan
/** Of the tools that are gained or lost. */
const namesShown = 12

/**
 * @param {{
 *   wish: object, apply: (plan: any) => Promise<unknown>, title?: string, label?: string, done: () => string,
 *   onClose: (isApplied: boolean) => void, children?: unknown
 * }} props wish: as `POST /v1/plan` takes it
 */
function PlanDialog({ wish, apply, title = said.title, label = said.apply, done, onClose, children }) {
  const isApplying = useSignal(false)
  const plan = useLoaded((signal) => post('/v1/plan', wish, signal), [])
  const changes = plan.value?.tenants ?? []
  async function run() {
    isApplying.value = true
    const isDone = await attempt(() => apply(plan.value), done)
    isApplying.value = false
    if (isDone) onClose(true)
    else void plan.again()
  }
  const button = html`<button
    type="button"
    class="main"
    disabled=${isApplying.value || changes.length === 0}
    onClick=${run}
  >
    ${label}
  </button>`
  return html`<${Dialog} title=${title} onClose=${() => onClose(false)} actions=${button} isWide>
    ${children}
    <${Loading} loaded=${plan}>
      ${(/** @type {any} */ { tenants }) =>
        tenants.length === 0
          ? html`<p>${said.nothing}</p>`
          : tenants.map((/** @type {any} */ each) => html`<${TenantPlan} plan=${each} />`)}
    <//>
  <//>`
}

/** @param {{ tenants: Record<string, object | null>, onClose: (isApplied: boolean) => void }} props */
function ChangeDialog({ tenants, onClose }) {
  let version = 0
  const apply = async (plan) => {
    const applied = await post('/v1/apply', { tenants, version: plan.version })
    version = applied.version
  }
  return html`<${PlanDialog} wish=${{ tenants }} ...${{ apply, onClose }} done=${() => said.done(version)} />`
}

/**
 * An earlier version of a tenant taken up again.
 * @param {{
 *   version: number, tenant: string, title: string, label: string, done: string, onClose: (isDone: boolean) => void,
 *   children?: unknown
 * }} props
 */
export function RollbackDialog({ version, tenant, done, ...props }) {
  return html`<${PlanDialog}
    wish=${{ rollback: version, tenant }}
    apply=${(/** @type {any} */ plan) => request('/v1/rollback', { method: 'POST', body: { version, tenant }, etag: `"${plan.version}"` })}
    done=${() => done}
    ...${props}
  />`
}

/**
 * A page that plans changes.
 * @param {() => unknown} onApplied
 * @returns {{ plan: (tenants: Record<string, object | null>) => void, dialog: unknown }} dialog: while there is a plan
 */
export function usePlan(onApplied) {
  const wanted = useSignal(/** @type {Record<string, object | null> | undefined} */ (undefined))
  function close(isApplied) {
    wanted.value = undefined
    if (isApplied) void onApplied()
  }
  return {
    plan: (tenants) => void (wanted.value = tenants),
    dialog: wanted.value && html`<${ChangeDialog} tenants=${wanted.value} onClose=${close} />`
  }
}

/** @param {{ plan: any }} props as `POST /v1/plan` says it */
function TenantPlan({ plan: { tenant, change, callersChange, endpoints, upstreams, brokenTests } }) {
  return html`<section class="plan">
    <h3>${said.tenant[/** @type {'made'} */ (change)](tenant)}</h3>
    <ul class="sentences">
      ${callersChange && html`<li class="warn">${said.callers}</li>`}
      ${upstreams.map(
        (/** @type {any} */ { upstream, change }) =>
          html`<li class=${change === 'removed' ? 'bad' : ''}>
            ${said.upstream[/** @type {'made'} */ (change)](upstream)}
          </li>`
      )}
      ${endpoints.flatMap(endpointSentences)}
      ${brokenTests.map(
        (/** @type {any} */ { endpoint, name, sentence }) =>
          html`<li class="bad">${said.brokenTest(name, endpoint)} ${sentence}</li>`
      )}
    </ul>
  </section>`
}

/** @param {any} plan */
function endpointSentences({ endpoint, change, gains, loses, rulesChange, callers, mayChange, unknown, sessions }) {
  const names = (/** @type {{ count: number, names: string[] }} */ { count, names }) =>
    html`<span class="names"
      >${names.slice(0, namesShown).map((name) => html`<code>${name}</code>${' '}`)}${count > namesShown && said.andMore(count - namesShown)}</span
    >`
  return [
    html`<li class=${change === 'removed' ? 'bad' : ''}>
      ${said.endpoint[/** @type {'made'} */ (change)](endpoint)}
      ${sessions > 0 && ` ${change === 'removed' ? said.ended(sessions) : said.told(sessions)}`}
    </li>`,
    gains.count > 0 && html`<li class="good">${said.gains(endpoint, gains.count)}: ${names(gains)}</li>`,
    loses.count > 0 && html`<li class="bad">${said.loses(endpoint, loses.count)}: ${names(loses)}</li>`,
    rulesChange && html`<li class="warn">${said.rules(endpoint)}</li>`,
    ...callers.changes.map(
      (/** @type {any} */ { subject, gains, loses }) =>
        html`<li class=${loses.count > 0 ? 'bad' : 'good'}>
          ${said.caller(subject, endpoint)} ${gains.count > 0 && html` ${said.gained} ${names(gains)}`}
          ${loses.count > 0 && html` ${said.lost} ${names(loses)}`}
        </li>`
    ),
    callers.differ > callers.changes.length &&
      html`<li class="warn">${said.others(callers.differ - callers.changes.length)}</li>`,
    callers.notLookedAt > 0 && html`<li class="warn">${said.notLookedAt(callers.notLookedAt)}</li>`,
    rulesChange && callers.differ === 0 && html`<li>${said.nobodyDiffers(callers.known)}</li>`,
    mayChange.length > 0 && html`<li class="warn">${said.mayChange(mayChange.join(', '))}</li>`,
    unknown.length > 0 && html`<li class="warn">${said.unknown(unknown.join(', '))}</li>`
  ]
}
