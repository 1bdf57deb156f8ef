// A dialog made with the `dialog` element, which keeps the focus and closes with Escape. When it closes, the focus goes
// back to where it was, or to the heading of the page if that element is gone.

import { useEffect, useId, useRef } from 'preact/hooks'
import { html } from '../core/html.js'
import { text } from '../text.js'

/**
 * A dialog that is open while it is rendered.
 * @param {{ title: string, onClose: () => void, children: unknown, actions?: unknown, isWide?: boolean }} props
 */
export function Dialog({ title, onClose, children, actions, isWide = false }) {
  const element = useRef(/** @type {HTMLDialogElement | null} */ (null))
  const id = useId()
  useEffect(() => {
    const before = document.activeElement
    element.current?.showModal()
    // Runs after the dialog was removed, and perhaps with it the element that had the focus before.
    const giveBack = () => {
      for (const each of [before, document.querySelector('h1')])
        if (document.activeElement === document.body && each instanceof HTMLElement) each.focus()
    }
    return () => queueMicrotask(giveBack)
  }, [])
  return html`<dialog ref=${element} aria-labelledby=${id} class=${isWide ? 'wide' : ''} onClose=${onClose}>
    <header>
      <h2 id=${id}>${title}</h2>
      <button type="button" class="quiet" onClick=${() => element.current?.close()}>${text.close}</button>
    </header>
    <div class="dialog-body" tabindex="0" role="group" aria-labelledby=${id}>${children}</div>
    ${actions && html`<footer>${actions}</footer>`}
  </dialog>`
}
