// The sign-in page. It sends the key once and does not keep it.

import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { get, hasExpired, problemOf, signIn } from './core/api.js'
import { html } from './core/html.js'
import { useLoaded } from './core/load.js'
import { goToProvider, refusedByProvider } from './core/provider.js'
import { Field } from './parts/form.js'
import { ProblemNote } from './parts/notice.js'
import { text } from './text.js'

const said = text.signIn

export function SignIn() {
  const problem = useSignal(refusedByProvider.peek())
  const ways = useLoaded((signal) => get('/console/login', signal), [])
  const isSending = useSignal(false)
  const input = useRef(/** @type {HTMLInputElement | null} */ (null))
  useEffect(() => {
    document.title = `${said.title} · ${text.product}`
    input.current?.focus()
  }, [])

  /** @param {() => Promise<unknown>} act */
  async function attempt(act) {
    isSending.value = true
    problem.value = undefined
    try {
      await act()
    } catch (error) {
      problem.value = problemOf(error)
      isSending.value = false
      input.current?.select()
    }
  }

  return html`<main class="sign-in">
    <form
      onSubmit=${(/** @type {SubmitEvent} */ event) => {
        event.preventDefault()
        void attempt(() => signIn({ key: input.current?.value.trim() ?? '' }))
      }}
    >
      <img src="icon.svg" alt="" width="44" height="44" />
      <h1>${text.console}</h1>
      ${hasExpired.value && problem.value === undefined && html`<p class="note warn" role="status">${said.ended}</p>`}
      ${problem.value && html`<${ProblemNote} problem=${problem.value} />`}
      ${
        ways.value?.issuer &&
        html`<button type="button" class="main" disabled=${isSending.value} onClick=${() => attempt(goToProvider)}>
            ${said.at(new URL(ways.value.issuer).host)}
          </button>
          <p class="muted">${said.orKey}</p>`
      }
      <${Field} label=${said.key} hint=${said.hint}>
        ${(/** @type {object} */ attributes) =>
          html`<input ...${attributes} ref=${input} type="password" autocomplete="off" spellcheck=${false} required />`}
      <//>
      <button type="submit" class=${ways.value?.issuer ? '' : 'main'} disabled=${isSending.value}>
        ${said.submit}
      </button>
    </form>
  </main>`
}
