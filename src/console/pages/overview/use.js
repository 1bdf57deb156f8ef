// Lists the gateway processes, and shows how much of the limits of the process that answers is in use.

import { get, path } from '../../core/api.js'
import { html } from '../../core/html.js'
import { useLoaded } from '../../core/load.js'
import { ListPart } from '../../parts/list.js'
import { Moment } from '../../parts/moment.js'
import { Loading } from '../../parts/notice.js'
import { text } from '../../text.js'

const said = text.overview
const everyMs = 10_000

/** @param {string} metrics in the text format of Prometheus @param {string} name */
const reading = (metrics, name) =>
  Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)`, 'm').exec(metrics)?.[1] ?? Number.NaN)

async function readUse(signal) {
  const [metrics, limits, processes, versions] = await Promise.all([
    get('/metrics', signal),
    get('/v1/limits', signal),
    get('/v1/processes', signal),
    get('/v1/versions?limit=1', signal)
  ])
  return { metrics, limits, version: processes.items[0].version, latest: versions.items[0]?.version }
}

export function Use() {
  const use = useLoaded(readUse, [], { everyMs })
  return html`<section class="part" aria-labelledby="use">
    <h2 id="use">${said.use}</h2>
    <${Loading} loaded=${use}>
      ${({ metrics, limits, version, latest }) => {
        const [held, budget] = [
          reading(metrics, 'gatehouse_memory_held_bytes'),
          reading(metrics, 'gatehouse_memory_budget_bytes')
        ]
        const count = (name) => reading(metrics, `gatehouse_${name}`)
        return html`<div class="cards">
          <div class="card">
            <${Meter} name=${said.memory} used=${held} most=${budget} format=${text.bytes} />
            <${Meter}
              name=${said.processes}
              used=${count('processes')}
              most=${limits.processes}
              format=${text.amount}
            />
            <${Meter}
              name=${said.connections}
              used=${count('connections')}
              most=${count('connections_limit')}
              format=${text.amount}
            />
          </div>
          <dl class="card facts">
            <dt>${said.sessions}</dt>
            <dd>${count('sessions')}</dd>
            <dt>${said.streams}</dt>
            <dd>${count('streams')}</dd>
            <dt>${said.version}</dt>
            <dd>${version}</dd>
            <dt>${said.configuration}</dt>
            <dd>${latest === undefined ? said.file : said.changes(latest)}</dd>
          </dl>
        </div>`
      }}
    <//>
  </section>`
}

export function Processes() {
  const processes = useLoaded((signal) => get('/v1/processes', signal), [], { everyMs })
  const items = processes.value?.items ?? []
  const differing = [...Map.groupBy(items.slice(1), (each) => differencesOf(each, items[0]).join('\n')).values()]
    .map((alike) => ({ names: alike.map(({ process }) => process), parts: differencesOf(alike[0], items[0]) }))
    .filter(({ parts }) => parts.length > 0)
  return html`<${ListPart}
    title=${said.replicas}
    loaded=${processes}
    empty=${{ title: text.none }}
    keyOf=${({ process }) => process}
    columns=${[
      {
        title: said.replica,
        isHead: true,
        cell: ({ process }) =>
          html`<code>${process}</code
            >${process === items[0].process && html` <span class="mark">${said.answers}</span>`}`
      },
      { title: said.version, cell: ({ version }) => version },
      { title: said.configuration, isNumber: true, cell: ({ configuration }) => configuration },
      { title: said.snapshot, cell: ({ snapshot }) => html`<code>${snapshot}</code>` },
      { title: said.started, cell: ({ startedAt }) => html`<${Moment} at=${startedAt} />` }
    ]}
  >
    ${
      differing.length > 0 &&
      html`<div class="note warn">
        ${differing.map(({ names, parts }) => html`<p>${said.differs(names, parts)}</p>`)}
        <p>${said.mixed}</p>
      </div>`
    }
  <//>`
}

/** Says in words how a process differs from the one that answers. */
const differencesOf = (its, own) =>
  Object.entries(said.differ)
    .filter(([name]) => its[name] !== own[name])
    .map(([name, what]) => said.insteadOf(what, String(its[name]), String(own[name])))

/** How much of its limits a tenant uses at the process that answers; its sessions are those of all processes. */
export function TenantUse({ id }) {
  const usage = useLoaded((signal) => get(path`/v1/tenants/${id}/usage?days=1`, signal), [], { everyMs })
  return html`<section class="part" aria-label=${said.useOf(id)}>
    <h2>${said.useOf(id)}</h2>
    <${Loading} loaded=${usage}>
      ${({ resources, limits }) =>
        html`<div class="card meters">
          ${Object.entries(said.resources).map(([name, title]) => {
            const { used, limit } = resources[name]
            const format = name.endsWith('Bytes') ? text.bytes : text.amount
            return html`<${Meter} key=${name} name=${title} used=${used} most=${limit} format=${format} />`
          })}
          ${limits.map(
            ({ limit, unit, used, max, atLimit }) =>
              html`<${Meter}
                key=${`${limit} ${unit}`}
                name=${said.limitOf(limit, unit)}
                used=${used}
                most=${max}
                format=${text.amount}
                note=${atLimit > 0 ? said.atLimit(atLimit) : undefined}
              />`
          )}
        </div>`}
    <//>
  </section>`
}

/** @param {{ name: string, used: number, most: number | null, format: (amount: number) => string, note?: string }} props most: null if there is no limit */
function Meter({ name, used, most, format, note }) {
  const told = most === null ? said.noLimit(format(used)) : said.of(format(used), format(most))
  return html`<div class="meter">
    <div class="row">
      <span>${name}${note && html` <span class="mark bad">${note}</span>`}</span
      ><span class="push number">${told}</span>
    </div>
    ${
      most !== null &&
      html`<meter
        min="0"
        max="1"
        high="0.8"
        optimum="0"
        value=${most > 0 ? used / most : 0}
        aria-label=${name}
      ></meter>`
    }
  </div>`
}
