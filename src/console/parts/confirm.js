// A dialog that says what an action does and lets the user confirm it.

import { useSignal } from '@preact/signals'
import { html } from '../core/html.js'
import { attempt } from '../core/told.js'
import { Dialog } from './dialog.js'

/**
 * @param {{
 *   title: string, act: () => Promise<unknown>, label: string, done: string | ((value: any) => string),
 *   onClose: (isDone: boolean) => void, isDangerous?: boolean, children?: unknown
 * }} props
 */
export function ConfirmDialog({ title, act, label, done, onClose, isDangerous = true, children }) {
  const isRunning = useSignal(false)
  async function run() {
    isRunning.value = true
    const isDone = await attempt(act, done)
    isRunning.value = false
    onClose(isDone)
  }
  const button = html`<button
    type="button"
    class=${isDangerous ? 'danger' : 'main'}
    disabled=${isRunning.value}
    onClick=${run}
  >
    ${label}
  </button>`
  return html`<${Dialog} title=${title} onClose=${() => onClose(false)} actions=${button}>${children}<//>`
}
