// Form fields: one with its label and hint, and the fields of a JSON Schema. Values that a form cannot show are written
// as JSON.

import { useId } from 'preact/hooks'
import { html } from '../core/html.js'
import { text } from '../text.js'
import { membersOf, wordsOf } from './schema.js'

/**
 * @param {{
 *   label: string, hint?: string | undefined, error?: string | undefined,
 *   children: (attributes: { id: string, 'aria-describedby': string | undefined, 'aria-invalid': boolean }) => unknown
 * }} props
 */
export function Field({ label, hint, error, children }) {
  const id = useId()
  const about = hint || error ? `${id}-about` : undefined
  return html`<div class="field">
    <label for=${id}>${label}</label>
    ${children({ id, 'aria-describedby': about, 'aria-invalid': error !== undefined })}
    ${about && html`<p id=${about} class=${error ? 'error' : 'muted'}>${error ?? hint}</p>`}
  </div>`
}

/** @typedef {{ type?: string | string[], enum?: unknown[], title?: string, description?: string, default?: unknown, const?: unknown, properties?: Record<string, Schema>, required?: string[], oneOf?: { const: unknown, title?: string }[], items?: Schema, format?: string, minimum?: number, maximum?: number, maxLength?: number }} Schema */

/**
 * The initial values of a form: defaults, constants, and `false` for required booleans.
 * @param {Schema | undefined} schema
 * @returns {Record<string, unknown>}
 */
export const startOf = (schema) =>
  Object.fromEntries(
    membersOf(schema)
      .map(([name, member, isRequired]) => {
        const isUnticked = member['type'] === 'boolean' && isRequired
        return [name, member['default'] ?? member['const'] ?? (isUnticked ? false : undefined)]
      })
      .filter(([, value]) => value !== undefined)
  )

/** @param {Event} event */
const inputOf = (event) => /** @type {HTMLInputElement} */ (event.currentTarget)

/**
 * The fields of an object schema.
 * @param {{ schema: Schema, value: Record<string, unknown>, onChange: (value: Record<string, unknown>) => void }} props
 */
export function SchemaFields({ schema, value, onChange }) {
  return html`${membersOf(schema).map(
    ([name, member, isRequired]) =>
      html`<${SchemaField}
        key=${name}
        name=${name}
        schema=${member}
        isRequired=${isRequired}
        value=${value[name]}
        onChange=${(/** @type {unknown} */ next) => {
          const { [name]: _before, ...others } = value
          onChange(next === undefined ? others : { ...others, [name]: next })
        }}
      />`
  )}`
}

/**
 * @param {{ name: string, schema: Schema, isRequired: boolean, value: unknown, onChange: (value: unknown) => void }} props
 */
function SchemaField({ name, schema, isRequired, value, onChange }) {
  const label = `${name}${isRequired ? ' *' : ''}`
  const type = Array.isArray(schema.type) ? schema.type.find((each) => each !== 'null') : schema.type
  // An optional boolean is a choice and no checkbox, so that it can be left out.
  const either = type === 'boolean' && !isRequired ? [true, false] : undefined
  // `oneOf` is a choice only if all its schemas are constants; other schemas would need different fields.
  const titled = Array.isArray(schema.oneOf) && schema.oneOf.every((each) => each?.const !== undefined) && schema.oneOf
  const choices = [schema.enum, titled && titled.map((each) => each.const), either].find(Array.isArray)
  const hint = schema.description && wordsOf(schema.description)
  if (choices !== undefined)
    return html`<${Field} label=${label} hint=${hint}>
      ${(/** @type {object} */ attributes) =>
        html`<select
          ...${attributes}
          required=${isRequired}
          onChange=${(/** @type {Event} */ event) => onChange(choices[inputOf(event).value === '' ? -1 : Number(inputOf(event).value)])}
        >
          <option value="">${text.none}</option>
          ${choices.map(
            (choice, at) =>
              html`<option value=${at} selected=${choice === value}>
                ${wordsOf((titled || [])[at]?.title ?? choice)}
              </option>`
          )}
        </select>`}
    <//>`
  if (type === 'boolean')
    return html`<label class="check"
      ><input
        type="checkbox"
        checked=${value === true}
        onChange=${(/** @type {Event} */ event) => onChange(inputOf(event).checked)}
      />
      <span>${label}${hint && html` <span class="muted">${hint}</span>`}</span></label
    >`
  if (type === 'number' || type === 'integer')
    return html`<${Field} label=${label} hint=${hint}>
      ${(/** @type {object} */ attributes) =>
        html`<input
          ...${attributes}
          type="number"
          required=${isRequired}
          step=${type === 'integer' ? 1 : 'any'}
          min=${schema.minimum}
          max=${schema.maximum}
          value=${value ?? ''}
          onInput=${(/** @type {Event} */ event) => onChange(inputOf(event).value === '' ? undefined : inputOf(event).valueAsNumber)}
        />`}
    <//>`
  if (type === 'string')
    return html`<${Field} label=${label} hint=${hint}>
      ${(/** @type {object} */ attributes) =>
        html`<input
          ...${attributes}
          type=${{ email: 'email', uri: 'url', date: 'date' }[schema.format ?? ''] ?? 'text'}
          required=${isRequired}
          maxlength=${schema.maxLength}
          value=${value ?? ''}
          onInput=${(/** @type {Event} */ event) => onChange(inputOf(event).value === '' && !isRequired ? undefined : inputOf(event).value)}
        />`}
    <//>`
  return html`<${JsonField} label=${label} hint=${hint} value=${value} onChange=${onChange} />`
}

/**
 * @param {{ label: string, hint?: string | undefined, value: unknown, onChange: (value: unknown) => void, rows?: number }} props
 */
export function JsonField({ label, hint, value, onChange, rows = 4 }) {
  /** @param {Event} event */
  function take(event) {
    const area = inputOf(event)
    try {
      onChange(area.value.trim() === '' ? undefined : JSON.parse(area.value))
      area.setCustomValidity('')
    } catch (error) {
      area.setCustomValidity(error instanceof Error ? error.message : String(error))
    }
  }
  return html`<${Field} label=${label} hint=${hint}>
    ${(/** @type {object} */ attributes) =>
      html`<textarea ...${attributes} rows=${rows} spellcheck=${false} class="code" onInput=${take}>
${value === undefined ? '' : JSON.stringify(value, undefined, 2)}</textarea>`}
  <//>`
}

/** A field for one line of text. */
export function TextField({ label, hint, value, type = 'text', pattern, error, isRequired = true }) {
  return html`<${Field} label=${label} hint=${hint} error=${error}>
    ${(attributes) =>
      html`<input
        ...${attributes}
        type=${type}
        pattern=${pattern}
        required=${isRequired}
        spellcheck=${false}
        autocomplete="off"
        value=${value.value}
        onInput=${({ currentTarget }) => (value.value = currentTarget.value)}
      />`}
  <//>`
}
