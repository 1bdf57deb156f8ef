// Choices above a page: of an endpoint, which is kept in the address; of one of a few values; and of a caller.

import { useSignal } from '@preact/signals'
import { useLayoutEffect } from 'preact/hooks'
import { list, path } from '../core/api.js'
import { html } from '../core/html.js'
import { useLoaded } from '../core/load.js'
import { route, setParams, tenant } from '../core/route.js'
import { text } from '../text.js'
import { Empty, Loading } from './notice.js'

const said = text.choice

/**
 * @param {{
 *   label: string, name?: string, value: string, choices: [value: string, title: string][],
 *   onChange: (value: string) => void
 * }} props name: a full name for screen readers, if the label is clear only beside its row
 */
export function Choice({ label, name, value, choices, onChange }) {
  return html`<label class="choice"
    ><span class="muted">${label}</span>
    <select
      aria-label=${name}
      onChange=${({ currentTarget }) => onChange(choices[currentTarget.selectedIndex]?.[0] ?? value)}
    >
      ${choices.map(([each, title]) => html`<option key=${each} selected=${each === value}>${title}</option>`)}
    </select></label
  >`
}

/**
 * Lets the user choose an endpoint of the tenant and shows a page about it.
 * @param {{ children: (endpoint: { name: string, path: string }, choice: unknown) => unknown }} props
 */
export function WithEndpoint({ children }) {
  const endpoints = useLoaded((signal) => list(path`/v1/tenants/${tenant.value}/endpoints`, signal), [tenant.value])
  return html`<${Loading} loaded=${endpoints}>
    ${({ items }) => {
      if (items.length === 0) return html`<${Empty} title=${said.noEndpoints} why=${said.noEndpointsWhy} />`
      const chosen = items.find(({ name }) => name === route.value.params.get('endpoint')) ?? items[0]
      const choice = html`<${Choice}
        label=${said.endpoint}
        value=${chosen.name}
        choices=${items.map(({ name }) => [name, name])}
        onChange=${(endpoint) => setParams({ endpoint })}
      />`
      return children(chosen, choice)
    }}
  <//>`
}

const revisions = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']

/** @typedef {{ caller: object, revision: string }} Seen */

export const anybody = () => ({ caller: {}, revision: '2025-11-25' })

const listed = (words) => words.split(/[\s,]+/).filter(Boolean)

/**
 * Lets the user choose a caller and the revision of the caller's client.
 * @param {{ title: string, keys: string[], hasRevision?: boolean, onChange: (seen: Seen) => void }} props hasRevision:
 * whether the revision can be chosen
 */
export function CallerFields({ title, keys, hasRevision = true, onChange }) {
  const kind = useSignal('anybody')
  const revision = useSignal('2025-11-25')
  const words = useSignal(/** @type {Record<string, string>} */ ({}))
  // At once: whoever asks next asks about whom they see.
  useLayoutEffect(() => {
    const { key, subject, issuer, client, groups = '', roles = '', scopes = '' } = words.value
    const ofToken = {
      ...(subject && { subject }),
      ...(issuer && { issuer }),
      ...(client && { client }),
      ...(groups && { groups: listed(groups) }),
      ...(roles && { roles: listed(roles) }),
      ...(scopes && { scopes: listed(scopes) })
    }
    const caller = kind.value === 'key' ? { key: key ?? keys[0] } : kind.value === 'token' ? ofToken : {}
    onChange({ caller, revision: revision.value })
  }, [kind.value, revision.value, words.value])
  const word = (name, label, placeholder) =>
    html`<label class="choice"
      ><span class="muted">${label}</span
      ><input
        placeholder=${placeholder}
        onChange=${({ currentTarget }) => (words.value = { ...words.value, [name]: currentTarget.value.trim() })}
    /></label>`
  return html`<fieldset class="caller">
    <legend>${title}</legend>
    <${Choice}
      label=${said.caller}
      value=${kind.value}
      choices=${[['anybody', said.anybody], ...(keys.length > 0 ? [['key', said.key]] : []), ['token', said.token]]}
      onChange=${(value) => (kind.value = value)}
    />
    ${
      kind.value === 'key' &&
      html`<${Choice}
        label=${said.keyName}
        value=${words.value['key'] ?? keys[0]}
        choices=${keys.map((name) => [name, name])}
        onChange=${(key) => (words.value = { ...words.value, key })}
      />`
    }
    ${
      kind.value === 'token' &&
      html`${word('subject', said.subject)} ${word('issuer', said.issuer, said.firstIssuer)}
      ${word('client', said.client)} ${word('groups', said.groups)} ${word('roles', said.roles)}
      ${word('scopes', said.scopes)}`
    }
    ${
      hasRevision &&
      html`<${Choice}
        label=${said.revision}
        value=${revision.value}
        choices=${revisions.map((each) => [each, each])}
        onChange=${(value) => (revision.value = value)}
      />`
    }
  </fieldset>`
}
