// A text with a button that copies it.

import { useSignal } from '@preact/signals'
import { html } from '../core/html.js'
import { tell } from '../core/told.js'
import { text } from '../text.js'

const shownMs = 2_000

/** @param {{ label: string, value: string }} props label: the name of the text for screen readers */
export function CopyText({ label, value }) {
  const isCopied = useSignal(false)
  async function copy() {
    try {
      await navigator.clipboard.writeText(value)
      isCopied.value = true
      setTimeout(() => (isCopied.value = false), shownMs)
    } catch {
      // Browsers do not let pages copy that were loaded over plain HTTP, except from loopback.
      tell('failed', text.copy.refused, text.copy.refusedWhy)
    }
  }
  return html`<div class="copy">
    <pre tabindex="0" role="group" aria-label=${label}>${value}</pre>
    <button type="button" onClick=${copy} aria-label=${`${text.copy.copy}: ${label}`}>
      ${isCopied.value ? text.copy.copied : text.copy.copy}
    </button>
  </div>`
}
