// The differences between two configurations: each path whose values differ, with both values.

import { html } from '../core/html.js'
import { text } from '../text.js'
import { Table } from './table.js'

const said = text.difference

/** Values by path, such as `endpoints.default.upstreams`; a list is one value. @returns {Map<string, string>} */
function placesOf(value, path = /** @type {string[]} */ ([])) {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || Object.keys(value).length === 0)
    return new Map(value === undefined ? [] : [[path.join('.'), JSON.stringify(value)]])
  return new Map(Object.entries(value).flatMap(([name, each]) => [...placesOf(each, [...path, name])]))
}

/** @param {{ from: object | null, to: object | null, names: [from: string, to: string] }} props */
export function Difference({ from, to, names }) {
  const before = placesOf(from ?? {})
  const after = placesOf(to ?? {})
  const places = [...new Set([...before.keys(), ...after.keys()])].sort()
  const rows = places.flatMap((place) => {
    const [was, is] = [before.get(place), after.get(place)]
    return was === is ? [] : [{ place, was, is }]
  })
  const cell = (value) =>
    value === undefined ? html`<span class="muted">${said.nothing}</span>` : html`<code>${value}</code>`
  return rows.length === 0
    ? html`<p class="note good">${said.same}</p>`
    : html`<${Table}
        caption=${said.caption}
        rows=${rows}
        keyOf=${({ place }) => place}
        textOf=${({ place, was, is }) => `${place} ${was} ${is}`}
        columns=${[
          { title: said.place, isHead: true, cell: ({ place }) => html`<code>${place}</code>` },
          { title: names[0], cell: ({ was }) => cell(was) },
          { title: names[1], cell: ({ is }) => cell(is) }
        ]}
      />`
}
