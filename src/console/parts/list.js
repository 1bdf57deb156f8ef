// A list under its heading, which is loading, empty, or a table; and a column with an action for each row.

import { useId } from 'preact/hooks'
import { html } from '../core/html.js'
import { Empty, Loading } from './notice.js'
import { Table } from './table.js'

/**
 * @template Row
 * @param {{
 *   title: string,
 *   loaded: import('../core/load.js').Loaded<any>,
 *   empty: { title: string, why?: string | undefined },
 *   columns: import('./table.js').Column<Row>[],
 *   keyOf: (row: Row) => string,
 *   textOf?: (row: Row) => string,
 *   end?: string,
 *   beside?: unknown,
 *   children?: unknown
 * }} props beside: shown at the end of the heading. end: shown below the last row of the whole list
 */
export function ListPart({ title, loaded, empty, beside, end, children, ...table }) {
  const id = useId()
  return html`<section class="part" aria-labelledby=${id}>
    <div class="row">
      <h2 id=${id}>${title}</h2>
      ${beside && html`<span class="row push">${beside}</span>`}
    </div>
    <${Loading} loaded=${loaded}>
      ${({ items, isWhole }) =>
        items.length === 0
          ? html`<${Empty} ...${empty} />`
          : html`<${Table} caption=${title} rows=${items} isWhole=${isWhole} onMore=${loaded.more} ...${table} />
              ${isWhole && end && html`<p class="muted">${end}</p>`}`}
    <//>
    ${children}
  </section>`
}

/**
 * A column with a button for an action on each row; no column if the user may not do it.
 * @template Row
 * @param {{
 *   label: string, nameOf: (row: Row) => string | number, onChoose: (row: Row) => void,
 *   isAllowed: boolean, isFor?: (row: Row) => boolean
 * }} action nameOf: the name of the row, for screen readers
 * @returns {import('./table.js').Column<Row>[]}
 */
export const actionOf = ({ label, nameOf, onChoose, isAllowed, isFor = () => true }) =>
  isAllowed
    ? [
        {
          title: label,
          cell: (row) =>
            isFor(row) &&
            html`<button type="button" aria-label=${`${label}: ${nameOf(row)}`} onClick=${() => onChoose(row)}>
              ${label}
            </button>`
        }
      ]
    : []
