// Messages about finished actions, shown at the edge of the page and read to screen readers. They disappear after some
// time.

import { signal } from '@preact/signals'
import { problemOf } from './api.js'

/** @typedef {{ id: number, kind: 'done' | 'failed', text: string, remedy?: string | undefined }} Told */

const shownMs = 8_000
const maxTold = 4
export const told = signal(/** @type {Told[]} */ ([]))
let last = 0

/** @param {number} id */
export const dismiss = (id) => void (told.value = told.value.filter((each) => each.id !== id))

/** @param {Told['kind']} kind @param {string} text @param {string} [remedy] */
export function tell(kind, text, remedy) {
  const id = ++last
  told.value = [...told.value.slice(1 - maxTold), { id, kind, text, remedy }]
  // A message about a failure stays until the user closes it.
  if (kind === 'done') setTimeout(() => dismiss(id), shownMs)
}

/**
 * Runs an action and shows a message about its outcome.
 * @template Value
 * @param {() => Promise<Value>} act
 * @param {string | ((value: Value) => string)} done the message if the action succeeds
 * @returns {Promise<boolean>} whether it succeeded
 */
export async function attempt(act, done) {
  try {
    const value = await act()
    tell('done', typeof done === 'string' ? done : done(value))
    return true
  } catch (error) {
    const { detail, remedy } = problemOf(error)
    tell('failed', detail, remedy)
    return false
  }
}
