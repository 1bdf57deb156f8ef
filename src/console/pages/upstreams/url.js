// Lets the user check an upstream at a URL, hop by hop, before it is added.

import { useSignal } from '@preact/signals'
import { path } from '../../core/api.js'
import { html } from '../../core/html.js'
import { tenant } from '../../core/route.js'
import { TextField } from '../../parts/form.js'
import { Hops, useHops } from '../../parts/hops.js'
import { ProblemNote } from '../../parts/notice.js'
import { text } from '../../text.js'

const said = text.addUpstream

/**
 * The values of the form, and the definition made of them. seen: the URL that was checked, to which `isForPeople` applies.
 * @returns {Record<'url' | 'seen', import('@preact/signals').Signal<string>> & { isForPeople: import('@preact/signals').Signal<boolean>, definition: () => object }}
 */
export function useUrl() {
  const url = useSignal('https://')
  const seen = useSignal('')
  const isForPeople = useSignal(false)
  function definition() {
    const isOfThis = isForPeople.value && seen.value === url.value
    return { type: 'http', url: url.value, ...(isOfThis && { auth: { type: 'user' } }) }
  }
  return { url, seen, isForPeople, definition }
}

/** @param {{ name: string, given: ReturnType<typeof useUrl>, error: string | undefined }} props */
export function UrlFields({ name, given, error }) {
  const { url, seen, isForPeople } = given
  const { found, run } = useHops()
  const { state, hops, fault, problem, asksPeople, tools } = found

  async function look() {
    isForPeople.value = false
    seen.value = url.value
    const target = path`/v1/tenants/${tenant.value}/upstreams/${name || 'server'}/discover`
    await run(target, { type: 'http', url: url.value })
  }
  const isOfThis = seen.value === url.value
  return html`<${TextField} label=${said.url} hint=${said.urlHint} value=${url} type="url" error=${error} />
    <div class="row">
      <button type="button" disabled=${!URL.canParse(url.value) || (state === 'running' && isOfThis)} onClick=${look}>
        ${said.look}
      </button>
      <span class="muted">${said.lookHow}</span>
    </div>
    ${isOfThis && problem && html`<${ProblemNote} problem=${problem} />`}
    ${isOfThis && html`<${Hops} ...${{ state, hops, fault }} what=${said.lookStopped} />`}
    ${
      isOfThis &&
      asksPeople &&
      html`<label class="check"
        ><input
          type="checkbox"
          checked=${isForPeople.value}
          onChange=${({ currentTarget }) => (isForPeople.value = currentTarget.checked)}
        /><span>${said.forPeople}</span></label
      >`
    }
    ${
      isOfThis &&
      tools &&
      html`<details>
        <summary>${said.toolsFound(tools.length)}</summary>
        <ul class="names">
          ${tools.map((each) => html`<li key=${each}><code>${each}</code></li>`)}
        </ul>
      </details>`
    }`
}
