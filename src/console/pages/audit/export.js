// Downloads audit records as lines of JSON: all records of a kind and time, not only those that are shown.

import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { download, path, problemOf } from '../../core/api.js'
import { html } from '../../core/html.js'
import { tenant } from '../../core/route.js'
import { ProblemNote } from '../../parts/notice.js'
import { text } from '../../text.js'

const said = text.audit

/** The filter of the page as parameters of the API. */
export const queryOf = ({ kind, since, until }) => ({
  ...(kind && { kind }),
  ...(since && { since: new Date(since).toISOString() }),
  ...(until && { until: new Date(until).toISOString() })
})

/** The buttons that start and stop the download. */
export function Export(wanted) {
  const running = useSignal(/** @type {AbortController | undefined} */ (undefined))
  const problem = useSignal(/** @type {import('../../core/api.js').Problem | undefined} */ (undefined))
  useEffect(() => () => running.peek()?.abort(), [])
  async function take() {
    const { signal } = (running.value = new AbortController())
    problem.value = undefined
    try {
      const query = new URLSearchParams(queryOf(wanted))
      save(
        await download(path`/v1/tenants/${tenant.value}/audit/export?` + query, signal),
        `audit-${tenant.value}.jsonl`
      )
    } catch (error) {
      if (!signal.aborted) problem.value = problemOf(error)
    }
    running.value = undefined
  }
  return html`<div class="row">
      <button type="button" class="push" onClick=${() => (running.value ? running.value.abort() : take())}>
        ${running.value ? said.stopExport : said.export}
      </button>
      <span class="unseen" role="status">${running.value && said.exporting}</span>
    </div>
    ${problem.value && html`<${ProblemNote} problem=${problem.value} />`}`
}

/** @param {Blob} blob @param {string} name */
function save(blob, name) {
  const url = URL.createObjectURL(blob)
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}
