// Text that is there to be copied.

import { useSignal } from '@preact/signals'
import { html } from '../core/html.js'
import { tell } from '../core/told.js'
import { text } from '../text.js'

const shownMs = 2_000

/** @param {{ label: string, value: string }} props label: what it is, for those who do not see where it stands */
export function CopyText({ label, value }) {
  const isCopied = useSignal(false)
  async function copy() {
    try {
      await navigator.clipboard.writeText(value)
      isCopied.value = true
      setTimeout(() => (isCopied.value = false), shownMs)
    } catch {
      // A page of plain HTTP beyond loopback may not.
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
