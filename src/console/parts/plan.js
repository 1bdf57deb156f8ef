// Shows what a change of the configuration would do, and applies it. The gateway refuses it if somebody else has
// changed the configuration meanwhile.

import { signal, useSignal } from '@preact/signals'
import { get, path, post, ProblemError, problemOf, request } from '../core/api.js'
import { html } from '../core/html.js'
import { useLoaded } from '../core/load.js'
import { tell } from '../core/told.js'
import { text } from '../text.js'
import { Dialog } from './dialog.js'
import { Moment } from './moment.js'
import { Loading, ProblemNote } from './notice.js'
import { Table } from './table.js'

const { people, plan: said } = text
/** The most names that are listed of one kind of gained or lost things. */
const namesShown = 12
/** How many sessions are listed at first, and more with each click on "Show more". */
const sessionsPerPage = 25

/** How many plans were applied since the console was loaded. The list of tenants is read again when it changes. */
export const applied = signal(0)

/**
 * @param {{
 *   ask: (signal: AbortSignal) => Promise<any>, apply: (plan: any) => Promise<unknown>, title?: string, label?: string,
 *   done: () => string, onClose: (isApplied: boolean) => void, children?: unknown
 * }} props ask: resolves with an answer of `POST /v1/plan`
 */
function PlanDialog({ ask, apply, title = said.title, label = said.apply, done, onClose, children }) {
  const isApplying = useSignal(false)
  const refused = useSignal(/** @type {import('../core/api.js').Problem | undefined} */ (undefined))
  const plan = useLoaded(ask, [])
  const isOfNow = !plan.isLoading && plan.problem === undefined && plan.value.tenants.length > 0
  async function run() {
    isApplying.value = true
    refused.value = undefined
    try {
      await apply(plan.value)
      tell('done', done())
      applied.value++
      onClose(true)
    } catch (error) {
      refused.value = problemOf(error)
      void plan.again()
    }
    isApplying.value = false
  }
  const button = html`<button type="button" class="main" disabled=${isApplying.value || !isOfNow} onClick=${run}>
    ${label}
  </button>`
  return html`<${Dialog} title=${title} onClose=${() => onClose(false)} actions=${button} isWide>
    ${children} ${refused.value && html`<${ProblemNote} problem=${refused.value} />`}
    <${Loading} loaded=${plan}>
      ${(/** @type {any} */ { tenants }) =>
        tenants.length === 0
          ? html`<p>${said.nothing}</p>`
          : tenants.map((/** @type {any} */ each) => html`<${TenantPlan} plan=${each} />`)}
    <//>
  <//>`
}

/**
 * @param {Wanted & { onClose: (isApplied: boolean) => void }} props
 */
function ChangeDialog({ tenants, versions, onClose }) {
  let version = 0
  async function ask(signal) {
    const plan = await post('/v1/plan', { tenants }, signal)
    // Compared after the plan was made: the gateway refuses a plan if something was changed after it.
    for (const [id, read] of Object.entries(versions)) {
      const { version: now } = await get(path`/v1/tenants/${id}`, signal)
      if (now !== read) throw new ProblemError({ status: 412, title: '', ...said.changedMeanwhile(id) })
    }
    return plan
  }
  const apply = async (plan) => {
    const applied = await post('/v1/apply', { tenants, version: plan.version })
    version = applied.version
  }
  return html`<${PlanDialog} ...${{ ask, apply, onClose }} done=${() => said.done(version)} />`
}

/**
 * The dialog that restores an earlier version of a tenant.
 * @param {{
 *   version: number, tenant: string, title: string, label: string, done: string, onClose: (isDone: boolean) => void,
 *   children?: unknown
 * }} props
 */
export function RollbackDialog({ version, tenant, done, ...props }) {
  return html`<${PlanDialog}
    ask=${(/** @type {AbortSignal} */ signal) => post('/v1/plan', { rollback: version, tenant }, signal)}
    apply=${(/** @type {any} */ plan) => request('/v1/rollback', { method: 'POST', body: { version, tenant }, etag: `"${plan.version}"` })}
    done=${() => done}
    ...${props}
  />`
}

/**
 * @typedef {{ tenants: Record<string, object | null>, versions: Record<string, number> }} Wanted versions: the version
 * of each tenant whose whole configuration was read and changed
 */

/**
 * Lets a page plan changes.
 * @param {(isApplied: boolean) => unknown} onClosed should read again what may have changed
 * @returns {{ plan: (tenants: Wanted['tenants'], versions?: Wanted['versions']) => void, dialog: unknown }} dialog: the
 * page must render it; it is shown while there is a plan
 */
export function usePlan(onClosed) {
  const wanted = useSignal(/** @type {Wanted | undefined} */ (undefined))
  function close(isApplied) {
    wanted.value = undefined
    void onClosed(isApplied)
  }
  return {
    plan: (tenants, versions = {}) => void (wanted.value = { tenants, versions }),
    dialog: wanted.value && html`<${ChangeDialog} ...${wanted.value} onClose=${close} />`
  }
}

/** @param {{ plan: any }} props plan: an answer of `POST /v1/plan` */
function TenantPlan({ plan: { tenant, change, callersChange, endpoints, upstreams, brokenTests, notes } }) {
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
      ${(notes ?? []).map((/** @type {string} */ note) => html`<li class="warn">${note}</li>`)}
    </ul>
  </section>`
}

/** @param {{ sessions: any[], others: number }} props */
const ToldSessions = ({ sessions, others }) =>
  html`<details>
    <summary>${said.whichSessions}</summary>
    <${Table}
      caption=${said.whichSessions}
      rows=${sessions}
      perPage=${sessionsPerPage}
      keyOf=${({ id }) => id}
      textOf=${({ subject, software, client }) => [subject, software, client].join(' ')}
      columns=${[
        { title: people.person, isHead: true, cell: ({ subject }) => subject },
        { title: people.software, cell: ({ software, client }) => software ?? client },
        { title: people.revision, cell: ({ revision }) => revision },
        { title: people.opened, cell: ({ openedAt }) => html`<${Moment} at=${openedAt} />` }
      ]}
    />
    ${others > 0 && html`<p class="muted">${said.notNamed(others)}</p>`}
  </details>`

/** @param {any} plan */
function endpointSentences({
  endpoint,
  change,
  gains,
  loses,
  others,
  rulesChange,
  callers,
  mayChange,
  unknown,
  sessions,
  toldSessions
}) {
  const names = (/** @type {{ count: number, names: string[] }} */ { count, names }) =>
    html`<span class="names"
      >${names.slice(0, namesShown).map((name) => html`<code>${name}</code>${' '}`)}${count > namesShown && said.andMore(count - namesShown)}</span
    >`
  return [
    html`<li class=${change === 'removed' ? 'bad' : ''}>
      ${said.endpoint[/** @type {'made'} */ (change)](endpoint)}
      ${sessions > 0 && ` ${change === 'removed' ? said.ended(sessions) : said.told(sessions)}`}
      ${toldSessions.length > 0 && html`<${ToldSessions} sessions=${toldSessions} others=${sessions - toldSessions.length} />`}
    </li>`,
    ...[{ kind: 'tool', gains, loses }, ...others].flatMap(({ kind, gains, loses }) => [
      gains.count > 0 && html`<li class="good">${said.gains(endpoint, gains.count, kind)}: ${names(gains)}</li>`,
      loses.count > 0 && html`<li class="bad">${said.loses(endpoint, loses.count, kind)}: ${names(loses)}</li>`
    ]),
    rulesChange && html`<li class="warn">${said.rules(endpoint)}</li>`,
    ...callers.changes.flatMap((/** @type {any} */ { subject, gains, loses, others }) =>
      [{ kind: 'tool', gains, loses }, ...others].map(
        ({ kind, gains, loses }) =>
          gains.count + loses.count > 0 &&
          html`<li class=${loses.count > 0 ? 'bad' : 'good'}>
            ${said.caller(subject, endpoint)}
            ${gains.count > 0 && html` ${said.gained(gains.count, kind)} ${names(gains)}`}
            ${loses.count > 0 && html` ${said.lost(loses.count, kind)} ${names(loses)}`}
          </li>`
      )
    ),
    callers.differ > callers.changes.length &&
      html`<li class="warn">${said.others(callers.differ - callers.changes.length)}</li>`,
    callers.notLookedAt > 0 && html`<li class="warn">${said.notLookedAt(callers.notLookedAt)}</li>`,
    rulesChange && callers.differ === 0 && html`<li>${said.nobodyDiffers(callers.known)}</li>`,
    mayChange.length > 0 && html`<li class="warn">${said.mayChange(mayChange.join(', '))}</li>`,
    unknown.length > 0 && html`<li class="warn">${said.unknown(unknown.join(', '))}</li>`
  ]
}
