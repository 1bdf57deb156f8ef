// The state of the gateway at a glance: current problems, the calls of the last hour, and how much is in use.

import { useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { administrator, get, list, path } from '../core/api.js'
import { html } from '../core/html.js'
import { useLoaded } from '../core/load.js'
import { linkTo, tenant } from '../core/route.js'
import { Choice } from '../parts/choice.js'
import { ListPart } from '../parts/list.js'
import { Empty, Loading } from '../parts/notice.js'
import { Plot } from '../parts/plot.js'
import { ago, duration } from '../parts/time.js'
import { text } from '../text.js'
import { Processes, TenantUse, Use } from './overview/use.js'

const said = text.overview
const everyMs = 10_000

/** The most tenants that are shown to an administrator of several. */
const maxTenantsShown = 4

export function Page() {
  const own = tenant.value === '' ? (administrator.value?.tenants ?? []) : [tenant.value]
  return html`<${Problems} />
    <${Calls} />
    ${own.slice(0, maxTenantsShown).map((id) => html`<${TenantUse} key=${id} id=${id} />`)}
    ${tenant.value === '' && html`<${Processes} />`}
    ${tenant.value === '' && administrator.value?.tenants === null && html`<${Use} />`}
    ${tenant.value === '' && html`<${Tenants} />`}`
}

function Problems() {
  const problems = useLoaded((signal) => get('/v1/problems', signal), [], { everyMs })
  return html`<section class="part" aria-labelledby="problems">
    <h2 id="problems">${said.problems}</h2>
    <${Loading} loaded=${problems}>
      ${({ items, leftOut }) => {
        const shown = items.filter((each) => tenant.value === '' || [undefined, tenant.value].includes(each.tenant))
        return shown.length === 0
          ? html`<p class="note good">${said.allWell}</p>`
          : html`<ul class="problems">
                ${shown.map((each) => html`<${Problem} ...${each} key=${each.id} />`)}
              </ul>
              ${leftOut > 0 && html`<p class="muted">${said.leftOut(leftOut)}</p>`}`
      }}
    <//>
  </section>`
}

const marks = { fault: 'bad', warning: 'warn', notice: '' }

function Problem({ severity, sentence, remedy, since, tenant, upstream }) {
  return html`<li class=${marks[severity]}>
    <span class=${`mark ${marks[severity]}`}>${said.severity[severity]}</span>
    <div>
      <p>${sentence}</p>
      <p class="muted">${since && `${said.since(ago(since))} `}${remedy}</p>
    </div>
    ${upstream && html`<a class="button" href=${linkTo('upstreams', { tenant, upstream })}>${said.open(upstream)}</a>`}
  </li>`
}

const kinds = ['tenant', 'endpoint', 'upstream', 'tool']
/** The spans that can be shown, in minutes: a process remembers one hour; longer spans need Prometheus. */
const spans = [10, 30, 60]
const longSpans = [6 * 60, 24 * 60, 7 * 24 * 60, 30 * 24 * 60]
const quantiles = ['p50', 'p95', 'p99']
const longEveryMs = 60_000

function Calls() {
  const by = useSignal(tenant.value === '' ? 'tenant' : 'upstream')
  const minutes = useSignal(60)
  const zoom = useSignal(/** @type {[number, number] | null} */ (null))
  const at = useSignal(/** @type {number | null} */ (null))
  const mark = useSignal(/** @type {number | null} */ (null))
  const own = tenant.value === '' ? '/v1/series' : path`/v1/tenants/${tenant.value}/series`
  const quantile = useSignal('p95')
  const isLong = minutes.value > 60
  const span = isLong ? `/long?hours=${minutes.value / 60}` : `?minutes=${minutes.value}`
  const target = `${own}${span}&by=${by.value}&top=5`
  const series = useLoaded((signal) => get(target, signal), [target], { everyMs: isLong ? longEveryMs : everyMs })
  const offered = administrator.value?.hasLongSeries ? [...spans, ...longSpans] : spans
  const choices = tenant.value === '' ? kinds : kinds.slice(1)
  return html`<section class="part" aria-labelledby="calls">
    <div class="row">
      <h2 id="calls">${said.calls}</h2>
      <div class="row push">
        <${Choice}
          label=${said.by}
          value=${by.value}
          choices=${choices.map((each) => [each, said.kinds[each]])}
          onChange=${(value) => (by.value = value)}
        />
        <${Choice}
          label=${said.span}
          value=${String(minutes.value)}
          choices=${offered.map((each) => [String(each), said.spanOf(each)])}
          onChange=${(value) => {
            minutes.value = Number(value)
            zoom.value = null
          }}
        />
        <${Choice}
          label=${said.quantile}
          value=${quantile.value}
          choices=${quantiles.map((each) => [each, each])}
          onChange=${(value) => (quantile.value = value)}
        />
        <button type="button" disabled=${zoom.value === null} onClick=${() => (zoom.value = null)}>
          ${said.wholeSpan}
        </button>
      </div>
    </div>
    <${Loading} loaded=${series}
      >${(value) => html`<${Plots} series=${value} shared=${{ zoom, at, mark }} quantile=${quantile.value} />`}<//
    >
  </section>`
}

/** Leaves out the last step, which has not ended: it would look as if calls had become fewer. */
const ended = (values) => values.slice(0, -1)

function Plots({ series, shared, quantile }) {
  const { from, stepMs, steps, total, items } = series
  const plots = useMemo(() => {
    const begin = Date.parse(from) / 1000
    const perSecond = (calls) => ended(calls).map((count) => count / (stepMs / 1000))
    const rate = ({ calls, errors, toolErrors }) =>
      ended(calls).map((count, at) => (count === 0 ? null : ((errors[at] + toolErrors[at]) / count) * 100))
    const named = items.map((item) => ({
      item,
      name: tenant.value === '' && item.tenant !== item.name ? `${item.tenant}: ${item.name}` : item.name
    }))
    return {
      times: Array.from({ length: steps - 1 }, (_, at) => begin + (at * stepMs) / 1000),
      calls: [
        { name: said.all, values: perSecond(total.calls) },
        ...named.map(({ item, name }) => ({ name, values: perSecond(item.calls) }))
      ],
      errors: [
        { name: said.all, values: rate(total) },
        ...named.map(({ item, name }) => ({ name, values: rate(item) }))
      ],
      quantiles: quantiles.map((name) => ({ name, values: ended(total[name]) })),
      slowest: named.map(({ item, name }) => ({ name, values: ended(item[quantile]) }))
    }
  }, [series, quantile])
  if (total.calls.every((count) => count === 0)) return html`<${Empty} title=${said.noCalls} why=${said.noCallsWhy} />`
  const all = { times: plots.times, shared }
  return html`<div class="plots">
      <${Plot}
        ...${all}
        title=${said.perSecond}
        lines=${plots.calls.slice(0, 6)}
        format=${(value) => said.rate(value)}
      />
      <${Plot}
        ...${all}
        title=${said.errorRate}
        lines=${plots.errors.slice(0, 6)}
        format=${(value) => said.percent(value)}
      />
      <${Plot} ...${all} title=${said.latency} lines=${plots.quantiles} format=${duration} />
      <${Plot} ...${all} title=${said.slowest(quantile)} lines=${plots.slowest.slice(0, 6)} format=${duration} />
    </div>
    <p class="muted">${series.process === null ? said.byPrometheus : said.process(series.process)} ${said.zoom}</p>`
}

function Tenants() {
  const tenants = useLoaded((signal) => list('/v1/tenants', signal), [])
  return html`<${ListPart}
    title=${said.tenants}
    loaded=${tenants}
    empty=${{ title: said.noTenants, why: said.noTenantsWhy }}
    keyOf=${({ id }) => id}
    textOf=${({ id }) => id}
    columns=${[
      {
        title: text.tenant,
        isHead: true,
        cell: ({ id }) => html`<a href=${linkTo('overview', { tenant: id })}>${id}</a>`
      },
      { title: said.endpoints, isNumber: true, cell: ({ endpoints }) => endpoints },
      { title: said.upstreams, isNumber: true, cell: ({ upstreams }) => upstreams },
      { title: said.managedBy, cell: ({ managedBy }) => text.managers[managedBy] }
    ]}
  />`
}
