// A JSON Schema, as a person reads it: the members, what each is, and whether it is needed. The whole text stands below.

import { html } from '../core/html.js'
import { text } from '../text.js'

const said = text.schema
const maxLevels = 6

/** Such as `string[]`, or the values of an enumeration. */
function typeOf(schema) {
  if (typeof schema !== 'object' || schema === null) return said.any
  const { type, items, const: only, enum: values, anyOf, oneOf, $ref } = schema
  if (only !== undefined) return JSON.stringify(only)
  if (values) return values.map((value) => JSON.stringify(value)).join(' | ')
  if ($ref) return String($ref).split('/').at(-1)
  if (anyOf ?? oneOf) return (anyOf ?? oneOf).map(typeOf).join(' | ')
  if (type === 'array') return `${typeOf(items)}[]`
  return Array.isArray(type) ? type.join(' | ') : (type ?? said.any)
}

const bounds = ['minimum', 'maximum', 'minLength', 'maxLength', 'minItems', 'maxItems', 'pattern', 'format', 'default']

const boundsOf = (schema) =>
  bounds
    .filter((name) => schema[name] !== undefined)
    .map(
      (name) => `${said.bounds[name]} ${typeof schema[name] === 'string' ? schema[name] : JSON.stringify(schema[name])}`
    )
    .join(', ')

function Members({ schema, level }) {
  const { properties = {}, required = [] } = schema
  return html`<ul class="schema">
    ${Object.entries(properties).map(([name, member]) => {
      const inner = member?.type === 'array' ? member.items : member
      return html`<li key=${name}>
        <code class="member">${name}</code> <span class="muted">${typeOf(member)}</span>
        ${required.includes(name) && html` <span class="mark">${said.required}</span>`}
        ${member?.description && html`<p>${member.description}</p>`}
        ${boundsOf(member ?? {}) && html`<p class="muted">${boundsOf(member)}</p>`}
        ${inner?.properties && level < maxLevels && html`<${Members} schema=${inner} level=${level + 1} />`}
      </li>`
    })}
  </ul>`
}

/** @param {{ title: string, schema: any }} props */
export function SchemaView({ title, schema }) {
  const isEmpty = Object.keys(schema?.properties ?? {}).length === 0
  return html`<section class="part">
    <h3>${title}</h3>
    ${isEmpty ? html`<p class="muted">${said.none}</p>` : html`<${Members} schema=${schema} level=${0} />`}
  </section>`
}

/** @param {{ summary: string, value: unknown }} props */
export const JsonText = ({ summary, value }) =>
  html`<details>
    <summary>${summary}</summary>
    <pre tabindex="0">${JSON.stringify(value, undefined, 2)}</pre>
  </details>`
