// Shows a problem (RFC 9457): what is wrong, and what to do.

import { html } from '../core/html.js'
import { text } from '../text.js'

/**
 * @param {{ problem: import('../core/api.js').Problem, again?: () => unknown }} props
 */
export function ProblemNote({ problem, again }) {
  const { detail, remedy, errors = [] } = problem
  return html`<div class="note bad" role="alert">
    <p><strong>${detail}</strong></p>
    ${remedy && html`<p>${remedy}</p>`}
    ${
      errors.length > 0 &&
      html`<ul>
        ${errors.map(
          ({ path, message, remedy }) =>
            html`<li>
              ${path && html`<code>${path}</code>${' '}`}${message}${remedy && html` <span class="muted">${remedy}</span>`}
            </li>`
        )}
      </ul>`
    }
    ${again && html`<button type="button" onClick=${again}>${text.again}</button>`}
  </div>`
}

/** @param {{ title: string, why?: string, children?: unknown }} props */
export const Empty = ({ title, why, children }) =>
  html`<div class="empty">
    <p class="empty-title">${title}</p>
    ${why && html`<p class="muted">${why}</p>`} ${children}
  </div>`

/**
 * Shows data that is loading, that was refused, or that is there.
 * @param {{ loaded: import('../core/load.js').Loaded<any>, children: (value: any) => unknown }} props
 */
export function Loading({ loaded, children }) {
  const { value, problem, isLoading, again } = loaded
  return html`${problem && html`<${ProblemNote} problem=${problem} again=${again} />`}
  ${value === undefined ? isLoading && html`<p class="muted" role="status">${text.loading}</p>` : children(value)}`
}

/** Outcomes that are no failures: a person decided so, or has to do something first. The admin API does the same. */
const ofPersons = new Set(['cancelled', 'connect_required', 'declined'])

/** The CSS class for the outcome of a call. @param {string} outcome */
export const outcomeMark = (outcome) => (outcome === 'ok' ? 'good' : ofPersons.has(outcome) ? 'warn' : 'bad')
