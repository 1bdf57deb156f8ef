// Shows the last lines that the processes of an upstream wrote to standard error.

import { list, path } from '../../core/api.js'
import { html } from '../../core/html.js'
import { useLoaded } from '../../core/load.js'
import { tenant } from '../../core/route.js'
import { Loading } from '../../parts/notice.js'
import { clockTime } from '../../parts/time.js'
import { text } from '../../text.js'

const said = text.stderr

/** @param {{ upstream: string, everyMs: number }} props */
export function StandardError({ upstream, everyMs }) {
  const target = path`/v1/tenants/${tenant.value}/upstreams/${upstream}/stderr`
  const lines = useLoaded((signal) => list(target, signal), [target], { everyMs })
  return html`<section class="part">
    <h3>${said.title}</h3>
    <${Loading} loaded=${lines}>
      ${({ items }) =>
        items.length === 0
          ? html`<p class="muted">${said.none}</p>`
          : html`<pre class="tail" tabindex="0" role="group" aria-label=${said.title}>
${items.map(
                ({ at, text: line, leftOut }) =>
                  html`${leftOut > 0 && html`<span class="muted">${said.leftOut(leftOut)}${'\n'}</span>`}<span
                      class="muted"
                      >${clockTime(at)}</span
                    >${`  ${line}\n`}`
              )}</pre>`}
    <//>
  </section>`
}
