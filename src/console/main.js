// The console: lets an administrator sign in, then shows the page that the address names. It uses only the admin API.

import { render } from 'preact'
import { administrator, ProblemError, resume } from './core/api.js'
import { html } from './core/html.js'
import { comeBack } from './core/provider.js'
import './core/theme.js'
import { ProblemNote } from './parts/notice.js'
import { Shell } from './shell.js'
import { SignIn } from './sign-in.js'
import { text } from './text.js'

function App() {
  if (administrator.value === undefined) return null
  return administrator.value === null ? html`<${SignIn} />` : html`<${Shell} />`
}

document.documentElement.lang = text.language
const place = /** @type {HTMLElement} */ (document.getElementById('app'))
try {
  if (!(await comeBack())) await resume()
  render(html`<${App} />`, place)
} catch (error) {
  if (!(error instanceof ProblemError)) throw error
  render(
    html`<main class="sign-in"><${ProblemNote} problem=${error.problem} again=${() => location.reload()} /></main>`,
    place
  )
}
