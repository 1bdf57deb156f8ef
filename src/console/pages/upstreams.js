// The upstreams of a tenant with their state and last errors; reconnects them, and adds new ones.

import { useSignal } from '@preact/signals'
import { administrator, get, list, path, post, ProblemError } from '../core/api.js'
import { html } from '../core/html.js'
import { useLoaded } from '../core/load.js'
import { linkTo, route, tenant } from '../core/route.js'
import { ConfirmDialog } from '../parts/confirm.js'
import { Empty, Loading } from '../parts/notice.js'
import { usePlan } from '../parts/plan.js'
import { Table } from '../parts/table.js'
import { ago } from '../parts/time.js'
import { text } from '../text.js'
import { AddDialog } from './upstreams/add.js'
import { StandardError } from './upstreams/stderr.js'

const said = text.upstreams
const everyMs = 5_000
const marks = { connected: 'good', idle: '', away: 'bad', disabled: 'warn' }

/** The roles that may change the tenant. */
export const mayChange = () => administrator.value?.role.endsWith('-admin') === true

export function Page() {
  const id = tenant.value
  const upstreams = useLoaded((signal) => list(path`/v1/tenants/${id}/upstreams`, signal), [id], { everyMs })
  const owner = useLoaded((signal) => get(path`/v1/tenants/${id}`, signal), [id])
  const isAdding = useSignal(false)
  const { plan, dialog } = usePlan((isApplied) => {
    if (isApplied) isAdding.value = false
    return Promise.all([upstreams.again(), owner.again()])
  })
  const chosen = route.value.params.get('upstream')
  function add() {
    void owner.again()
    isAdding.value = true
  }
  const isOfFile = owner.value?.managedBy === 'file'

  return html`${isOfFile && html`<p class="note">${said.ofFile}</p>`}
    ${
      mayChange() &&
      owner.value?.managedBy === 'api' &&
      html`<div class="row">
        <button type="button" class="main" onClick=${add}>${said.add}</button>
      </div>`
    }
    <${Loading} loaded=${upstreams}>
      ${({ items, isWhole }) => {
        const one = items.find(({ name }) => name === chosen)
        return items.length === 0
          ? html`<${Empty} title=${said.none} why=${said.noneWhy} />`
          : html`<${UpstreamTable} items=${items} isWhole=${isWhole} chosen=${chosen} />
              ${one && html`<${Upstream} key=${one.name} upstream=${one} again=${upstreams.again} />`}
              ${chosen !== null && one === undefined && html`<${Empty} title=${said.noSuch(chosen)} />`}`
      }}
    <//>
    ${
      isAdding.value &&
      html`<${AddDialog}
        owner=${owner.value}
        onClose=${() => (isAdding.value = false)}
        onPlan=${(configuration) => plan({ [id]: configuration }, { [id]: owner.value.version })}
      />`
    }
    ${dialog}`
}

function UpstreamTable({ items, isWhole, chosen }) {
  return html`<${Table}
    caption=${text.pages.upstreams}
    rows=${items}
    isWhole=${isWhole}
    keyOf=${({ name }) => name}
    textOf=${({ name, state, target }) => `${name} ${state} ${target}`}
    columns=${[
      {
        title: said.name,
        isHead: true,
        cell: ({ name }) =>
          html`<a href=${linkTo('upstreams', { upstream: name })} aria-current=${name === chosen ? 'true' : undefined}
            >${name}</a
          >`
      },
      {
        title: said.state,
        cell: ({ state }) => html`<span class=${`mark ${marks[state]}`}>${said.states[state]}</span>`
      },
      {
        title: said.transport,
        cell: ({ transport }) => html`<span class="whole">${said.transports[transport] ?? said.transportUnknown}</span>`
      },
      { title: said.target, cell: ({ target }) => html`<code>${target}</code>` },
      { title: said.tools, isNumber: true, cell: ({ listing }) => listing?.tools ?? text.none },
      { title: said.connections, isNumber: true, cell: ({ connections }) => connections },
      { title: said.running, isNumber: true, cell: ({ calls }) => calls }
    ]}
  />`
}

function Upstream({ upstream, again }) {
  const { name, type, transport, state, processes, strayLines, revisions, isolation } = upstream
  const { awaySince, nextTryAt, lastError, listing, secrets } = upstream
  const asked = useSignal(/** @type {'later' | 'atOnce' | undefined} */ (undefined))
  async function reconnect(atOnce) {
    const target = path`/v1/tenants/${tenant.value}/upstreams/${name}/reconnect`
    const { state, lastError } = await post(target, { atOnce })
    await again()
    if (state === 'away')
      throw new ProblemError({ status: 0, title: '', detail: said.stillAway(name), remedy: lastError ?? undefined })
  }
  const words = type === 'stdio' ? said.restart : said.reconnect
  const close = () => (asked.value = undefined)
  return html`<section class="card" aria-labelledby="upstream">
    <div class="row">
      <h2 id="upstream">${name}</h2>
      <span class=${`mark ${marks[state]}`}>${said.states[state]}</span>
      ${
        mayChange() &&
        html`<span class="row push">
          <button type="button" onClick=${() => (asked.value = 'later')}>${words.later}</button>
          <button type="button" class="danger" onClick=${() => (asked.value = 'atOnce')}>${words.atOnce}</button>
        </span>`
      }
    </div>
    ${
      state === 'away' &&
      html`<p class="note bad">
        ${said.away(awaySince === null ? '' : ago(awaySince), nextTryAt === null ? '' : ago(nextTryAt))}${lastError && ` ${lastError}`}
      </p>`
    }
    <dl class="facts">
      <dt>${said.transport}</dt>
      <dd>${said.transports[transport] ?? said.transportWhen}</dd>
      <dt>${said.revisions}</dt>
      <dd>${revisions.join(', ') || text.none}</dd>
      <dt>${said.isolation}</dt>
      <dd>${said.isolations[isolation]}</dd>
      ${
        processes &&
        html`<dt>${said.processes}</dt>
          <dd>${said.processesOf(processes.count, text.bytes(processes.bytes))}</dd>`
      }
      ${
        strayLines > 0 &&
        html`<dt>${said.strayLines}</dt>
          <dd>${said.strayLinesOf(strayLines)}</dd>`
      }
      <dt>${said.listing}</dt>
      <dd>${listing === null ? said.listingUnknown : said.listed(listing)}</dd>
      ${
        secrets.length > 0 &&
        html`<dt>${said.secrets}</dt>
          <dd>${secrets.join(', ')}</dd>`
      }
      ${
        lastError &&
        state !== 'away' &&
        html`<dt>${said.lastError}</dt>
          <dd>${lastError}</dd>`
      }
    </dl>
    ${type === 'stdio' && state !== 'disabled' && mayChange() && html`<${StandardError} upstream=${name} everyMs=${everyMs} />`}
    ${
      asked.value &&
      html`<${ConfirmDialog}
        title=${words[asked.value]}
        label=${words[asked.value]}
        done=${said.done(name)}
        isDangerous=${asked.value === 'atOnce'}
        act=${() => reconnect(asked.value === 'atOnce')}
        onClose=${close}
      >
        <p>${asked.value === 'atOnce' ? said.atOnceWhy(upstream.calls) : said.laterWhy}</p>
      <//>`
    }
  </section>`
}
