// A table: heads that scroll with it on narrow screens, rows that can be found by text.

import { useSignal } from '@preact/signals'
import { html } from '../core/html.js'
import { text } from '../text.js'

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
 *   isCaptionShown?: boolean
 * }} props textOf: what a filter looks in; without it there is none
 */
export function Table({ caption, columns, rows, keyOf, textOf, isWhole = true, isCaptionShown = false }) {
  const filter = useSignal('')
  const wanted = filter.value.trim().toLowerCase()
  const shown = textOf && wanted !== '' ? rows.filter((row) => textOf(row).toLowerCase().includes(wanted)) : rows
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
    <div class="table-scroll" tabindex="0" role="group" aria-label=${caption}>
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
    ${!isWhole && html`<p class="muted">${text.more}</p>`}
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
