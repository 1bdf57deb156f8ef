// Shows a JSON Schema as a list of its members, with their types and which are required, and its whole text below.

import { html } from '../core/html.js'
import { text } from '../text.js'

const said = text.schema
const maxLevels = 6

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value)

/** @returns a string as it is, and any other value as JSON */
export const wordsOf = (value) => (typeof value === 'string' ? value : JSON.stringify(value))

/**
 * The members of an object schema. A schema of an upstream may have any value anywhere; what is no schema is `{}`.
 * @returns {[name: string, schema: Record<string, any>, isRequired: boolean][]}
 */
export function membersOf(schema) {
  const { properties, required } = isObject(schema) ? schema : /** @type {any} */ ({})
  const isRequired = (name) => Array.isArray(required) && required.includes(name)
  return Object.entries(isObject(properties) ? properties : {}).map(([name, member]) => [
    name,
    isObject(member) ? member : {},
    isRequired(name)
  ])
}

/** The type in words, such as `string[]` or the values of an enumeration. */
function typeOf(schema, level = 0) {
  if (!isObject(schema) || level > maxLevels) return said.any
  const { type, items, const: only, enum: values, anyOf, oneOf, $ref } = schema
  if (only !== undefined) return JSON.stringify(only)
  if (Array.isArray(values)) return values.map((value) => JSON.stringify(value)).join(' | ')
  if ($ref) return wordsOf($ref).split('/').at(-1)
  const either = [anyOf, oneOf].find(Array.isArray)
  if (either) return either.map((each) => typeOf(each, level + 1)).join(' | ')
  if (type === 'array') return `${typeOf(items, level + 1)}[]`
  return [type ?? said.any].flat().map(wordsOf).join(' | ')
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
  return html`<ul class="schema">
    ${membersOf(schema).map(([name, member, isRequired]) => {
      const inner = member.type === 'array' ? member.items : member
      return html`<li key=${name}>
        <code class="member">${name}</code> <span class="muted">${typeOf(member)}</span>
        ${isRequired && html` <span class="mark">${said.required}</span>`}
        ${member.description && html`<p>${wordsOf(member.description)}</p>`}
        ${boundsOf(member) && html`<p class="muted">${boundsOf(member)}</p>`}
        ${membersOf(inner).length > 0 && level < maxLevels && html`<${Members} schema=${inner} level=${level + 1} />`}
      </li>`
    })}
  </ul>`
}

/** @param {{ title: string, schema: any }} props */
export function SchemaView({ title, schema }) {
  const isEmpty = membersOf(schema).length === 0
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
