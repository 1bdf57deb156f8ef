// A table, whose rows can be filtered by text.

import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { html } from '../core/html.js'
import { text } from '../text.js'

/** How many rows are drawn at first, and more with each click on "Show more". */
const rowsPerPage = 200

/**
 * @template Row
 * @typedef {{ title: string, cell: (row: Row) => unknown, isNumber?: boolean, isHead?: boolean,
 *   isLong?: boolean }} Column
 */

/**
 * @template Row
 * @param {{
 *   caption: string,
 *   columns: Column<Row>[],
 *   rows: Row[],
 *   keyOf: (row: Row) => string,
 *   textOf?: (row: Row) => string,
 *   isWhole?: boolean,
 *   onMore?: (() => Promise<unknown>) | undefined,
 *   isCaptionShown?: boolean,
 *   perPage?: number
 * }} props textOf: the text that a filter searches; without it there is no filter. onMore: reads further rows, if any
 */
export function Table({ caption, columns, rows, keyOf, textOf, onMore, ...how }) {
  const { isWhole = true, isCaptionShown = false, perPage = rowsPerPage } = how
  const filter = useSignal('')
  const wanted = filter.value.trim().toLowerCase()
  const found = textOf && wanted !== '' ? rows.filter((row) => textOf(row).toLowerCase().includes(wanted)) : rows
  const drawn = useSignal(perPage)
  const shown = found.slice(0, drawn.value)
  const scrolled = useRef(/** @type {HTMLElement | null} */ (null))
  const isReading = useSignal(false)
  const hasMore = shown.length < found.length || (!isWhole && onMore !== undefined)
  async function more() {
    isReading.value = true
    if (shown.length === found.length) await onMore?.()
    isReading.value = false
    drawn.value += perPage
    // The button disappears with the last row; then the table gets its focus.
    setTimeout(() => document.activeElement === document.body && scrolled.current?.focus())
  }
  return html`<div class="table-part">
    ${
      textOf &&
      (rows.length > 5 || filter.value !== '') &&
      html`<${FilterField}
        label=${`${text.filter}: ${caption}`}
        value=${filter}
        shown=${shown.length}
        all=${rows.length}
      />`
    }
    <div ref=${scrolled} class="table-scroll" tabindex="0" role="group" aria-label=${caption}>
      <table>
        <caption class=${isCaptionShown ? '' : 'unseen'}>
          ${caption}
        </caption>
        <thead>
          <tr>
            ${columns.map(({ title, isNumber }) => html`<th scope="col" class=${isNumber ? 'number' : ''}>${title}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${shown.map(
            (row) =>
              html`<tr key=${keyOf(row)}>
                ${columns.map(({ cell, isNumber, isLong, isHead }) =>
                  isHead
                    ? html`<th scope="row">${cell(row)}</th>`
                    : html`<td class=${isNumber ? 'number' : isLong ? 'long' : ''}>${cell(row)}</td>`
                )}
              </tr>`
          )}
        </tbody>
      </table>
    </div>
    ${
      hasMore &&
      html`<div class="row">
        <button type="button" aria-disabled=${isReading.value} onClick=${() => !isReading.value && more()}>
          ${isReading.value ? text.loading : text.showMore}
        </button>
      </div>`
    }
    ${!isWhole && !hasMore && html`<p class="muted">${text.more}</p>`}
  </div>`
}

/**
 * @param {{ label: string, value: import('@preact/signals').Signal<string>, shown?: number, all?: number }} props
 */
export function FilterField({ label, value, shown, all }) {
  return html`<div class="filter">
    <input
      type="search"
      aria-label=${label}
      placeholder=${text.filter}
      value=${value}
      onInput=${(/** @type {InputEvent & { currentTarget: HTMLInputElement }} */ { currentTarget }) =>
        (value.value = currentTarget.value)}
    />
    ${all !== undefined && html`<span class="muted" role="status">${text.shown(shown ?? all, all)}</span>`}
  </div>`
}
