// Signing in: the key is sent once, and no script keeps it.

import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { hasExpired, ProblemError, signIn } from './core/api.js'
import { html } from './core/html.js'
import { Field } from './parts/form.js'
import { ProblemNote } from './parts/notice.js'
import { text } from './text.js'

const said = text.signIn

export function SignIn() {
  const problem = useSignal(/** @type {import('./core/api.js').Problem | undefined} */ (undefined))
  const isSending = useSignal(false)
  const input = useRef(/** @type {HTMLInputElement | null} */ (null))
  useEffect(() => {
    document.title = `${said.title} · ${text.product}`
    input.current?.focus()
  }, [])

  /** @param {SubmitEvent} event */
  async function submit(event) {
    event.preventDefault()
    isSending.value = true
    problem.value = undefined
    try {
      await signIn(input.current?.value.trim() ?? '')
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error
      problem.value = error.problem
      isSending.value = false
      input.current?.select()
    }
  }

  return html`<main class="sign-in">
    <form onSubmit=${submit}>
      <img src="icon.svg" alt="" width="44" height="44" />
      <h1>${text.console}</h1>
      ${hasExpired.value && problem.value === undefined && html`<p class="note warn" role="status">${said.ended}</p>`}
      ${problem.value && html`<${ProblemNote} problem=${problem.value} />`}
      <${Field} label=${said.key} hint=${said.hint}>
        ${(/** @type {object} */ attributes) =>
          html`<input ...${attributes} ref=${input} type="password" autocomplete="off" spellcheck=${false} required />`}
      <//>
      <button type="submit" class="main" disabled=${isSending.value}>${said.submit}</button>
    </form>
  </main>`
}
