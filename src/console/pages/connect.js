// Shows how to connect a host to an endpoint: a snippet, a link, a command, or a QR code for a phone; and checks
// whether a host can reach the endpoint.

import { useSignal } from '@preact/signals'
import { useMemo, useRef } from 'preact/hooks'
import { encode } from 'uqr'
import { administrator, get, path } from '../core/api.js'
import { html } from '../core/html.js'
import { useLoaded } from '../core/load.js'
import { route, setParams, tenant } from '../core/route.js'
import { Choice, WithEndpoint } from '../parts/choice.js'
import { CopyText } from '../parts/copy.js'
import { Field } from '../parts/form.js'
import { Hops, useHops } from '../parts/hops.js'
import { Loading, ProblemNote } from '../parts/notice.js'
import { text } from '../text.js'

const said = text.connect
/** Systems by their names in Node (`process.platform`). */
const platforms = ['linux', 'darwin', 'win32']
const ownPlatform = () =>
  /mac/i.test(navigator.userAgent) ? 'darwin' : /windows/i.test(navigator.userAgent) ? 'win32' : 'linux'

export function Page() {
  return html`<${WithEndpoint}>${(endpoint, choice) => html`<${OfEndpoint} ...${{ endpoint, choice }} />`}<//>`
}

function OfEndpoint({ endpoint, choice }) {
  const { params } = route.value
  const platform = params.get('platform') ?? ownPlatform()
  const by = params.get('with')
  const query = new URLSearchParams({ platform, ...(by && { with: by }) })
  const target = path`/v1/tenants/${tenant.value}/endpoints/${endpoint.name}/hosts`
  const found = useLoaded((signal) => get(`${target}?${query}`, signal), [`${target}?${query}`])
  // What is chosen stays so while the next answer is on its way.
  const known = useRef(by)
  known.current = by ?? found.value?.with ?? known.current
  return html`<div class="row">
      ${choice}
      ${
        known.current &&
        html`<${Choice}
          label=${said.with}
          value=${known.current}
          choices=${[
            ['login', said.login],
            ['key', said.key]
          ]}
          onChange=${(chosen) => setParams({ with: chosen })}
        />`
      }
      <${Choice}
        label=${said.platform}
        value=${platform}
        choices=${platforms.map((each) => [each, said.platforms[each]])}
        onChange=${(chosen) => setParams({ platform: chosen })}
      />
    </div>
    <${Loading} loaded=${found}>
      ${(value) =>
        html`<section class="card reach">
            <div class="part">
              <h2>${said.url}</h2>
              <p class="muted">${said.urlHint}</p>
              <${CopyText} label=${said.url} value=${value.url} />
              ${value.with === 'key' && html`<p class="muted">${said.keyHint}</p>`}
            </div>
            <${Code} value=${value.url} label=${said.code(value.url)} />
          </section>
          <div class="cards hosts">
            ${value.items.map((host) => html`<${HostCard} key=${host.host} ...${host} />`)}
          </div>`}
    <//>
    ${['platform-admin', 'tenant-admin'].includes(administrator.value?.role ?? '') && html`<${Doctor} key=${endpoint.name} endpoint=${endpoint.name} />`}`
}

function HostCard({ title, path: file, snippet, command, link, notes }) {
  return html`<section class="card">
    <h2>${title}</h2>
    ${
      snippet &&
      html`<div class="part">
        <p class="muted">${said.into} <code>${file}</code></p>
        <${CopyText} label=${said.snippetOf(title)} value=${snippet} />
      </div>`
    }
    ${
      command &&
      html`<div class="part">
        <p class="muted">${snippet ? said.orRun : said.run}</p>
        <${CopyText} label=${said.commandOf(title)} value=${command} />
      </div>`
    }
    ${
      link &&
      html`<div class="row">
        <a class="button" href=${link}>${said.open(title)}</a>
        <details class="code-of">
          <summary>${said.showCode}</summary>
          <${Code} value=${link} label=${said.linkCode(title)} />
        </details>
      </div>`
    }
    ${
      notes.length > 0 &&
      html`<ul class="notes">
        ${notes.map((note) => html`<li key=${note}>${note}</li>`)}
      </ul>`
    }
  </section>`
}

/** A QR code, dark on light in every theme, because cameras may not read it otherwise. */
function Code({ value, label }) {
  const { size, d } = useMemo(() => {
    const made = encode(value, { border: 2 })
    const rows = made.data.map((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : '')).join(''))
    return { size: made.size, d: rows.join('') }
  }, [value])
  return html`<svg
    class="qr"
    viewBox=${`0 0 ${size} ${size}`}
    role="img"
    aria-label=${label}
    shape-rendering="crispEdges"
  >
    <path d=${d} />
  </svg>`
}

function Doctor({ endpoint }) {
  const credential = useSignal('')
  const { found, run } = useHops()

  /** @param {SubmitEvent} event */
  function examine(event) {
    event.preventDefault()
    const target = path`/v1/tenants/${tenant.value}/endpoints/${endpoint}/doctor`
    void run(target, credential.value ? { credential: credential.value } : {})
  }

  const { hops, state, fault, untried, problem } = found
  return html`<section class="part" aria-labelledby="doctor">
    <h2 id="doctor">${said.doctor}</h2>
    <p class="muted">${said.doctorHow}</p>
    <form class="row examine" onSubmit=${examine}>
      <${Field} label=${said.credential} hint=${said.credentialHint}>
        ${(attributes) =>
          html`<input
            ...${attributes}
            type="password"
            autocomplete="off"
            onInput=${({ currentTarget }) => (credential.value = currentTarget.value.trim())}
          />`}
      <//>
      <button type="submit" class="main" disabled=${state === 'running'}>${said.examine}</button>
    </form>
    ${problem && html`<${ProblemNote} problem=${problem} />`}
    <${Hops} ...${{ state, hops, fault }} what=${fault && said.side(fault.side)} />
    ${state === 'done' && !fault && html`<p class="note good" role="status">${said.allWell} ${untried}</p>`}
  </section>`
}
